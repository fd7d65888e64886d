def test_wildcards():
    assert glob_match("*.tx?", "notes.txt") is True


def test_class():
    assert glob_match("[a-c]*", "dab") is False
    assert glob_match("[a-c]*", "bad") is True


def test_escape():
    assert glob_match("\\*[!0-9]", "*x") is True
