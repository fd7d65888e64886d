from build.graph import CycleError, Graph
from build.planner import plan


def make(**needs):
    graph = Graph()
    for target, names in needs.items():
        graph.add(target, names.split())
    return graph


def cycle(graph, *targets):
    error = raises(CycleError, graph.order, list(targets))
    return list(error.path)


def test_diamond_is_no_cycle():
    assert make(top="l r", l="base", r="base", base="").order(["top"]) == ["base", "l", "r", "top"]


def test_need_at_two_depths():
    assert make(a="c b", b="c", c="s").order(["a"]) == ["s", "c", "b", "a"]
    assert make(a="b c", b="c", c="s").order(["a"]) == ["s", "c", "b", "a"]


def test_several_targets():
    graph = make(a="x", b="x", x="")
    assert graph.order(["a", "b"]) == ["x", "a", "b"]
    assert graph.order(["b", "a", "b"]) == ["x", "b", "a"]
    assert graph.order(["x", "a"]) == ["x", "a"]


def test_need_given_twice():
    assert make(a="x x", x="").order(["a"]) == ["x", "a"]


def test_chain():
    assert make(a="b", b="c").order(["a"]) == ["c", "b", "a"]
    assert make(a="b", b="c").order(["c"]) == ["c"]
    assert make(a="").order([]) == []


def test_cycle_path_is_the_cycle_alone():
    assert cycle(make(x="a", a="b", b="a"), "x") == ["a", "b", "a"]
    assert cycle(make(x="y", y="z", z="z"), "x") == ["z", "z"]
    assert cycle(make(s="t a", t="", a="b", b="c", c="a"), "s") == ["a", "b", "c", "a"]
    assert cycle(make(a="x b", x="", b="y a", y="x"), "a") == ["a", "b", "a"]


def test_cycle_from_its_own_first_target():
    assert cycle(make(a="b", b="c", c="a"), "a") == ["a", "b", "c", "a"]
    assert cycle(make(a="a"), "a") == ["a", "a"]


def test_cycle_that_is_not_asked_for():
    graph = make(a="b", b="a", c="d", d="")
    assert graph.order(["c"]) == ["d", "c"]
    assert cycle(graph, "c", "b") == ["b", "a", "b"]


def test_graph_refuses_twice():
    graph = make(a="b")
    raises(ValueError, graph.add, "a", [])
    assert graph.needs("a") == ["b"]
    assert graph.needs("b") == []


def test_out_of_date_goes_all_the_way_up():
    graph = make(app="a", a="lib", lib="src")
    stamps = {"src": 9, "lib": 2, "a": 3, "app": 4}
    assert plan(graph, ["app"], stamps) == ["lib", "a", "app"]


def test_missing_in_the_middle():
    graph = make(app="a b", a="src", b="src")
    assert plan(graph, ["app"], {"src": 1, "b": 2, "app": 3}) == ["a", "app"]


def test_only_the_branch_that_changed():
    graph = make(app="a b", a="x", b="y")
    assert plan(graph, ["app"], {"x": 1, "y": 7, "a": 5, "b": 5, "app": 6}) == ["b", "app"]
    assert plan(graph, ["a"], {"x": 1, "y": 7, "a": 5, "b": 5, "app": 6}) == []


def test_equal_stamps_are_up_to_date():
    graph = make(app="a", a="x")
    assert plan(graph, ["app"], {"x": 5, "a": 5, "app": 5}) == []
    assert plan(graph, ["app"], {"x": 0, "a": 0, "app": 0}) == []
    assert plan(graph, ["app"], {"x": 6, "a": 5, "app": 7}) == ["a", "app"]
    assert plan(graph, ["app"], {"x": 4, "a": 6, "app": 5}) == ["app"]


def test_source_that_is_missing():
    raises(KeyError, plan, make(a="x"), ["a"], {"a": 3})
    assert plan(make(a=""), ["a"], {}) == ["a"]


def test_failure_skips_what_needs_it():
    graph = make(all="app doc", app="a b", a="x", b="x", doc="x")
    seen = []

    def action(target, needs):
        seen.append((target, needs))
        if target == "a":
            raise RuntimeError("compiler error")

    got = run(graph, ["all"], {"x": 1}, action)
    assert got == {"a": "failed", "b": "built", "app": "skipped", "doc": "built", "all": "skipped"}
    assert seen == [("a", ["x"]), ("b", ["x"]), ("doc", ["x"])]


def test_failure_of_a_target_with_an_old_version():
    graph = make(app="a", a="x")

    def action(target, needs):
        raise OSError("disk full")

    assert run(graph, ["app"], {"x": 9, "a": 1, "app": 2}, action) == {"a": "failed", "app": "skipped"}


def test_unrelated_targets_after_a_failure():
    graph = make(a="x", b="x")

    def action(target, needs):
        if target == "a":
            raise ValueError(target)

    assert run(graph, ["a", "b"], {"x": 1}, action) == {"a": "failed", "b": "built"}


def test_order_of_the_results():
    graph = make(app="z m", z="s", m="s")
    got = run(graph, ["app"], {"s": 1}, lambda target, needs: None)
    assert list(got) == ["z", "m", "app"]
