import random
from fractions import Fraction


def test_exact_division():
    assert split_bill(120, [1, 2, 3]) == [20, 40, 60]


def test_tie_goes_to_the_first():
    assert split_bill(7, [1, 1]) == [4, 3]
    assert split_bill(3, [5, 5]) == [2, 1]


def test_two_cents_left():
    assert split_bill(101, [1, 1, 1]) == [34, 34, 33]


def test_largest_fraction_is_last():
    assert split_bill(11, [3, 3, 4]) == [3, 3, 5]
    assert split_bill(10, [3, 4, 2]) == [3, 5, 2]


def test_fraction_not_weight_decides():
    # exact shares 7.5, 1.25, 1.25
    assert split_bill(10, [6, 1, 1]) == [8, 1, 1]
    # exact shares 8.1, 0.9
    assert split_bill(9, [9, 1]) == [8, 1]


def test_less_cents_than_people():
    assert split_bill(2, [1, 1, 1, 1]) == [1, 1, 0, 0]
    assert split_bill(1, [1, 5, 1]) == [0, 1, 0]


def test_zero_total():
    assert split_bill(0, [4, 2]) == [0, 0]
    assert split_bill(1, [4, 2]) == [1, 0]


def test_zero_weights_get_nothing():
    assert split_bill(100, [0, 1, 0, 1, 1]) == [0, 34, 0, 33, 33]


def test_one_person():
    assert split_bill(999, [7]) == [999]


def test_weights_need_not_be_reduced():
    assert split_bill(100, [200, 200, 200]) == [34, 33, 33]


def test_invalid():
    for total, weights in ((5, []), (5, [0, 0]), (5, [3, -1]), (0, [-2, 2]), (-1, [1, 1]), (0, [])):
        assert raises(ValueError, split_bill, total, weights), (total, weights)
    assert split_bill(6, [3, 1]) == [5, 1]


def test_weights_are_not_changed():
    weights = [3, 1, 2]
    assert split_bill(13, weights) == [7, 2, 4]
    assert weights == [3, 1, 2]


def test_huge_numbers():
    total = 10**40 + 1
    assert split_bill(total, [1, 1]) == [5 * 10**39 + 1, 5 * 10**39]
    shares = split_bill(total, [1, 1, 10**30])
    assert sum(shares) == total
    assert shares[:2] == [10**10, 10**10]


def test_generated():
    rng = random.Random(9)
    for _ in range(120):
        weights = [rng.randrange(0, 9) for _ in range(rng.randrange(1, 8))] + [rng.randrange(1, 5)]
        total = rng.randrange(0, 300)
        exact = [Fraction(total * w, sum(weights)) for w in weights]
        expected = [int(e) for e in exact]
        losses = [e - int(e) for e in exact]
        for _ in range(total - sum(expected)):
            i = losses.index(max(losses))
            expected[i] += 1
            losses[i] = Fraction(-1)
        assert split_bill(total, weights) == expected
