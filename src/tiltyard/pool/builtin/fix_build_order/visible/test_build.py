from build.graph import Graph


def project():
    graph = Graph()
    graph.add("app", ["a", "b"])
    graph.add("a", ["lib"])
    graph.add("b", ["lib"])
    graph.add("lib", ["lib.c"])
    return graph


def test_everything_once():
    built = []
    got = run(project(), ["app"], {"lib.c": 1}, lambda target, needs: built.append(target))
    assert built == ["lib", "a", "b", "app"]
    assert got == {"lib": "built", "a": "built", "b": "built", "app": "built"}


def test_nothing_to_do():
    stamps = {"lib.c": 1, "lib": 2, "a": 3, "b": 3, "app": 4}
    assert run(project(), ["app"], stamps, lambda target, needs: None) == {}
