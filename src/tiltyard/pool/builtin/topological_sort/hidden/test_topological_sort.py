import random


def test_independent_tasks_in_order_of_name():
    assert topological_sort({"pear": [], "fig": [], "apple": []}) == ["apple", "fig", "pear"]


def test_diamond():
    tasks = {"end": ["left", "right"], "left": ["start"], "right": ["start"], "start": []}
    assert topological_sort(tasks) == ["start", "left", "right", "end"]


def test_task_that_becomes_free_comes_before_larger_ones():
    assert topological_sort({"m": [], "z": [], "a": ["m"]}) == ["m", "a", "z"]


def test_not_level_by_level():
    # "c" needs "b" needs "a"; all three come before "x", which was free from the start.
    assert topological_sort({"x": [], "a": [], "b": ["a"], "c": ["b"]}) == ["a", "b", "c", "x"]


def test_not_depth_first():
    assert topological_sort({"a": ["y"], "b": [], "y": []}) == ["b", "y", "a"]


def test_tasks_only_in_lists():
    assert topological_sort({"go": ["tie", "aim"]}) == ["aim", "tie", "go"]


def test_repeated_prerequisite():
    assert topological_sort({"b": ["c", "c", "c"], "a": ["b", "b"]}) == ["c", "b", "a"]


def test_names_compare_as_strings():
    assert topological_sort({"t10": [], "t9": [], "T1": ["t10"]}) == ["t10", "T1", "t9"]


def test_empty_and_single():
    assert topological_sort({}) == []
    assert topological_sort({"two": [], "one": []}) == ["one", "two"]


def test_circle_of_three():
    assert raises(ValueError, topological_sort, {"a": ["b"], "b": ["c"], "c": ["a"]})
    assert topological_sort({"a": ["b"], "b": ["c"], "c": []}) == ["c", "b", "a"]


def test_waits_for_itself():
    assert raises(ValueError, topological_sort, {"a": [], "b": ["b"]})
    assert topological_sort({"a": [], "b": ["a"]}) == ["a", "b"]


def test_circle_beside_a_good_part():
    assert raises(
        ValueError, topological_sort, {"p": [], "q": ["p", "s"], "r": ["q"], "s": ["r"], "t": ["p"]}
    )
    assert topological_sort({"p": [], "q": ["p"], "r": ["q"], "s": ["r"], "t": ["p"]}) == list("pqrst")


def test_argument_is_not_changed():
    tasks = {"b": ["a", "a"], "c": ["b", "a"], "a": []}
    assert topological_sort(tasks) == ["a", "b", "c"]
    assert tasks == {"b": ["a", "a"], "c": ["b", "a"], "a": []}


def test_long_chain():
    size = 3000
    names = [f"{n:05d}" for n in range(size)]
    tasks = {names[n]: [names[n + 1]] for n in range(size - 1)}
    assert topological_sort(tasks) == names[::-1]


def test_generated():
    rng = random.Random(6)
    for size in range(2, 25):
        names = [f"{rng.randrange(1000):03d}-{n}" for n in range(size)]
        tasks = {}
        for n, name in enumerate(names):
            tasks[name] = [names[rng.randrange(n)] for _ in range(rng.randrange(0, 3))] if n else []
        items = list(tasks.items())
        rng.shuffle(items)
        expected = []
        while len(expected) < size:
            free = [t for t, b in items if t not in expected and all(x in expected for x in b)]
            expected.append(min(free))
        assert topological_sort(dict(items)) == expected
