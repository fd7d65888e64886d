def test_a_line_may_be_full():
    assert wrap("hello dear", 10) == ["hello dear"]


def test_long_word_first():
    assert wrap("abcdefghijkl", 5) == ["abcde", "fghij", "kl"]


def test_indent_counts():
    assert wrap("aa bb cc dd", 5, indent="  ") == ["aa bb", "  cc", "  dd"]
