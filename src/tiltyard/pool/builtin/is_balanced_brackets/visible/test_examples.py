def test_balanced():
    assert is_balanced_brackets("f(x[0], {})") is True


def test_crossed():
    assert is_balanced_brackets("([)]") is False


def test_left_open():
    assert is_balanced_brackets("((") is False
