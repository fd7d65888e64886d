def test_precedence():
    assert evaluate_expression("2 + 3 * 4") == 14


def test_parentheses_and_sign():
    assert evaluate_expression("(2 + 3) * -4") == -20


def test_division_drops_the_fraction():
    assert evaluate_expression("-7 / 2") == -3


def test_power_groups_from_the_right():
    assert evaluate_expression("2 ^ 3 ^ 2") == 512
