def test_equal_parts():
    assert split_bill(100, [1, 1, 1]) == [34, 33, 33]


def test_largest_fraction_gets_the_cent():
    assert split_bill(10, [1, 2, 3]) == [2, 3, 5]


def test_zero_weight():
    assert split_bill(5, [0, 1]) == [0, 5]
