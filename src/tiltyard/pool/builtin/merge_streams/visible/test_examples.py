def test_three_streams():
    assert list(merge_streams([1, 4], [2, 3, 4], iter([]))) == [1, 2, 3, 4, 4]


def test_key():
    assert list(merge_streams(["b", "D"], ["A", "c"], key=lambda s: s.lower())) == ["A", "b", "c", "D"]
