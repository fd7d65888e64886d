def test_next():
    values = [1, 2, 3]
    assert next_permutation(values) is True
    assert values == [1, 3, 2]


def test_last_goes_to_first():
    values = [3, 2, 1]
    assert next_permutation(values) is False
    assert values == [1, 2, 3]


def test_repeated_values():
    values = [1, 1, 5]
    assert next_permutation(values) is True
    assert values == [1, 5, 1]
