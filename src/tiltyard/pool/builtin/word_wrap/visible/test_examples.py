def test_two_lines():
    assert word_wrap("the quick brown fox", 10) == ["the quick", "brown fox"]


def test_long_word():
    assert word_wrap("an elephantine a", 5) == ["an", "eleph", "antin", "e a"]


def test_everything_fits():
    assert word_wrap("all on one line", 40) == ["all on one line"]
