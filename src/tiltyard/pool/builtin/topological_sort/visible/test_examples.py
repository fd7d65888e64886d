def test_chain():
    tasks = {"cake": ["bake"], "bake": ["mix"], "eat": ["cake"]}
    assert topological_sort(tasks) == ["mix", "bake", "cake", "eat"]


def test_smallest_first():
    assert topological_sort({"b": [], "c": [], "a": ["c"]}) == ["b", "c", "a"]


def test_no_tasks():
    assert topological_sort({}) == []
