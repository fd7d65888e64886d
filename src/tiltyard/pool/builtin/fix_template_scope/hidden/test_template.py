from template.nodes import TemplateError


def test_values_that_are_false():
    got = render("{{ a }}|{{ b }}|{{ c }}|{{ d }}|{{ e }}", {"a": 0, "b": False, "c": [], "d": 0.0, "e": ""})
    assert got == "0|False|[]|0.0|"


def test_none_and_unknown_names():
    assert render("[{{ a }}{{ b }}{{ c.d }}{{ e.f.g }}]", {"a": None, "c": {}, "e": 5}) == "[]"


def test_false_values_with_filters_and_paths():
    assert render("{{ a.b|trim }}{{ a.c|upper }}", {"a": {"b": 0, "c": False}}) == "0FALSE"


def test_loop_name_is_gone_after_the_loop():
    assert render("{% for x in xs %}{{ x }}{% end %}[{{ x }}{{ number }}]", {"xs": [1, 2]}) == "12[]"


def test_loop_hides_and_restores():
    source = "{{ x }}{{ number }}{% for x in xs %}-{{ x }}{{ number }}{% end %}-{{ x }}{{ number }}"
    assert render(source, {"x": "X", "number": "N", "xs": ["a", "b"]}) == "XN-a1-b2-XN"


def test_nested_loops():
    source = "{% for r in rows %}{% for c in r.cells %}{{ number }}{{ c }} {% end %}({{ number }}{{ c }}){% end %}"
    rows = [{"cells": ["a", "b"]}, {"cells": ["c"]}]
    assert render(source, {"rows": rows}) == "1a 2b (1)1c (2)"


def test_nested_loops_with_the_same_name():
    source = "{% for x in xs %}{{ x.n }}{% for x in x.sub %}{{ x }}{% end %}{{ x.n }};{% end %}"
    assert render(source, {"xs": [{"n": 1, "sub": "ab".split()}, {"n": 2, "sub": ["c", "d"]}]}) == "1ab1;2cd2;"


def test_values_are_not_changed():
    values = {"xs": [1, 2], "x": "old"}
    assert render("{% for x in xs %}{{ x }}{% end %}", values) == "12"
    assert values == {"xs": [1, 2], "x": "old"}
    assert render("{{ x }}{{ number }}", values) == "old"


def test_raw_at_any_place():
    values = {"t": " <i> "}
    assert render("{{ t|raw|upper|trim }}", values) == "<I>"
    assert render("{{ t|trim|raw|upper }}", values) == "<I>"
    assert render("{{ t|upper|trim|raw }}", values) == "<I>"


def test_escaped_without_raw():
    assert render("{{ t|upper }}", {"t": "a&b"}) == "A&amp;B"
    assert render("{{ t }}", {"t": "\"<'>\""}) == "&quot;&lt;&#x27;&gt;&quot;"
    assert render("&<{{ t }}", {"t": 1}) == "&<1"


def test_else_of_the_inner_if():
    source = "{% if a %}1{% if b %}2{% else %}3{% end %}4{% end %}"
    assert render(source, {"a": 1, "b": 1}) == "124"
    assert render(source, {"a": 1, "b": 0}) == "134"
    assert render(source, {"a": 0, "b": 0}) == ""


def test_else_of_both():
    source = "{% if a %}{% if b %}x{% else %}y{% end %}{% else %}{% if b %}z{% else %}w{% end %}{% end %}"
    got = [render(source, {"a": a, "b": b}) for a in (1, 0) for b in (1, 0)]
    assert got == ["x", "y", "z", "w"]


def test_else_of_a_loop_inside_an_if():
    source = "{% if a %}{% for x in xs %}{{ x }}{% else %}none{% end %}{% else %}no{% end %}"
    assert render(source, {"a": 1, "xs": []}) == "none"
    assert render(source, {"a": 1}) == "none"
    assert render(source, {"a": 1, "xs": (3, 4)}) == "34"
    assert render(source, {}) == "no"


def test_single_else():
    assert render("{% if a.b %}yes{% else %}no{% end %}", {"a": {"b": 0}}) == "no"
    assert render("{% if a.b %}yes{% else %}no{% end %}", {"a": {"b": [0]}}) == "yes"


def test_malformed():
    for source in (
        "{% end %}",
        "{% else %}",
        "{% if a %}",
        "{% if a %}{% else %}{% else %}{% end %}",
        "{% for x of y %}{% end %}",
        "{% while a %}{% end %}",
        "{{ a|nope }}",
        "{{ 1a }}",
        "{{ }}",
        "{% if a %}{% for x in b %}{% end %}",
    ):
        raises(TemplateError, render, source, {"a": 1, "b": [1]})


def test_loop_over_something_else():
    raises(TemplateError, render, "{% for x in a %}{% end %}", {"a": "text"})
    raises(TemplateError, render, "{% for x in a %}{% end %}", {"a": {"k": 1}})


def test_plain_text():
    assert render("", {}) == ""
    assert render("a {b} % }} {\n", {}) == "a {b} % }} {\n"
