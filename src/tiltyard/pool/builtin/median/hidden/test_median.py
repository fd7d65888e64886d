import random
import statistics


def test_odd_unsorted():
    assert median([9, 2, 11, 5, 7]) == 7


def test_even_unsorted():
    assert median([10, 40, 20, 31]) == 25.5


def test_single():
    assert median([-4]) == -4
    assert median([0.25]) == 0.25


def test_two_values():
    assert median([8, 3]) == 5.5


def test_even_with_a_whole_mean():
    assert median([6, 2, 4, 0]) == 3


def test_duplicates():
    assert median([5, 5, 1, 5, 9, 9]) == 5
    assert median([2, 2, 8, 8]) == 5


def test_negative_values():
    assert median([-5, -1, -9]) == -5
    assert median([-3, -8, -2, -9]) == -5.5


def test_numbers_are_compared_as_numbers():
    assert median([100, 20, 3]) == 20


def test_floats():
    assert median([2.5, 0.5, 1.5]) == 1.5
    assert median([0.5, 2.0]) == 1.25


def test_odd_keeps_the_type():
    assert type(median([3, 1.5, 4])) is int
    assert type(median([3, 3.5, 4])) is float


def test_tuple():
    assert median((30, 10, 20, 40)) == 25


def test_argument_is_not_changed():
    values = [5, 3, 8, 1]
    assert median(values) == 4
    assert values == [5, 3, 8, 1]


def test_empty_raises():
    assert raises(ValueError, median, [])
    assert raises(ValueError, median, ())
    assert median([12, 6]) == 9


def test_generated():
    rng = random.Random(11)
    for size in range(1, 40):
        values = [rng.randrange(-50, 50) for _ in range(size)]
        assert median(values) == statistics.median(values)
