import random


def test_greedy():
    text = "a lance a shield and a horse"
    assert word_wrap(text, 9) == ["a lance a", "shield", "and a", "horse"]


def test_line_exactly_full():
    assert word_wrap("four five six", 9) == ["four five", "six"]
    assert word_wrap("four five six", 8) == ["four", "five six"]


def test_word_exactly_as_wide():
    assert word_wrap("stone at stone", 5) == ["stone", "at", "stone"]


def test_width_one():
    assert word_wrap("ab c", 1) == ["a", "b", "c"]


def test_white_space_of_all_kinds():
    assert word_wrap("  one\ttwo\n\n three   four \n", 9) == ["one two", "three", "four"]


def test_newlines_do_not_break_lines():
    assert word_wrap("red\nblue\ngreen", 20) == ["red blue green"]


def test_nothing_to_wrap():
    assert word_wrap("", 5) == []
    assert word_wrap(" \n\t ", 5) == []
    assert word_wrap("x", 5) == ["x"]


def test_long_word_starts_on_a_new_line():
    assert word_wrap("go incredibly", 6) == ["go", "incred", "ibly"]


def test_long_word_first():
    assert word_wrap("abcdefgh ij", 3) == ["abc", "def", "gh", "ij"]


def test_rest_of_a_long_word_takes_following_words():
    assert word_wrap("abcdefgh i jk", 4) == ["abcd", "efgh", "i jk"]
    assert word_wrap("abcdefghi j kl", 4) == ["abcd", "efgh", "i j", "kl"]


def test_long_word_cut_evenly_leaves_no_empty_line():
    assert word_wrap("abcdef", 3) == ["abc", "def"]
    assert word_wrap("abcdef gh abcdef", 3) == ["abc", "def", "gh", "abc", "def"]


def test_two_long_words():
    assert word_wrap("aaaaa bbbbb", 3) == ["aaa", "aa", "bbb", "bb"]


def test_hyphens_are_no_break():
    assert word_wrap("well-known jousts", 11) == ["well-known", "jousts"]
    assert word_wrap("a well-known", 8) == ["a", "well-kno", "wn"]


def test_bad_width():
    assert raises(ValueError, word_wrap, "a b", 0)
    assert raises(ValueError, word_wrap, "", -3)
    assert word_wrap("a b", 3) == ["a b"]


def test_generated_short_words():
    rng = random.Random(2)
    for width in range(6, 30):
        words = ["x" * rng.randrange(1, 7) for _ in range(40)]
        lines = word_wrap(" ".join(words), width)
        assert " ".join(lines).split(" ") == words
        assert all(len(line) <= width for line in lines)
        for line, following in zip(lines, lines[1:], strict=False):
            assert len(line) + 1 + len(following.split(" ")[0]) > width
