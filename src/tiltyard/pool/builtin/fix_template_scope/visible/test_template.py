def test_zero():
    assert render("You have {{ count }} mails.", {"count": 0}) == "You have 0 mails."


def test_name_after_a_loop():
    source = "{% for name in guests %}{{ name }}, {% end %}greets {{ name }}"
    assert render(source, {"guests": ["Al", "Bo"], "name": "Cy"}) == "Al, Bo, greets Cy"


def test_escaping():
    assert render("{{ a }}{{ a|raw }}", {"a": "<b>"}) == "&lt;b&gt;<b>"
