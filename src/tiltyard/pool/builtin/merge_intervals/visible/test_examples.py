def test_overlap():
    assert merge_intervals([(8, 10), (1, 3), (2, 6)]) == [(1, 6), (8, 10)]


def test_touching_lists():
    assert merge_intervals([[1, 4], [4, 5]]) == [(1, 5)]


def test_apart():
    assert merge_intervals([(5, 6), (1, 4)]) == [(1, 4), (5, 6)]
