from fractions import Fraction


def test_subtraction_from_the_left():
    assert evaluate("1-2-3-4") == -8
    assert evaluate("20 - 5 + 3") == 18
    assert evaluate("1 - 2 + 3 - 4 + 5") == 3


def test_division_from_the_left():
    assert evaluate("64 / 4 / 2") == 8
    assert evaluate("12 / 3 * 2") == 8
    assert evaluate("7 / 2 / 2") == Fraction(7, 4)
    assert evaluate("2 * 9 / 3 / 3 * 5") == 10


def test_sums_and_products_mixed():
    assert evaluate("2 + 3 * 4 - 5") == 9
    assert evaluate("20 - 2 * 3 - 1") == 13
    assert evaluate("20 - 12 / 2 / 3 - 1") == 17


def test_power_from_the_right():
    assert evaluate("3 ^ 2 ^ 2") == 81
    assert evaluate("2 ^ 2 ^ 3") == 256
    assert evaluate("(2 ^ 2) ^ 3") == 64
    assert evaluate("2 ^ 1 ^ 9") == 2


def test_power_before_sign():
    assert evaluate("-2 ^ 2") == -4
    assert evaluate("-x ^ 4", {"x": 2}) == -16
    assert evaluate("(-2) ^ 2") == 4
    assert evaluate("5 - 2 ^ 2") == 1
    assert evaluate("--2 ^ 2") == 4
    assert evaluate("+-3 ^ 2") == -9


def test_signs_in_exponents():
    assert evaluate("2 ^ -2") == Fraction(1, 4)
    assert evaluate("2 ^ +3") == 8
    assert evaluate("2 ^ --3") == 8
    assert evaluate("2 ^ -1 * 4") == 2
    assert evaluate("-2 ^ -2") == Fraction(-1, 4)
    assert evaluate("2 ^ -1 ^ 2") == Fraction(1, 2)


def test_power_before_product():
    assert evaluate("2 * 3 ^ 2") == 18
    assert evaluate("18 / 3 ^ 2") == 2
    assert evaluate("2 * -3 ^ 2") == -18


def test_signs_elsewhere():
    assert evaluate("3 * -4") == -12
    assert evaluate("3 - -4") == 7
    assert evaluate("3 - - -4") == -1
    assert evaluate("-2 * 3") == -6
    assert evaluate("+5") == 5
    assert evaluate("-(2 + 3)") == -5


def test_parentheses():
    assert evaluate("10 - (4 - 3)") == 9
    assert evaluate("((2))*(3+(4))") == 14
    assert evaluate("2 ^ (1 + 2)") == 8


def test_exact_numbers():
    assert evaluate("0.1 + 0.2") == Fraction(3, 10)
    assert evaluate("3. * 2") == 6
    assert evaluate("1 / 3 * 3") == 1
    assert evaluate("2 ^ 200") == 2**200


def test_whole_results_are_ints():
    assert type(evaluate("6 / 3")) is int
    assert type(evaluate("0.5 + 0.5")) is int
    assert type(evaluate("1 / 2")) is Fraction


def test_names():
    assert evaluate("a - b - a", {"a": 7, "b": 2}) == -2
    assert evaluate("rate_2 / 4", {"rate_2": Fraction(1, 2)}) == Fraction(1, 8)
    raises(FormulaError, evaluate, "a + b", {"a": 1})


def test_not_a_formula():
    for text in ("", "1 +", "* 2", "1 2", "(1", "1)", "2 ^", "2 $ 3", "()", ".5", "1 - * 2"):
        raises(FormulaError, evaluate, text)


def test_can_not_be_computed():
    for text in ("1 / 0", "1 / (2 - 2)", "0 ^ -1", "2 ^ 0.5", "2 ^ 1001", "2 ^ -1001"):
        raises(FormulaError, evaluate, text)


def test_long_sums():
    assert evaluate(" - ".join(["1000"] + ["1"] * 400)) == 600
