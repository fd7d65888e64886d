from fractions import Fraction


def test_from_the_left():
    assert evaluate("10 - 4 - 3") == 3
    assert evaluate("100 / 10 / 5") == 2


def test_powers():
    assert evaluate("2 ^ 3 ^ 2") == 512
    assert evaluate("-3 ^ 2") == -9
    assert evaluate("2 ^ -1") == Fraction(1, 2)


def test_signs():
    assert evaluate("2 * -x", {"x": 5}) == -10
    assert evaluate("--3") == 3
