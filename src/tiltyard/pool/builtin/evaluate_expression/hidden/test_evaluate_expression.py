import random


def test_numbers():
    assert value("42") == 42
    assert value("  0012\t") == 12
    assert value("9" * 40) == int("9" * 40)


def test_left_to_right():
    assert value("10 - 4 - 3") == 3
    assert value("100 / 5 / 2") == 10
    assert value("17 % 10 % 4") == 3
    assert value("2 - 3 + 4") == 3


def test_product_operators_have_one_level():
    assert value("6 / 4 * 2") == 2
    assert value("2 * 7 % 4") == 2
    assert value("7 % 4 * 2") == 6


def test_products_before_sums():
    assert value("1+2*3-8/4") == 5
    assert value("20 - 3 * 4 % 5") == 18


def test_parentheses():
    assert value("2*(3+(4-1))*5") == 60
    assert value("((((7))))") == 7
    assert value("10-(4-3)") == 9


def test_division_towards_zero():
    assert value("7/-2") == -3
    assert value("(0-9)/4") == -2
    assert value("-9/-4") == 2
    assert value("1/2") == 0
    assert value("-1/2") == 0


def test_remainder_has_the_sign_of_the_left():
    assert value("-9 % 4") == -1
    assert value("9 % -4") == 1
    assert value("-9 % -4") == -1
    assert value("8 % 4") == 0


def test_division_of_large_numbers_is_exact():
    big = 10**30 + 7
    assert value(f"{big} / 3") == big // 3
    assert value(f"-{big} / 3") == -(big // 3)
    assert value(f"{big} % 10") == 7


def test_signs():
    assert value("--5") == 5
    assert value("-+-+-5") == -5
    assert value("4--3") == 7
    assert value("4 - + - 3") == 7
    assert value("3*-2") == -6
    assert value("-(2+3)") == -5


def test_power():
    assert value("3^2^2") == 81
    assert value("2*3^2") == 18
    assert value("(2*3)^2") == 36
    assert value("0^0") == 1
    assert value("7^0") == 1
    assert value("2^100") == 2**100


def test_power_and_signs():
    assert value("-3^2") == -9
    assert value("(-3)^2") == 9
    assert value("2^-(1-3)") == 4
    assert value("2^--3") == 8
    assert value("2^+2^2") == 16
    assert value("5--2^2") == 9
    assert value("2^-0") == 1


def test_negative_exponent():
    assert raises(ValueError, evaluate_expression, "3^-1")
    assert raises(ValueError, evaluate_expression, "1^(2-3)")
    assert value("3^(2-1)") == 3


def test_division_by_zero():
    assert raises(ZeroDivisionError, evaluate_expression, "4/0")
    assert raises(ZeroDivisionError, evaluate_expression, "4%(2-2)")
    assert raises(ZeroDivisionError, evaluate_expression, "-0/0")
    assert value("0/4") == 0


def test_incomplete():
    for text in ("", "  ", "3+", "*3", "3*/2", "()", "(", ")", "3^", "-", "2-(", "5+()", "*3)", "2*^3)"):
        assert raises(ValueError, evaluate_expression, text), text
    assert value("3+2") == 5


def test_unbalanced():
    for text in ("(3", "3)", "((3)", "(3))", ")3(", "(2+3", ")3)", "(3(", "(3 4", "2+)4)"):
        assert raises(ValueError, evaluate_expression, text), text
    assert value("(3)") == 3


def test_operator_missing():
    for text in ("4 5", "4(5)", "(4)(5)", "(4)5", "1 2 + 3"):
        assert raises(ValueError, evaluate_expression, text), text
    assert value("4*(5)") == 20


def test_other_text():
    for text in (
        "3.5",
        "x",
        "2**3",
        "7//2",
        "1_000",
        "0x1f",
        "3 & 1",
        "1e3",
        "²",
        "3\n+4",
        "abs(3)",
        "1,2",
        "٣",
    ):
        assert raises(ValueError, evaluate_expression, text), text
    assert value("3\t+ 4") == 7


def test_malformed_before_division_by_zero():
    for text in ("1/0)", "1/0 2", "(5%0", "1/0 + x", "2^-1 +"):
        assert raises(ValueError, evaluate_expression, text), text
    assert raises(ZeroDivisionError, evaluate_expression, "1/0+2")


def test_deep():
    assert value("(" * 50 + "8" + ")" * 50) == 8
    assert value("1-(" * 49 + "1" + ")" * 49) == 0
    assert value("+".join(["1"] * 300)) == 300


def test_generated():
    rng = random.Random(4)

    def make(depth):
        if depth == 0:
            n = rng.randrange(0, 20)
            return str(n), n
        op = rng.choice("+-*/%s")
        left, a = make(depth - 1)
        if op == "s":
            return f"-({left})", -a
        right, b = make(rng.randrange(depth))
        if op in "/%" and b == 0:
            op = "+"
        text = f"({left}) {op} ({right})"
        if op == "+":
            return text, a + b
        if op == "-":
            return text, a - b
        if op == "*":
            return text, a * b
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return text, quotient if op == "/" else a - quotient * b

    for _ in range(60):
        text, expected = make(4)
        assert value(text) == expected, text
