def test_exact_fit():
    assert wrap("one two", 7) == ["one two"]
    assert wrap("one two three", 7) == ["one two", "three"]
    assert wrap("a b c d", 3) == ["a b", "c d"]


def test_one_too_many():
    assert wrap("one two", 6) == ["one", "two"]


def test_single_word():
    assert wrap("word", 10) == ["word"]
    assert wrap("word", 4) == ["word"]


def test_long_word_at_the_start():
    assert wrap("incomprehensible yes", 6) == ["incomp", "rehens", "ible", "yes"]


def test_words_follow_the_last_piece():
    assert wrap("abcdefg hi", 6) == ["abcdef", "g hi"]
    assert wrap("abcdefg hijkl", 6) == ["abcdef", "g", "hijkl"]


def test_long_word_in_the_middle():
    assert wrap("to abcdefgh", 5) == ["to", "abcde", "fgh"]


def test_long_word_of_two_full_lines():
    assert wrap("abcdefgh", 4) == ["abcd", "efgh"]
    assert wrap("abcdefgh i", 4) == ["abcd", "efgh", "i"]


def test_indent_is_part_of_the_width():
    got = wrap("the quick brown fox jumps over the lazy dog", 12, indent="... ")
    assert got == ["the quick", "... brown", "... fox", "... jumps", "... over the", "... lazy dog"]


def test_indent_and_a_long_word():
    assert wrap("abcdefghij", 4, indent="  ") == ["abcd", "  ef", "  gh", "  ij"]
    assert wrap("a bcdefg", 4, indent="-") == ["a", "-bcd", "-efg"]


def test_first_line_may_use_the_whole_width():
    assert wrap("ab cd ef", 5, indent="    ") == ["ab cd", "    e", "    f"]


def test_no_line_is_too_wide():
    text = "it was the best of times it was the worst of times, incontrovertibly so"
    for width in range(4, 30):
        assert all(len(line) <= width for line in wrap(text, width, indent=" > "))
        assert "".join(wrap(text, width)).replace(" ", "") == text.replace(" ", "")


def test_paragraphs():
    assert wrap("one\ntwo\n\n \nthree", 20) == ["one two", "", "three"]
    assert wrap("\n\nabcdef\n\nx y", 3) == ["abc", "def", "", "x y"]


def test_first_line_of_each_paragraph_has_no_indent():
    assert wrap("a b\n\nc d", 2, indent=".") == ["a", ".b", "", "c", ".d"]


def test_no_words():
    assert wrap("", 5) == []
    assert wrap(" \n\t\n", 5) == []


def test_white_space_between_words():
    assert wrap("  a \t b  ", 9) == ["a b"]


def test_too_narrow():
    raises(ValueError, wrap, "a", 0)
    raises(ValueError, wrap, "a", 3, "   ")
