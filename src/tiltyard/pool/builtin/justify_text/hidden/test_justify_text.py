import random


def test_even_gaps():
    assert justify_text("aa bb cc dddddddd", 10) == ["aa  bb  cc", "dddddddd"]


def test_wider_gaps_come_first():
    assert justify_text("aa bb cc ddddddddd", 9) == ["aa  bb cc", "ddddddddd"]
    assert justify_text("a b c d eeeeeeeeeee", 12) == ["a   b   c  d", "eeeeeeeeeee"]
    assert justify_text("a b c d eeeeeeeeee", 11) == ["a   b  c  d", "eeeeeeeeee"]


def test_line_that_is_full_already():
    assert justify_text("ab cd ef", 5) == ["ab cd", "ef"]


def test_single_word_line_is_filled_up():
    assert justify_text("lance shields", 8) == ["lance   ", "shields"]
    assert justify_text("abcd efgh", 4) == ["abcd", "efgh"]


def test_last_line_is_not_spread():
    assert justify_text("one two", 20) == ["one two"]
    assert justify_text("aaaa bbbb c d", 9) == ["aaaa bbbb", "c d"]


def test_as_many_words_as_fit():
    assert justify_text("a bb a bb a bb a", 4) == ["a bb", "a bb", "a bb", "a"]
    assert justify_text("aa bb c", 6) == ["aa  bb", "c"]


def test_white_space_does_not_matter():
    assert justify_text("  to \t ride\n  a\thorse ", 9) == ["to ride a", "horse"]
    assert justify_text("to\nride\na\nhorse", 9) == ["to ride a", "horse"]


def test_paragraphs():
    expected = ["a   b", "ccc", "", "d", "", "eee f"]
    assert justify_text("a b ccc\n\nd\n\neee f", 5) == expected


def test_last_line_of_every_paragraph():
    assert justify_text("aa bb\n\ncc dd", 8) == ["aa bb", "", "cc dd"]


def test_several_blank_lines():
    assert justify_text("p q\n\n\n\nr", 6) == ["p q", "", "r"]
    assert justify_text("p q\n \t \nr", 6) == ["p q", "", "r"]


def test_blank_lines_at_the_ends():
    assert justify_text("\n\n p q\n\nr s\n\n\n", 6) == ["p q", "", "r s"]


def test_nothing_to_set():
    assert justify_text(" \n\n\t\n", 7) == []
    assert justify_text("", 1) == []
    assert justify_text("x", 1) == ["x"]


def test_width_one():
    assert justify_text("a b\n\nc", 1) == ["a", "b", "", "c"]


def test_word_too_long():
    assert raises(ValueError, justify_text, "a toolong b", 6)
    assert raises(ValueError, justify_text, "fine\n\ntoolong", 6)
    assert justify_text("a toolon b", 6) == ["a     ", "toolon", "b"]


def test_bad_width():
    assert raises(ValueError, justify_text, "a", 0)
    assert raises(ValueError, justify_text, "", 0)
    assert raises(ValueError, justify_text, "", -1)
    assert justify_text("a b", 3) == ["a b"]


def test_generated():
    rng = random.Random(41)
    for width in range(7, 32):
        words = ["w" * rng.randrange(1, 8) for _ in range(45)]
        lines = justify_text(" ".join(words), width)
        assert [word for line in lines for word in line.split()] == words
        assert lines[-1] == " ".join(lines[-1].split())
        for line, following in zip(lines, lines[1:], strict=False):
            assert len(line) == width
            parts = line.split()
            assert len(" ".join(parts)) + 1 + len(following.split()[0]) > width
            gaps = []
            for character, before in zip(line[1:], line, strict=False):
                if character == " " and len(parts) > 1:
                    if before != " ":
                        gaps.append(0)
                    gaps[-1] += 1
            assert gaps == sorted(gaps, reverse=True)
            assert not gaps or gaps[0] - gaps[-1] <= 1
            assert len(gaps) == len(parts) - 1
