def test_one_paragraph():
    lines = justify_text("a knight rides to the yard", 12)
    assert lines == ["a     knight", "rides to the", "yard"]


def test_two_paragraphs():
    assert justify_text("one two\n\nthree", 5) == ["one  ", "two", "", "three"]


def test_no_words():
    assert justify_text("", 5) == []
