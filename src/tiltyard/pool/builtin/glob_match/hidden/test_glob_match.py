import random
import re


def test_plain():
    assert matches("tilt", "tilt", "tilts", "til", "Tilt", "") == ["tilt"]


def test_empty_pattern():
    assert matches("", "", "a", " ") == [""]


def test_question_mark():
    assert matches("a?c", "abc", "ac", "abbc", "a?c", "a\nc") == ["abc", "a?c", "a\nc"]


def test_star():
    assert matches("a*z", "az", "abcz", "abc", "zaz", "azz", "a/.\nz") == ["az", "abcz", "azz", "a/.\nz"]


def test_stars_only():
    assert matches("*", "", "x", ".hidden", "a/b") == ["", "x", ".hidden", "a/b"]
    assert matches("**", "", "x", "xy") == ["", "x", "xy"]
    assert matches("*?", "", "x", "xy") == ["x", "xy"]


def test_star_must_backtrack():
    assert matches("*ab", "ab", "aab", "abab", "aba") == ["ab", "aab", "abab"]
    assert matches("a*bc*d", "abcbcd", "abd", "abxbcxd", "abc") == ["abcbcd", "abxbcxd"]


def test_whole_text_must_match():
    assert matches("b?", "abc", "bc", "bcd") == ["bc"]


def test_class_of_members():
    assert matches("x[abc]", "xa", "xb", "xd", "x", "xab", "x[") == ["xa", "xb"]


def test_class_of_ranges():
    assert matches("[a-cx0-9]", "a", "b", "c", "x", "d", "5", "9", "-", "") == ["a", "b", "c", "x", "5", "9"]
    assert matches("[c-c]", "c", "b", "-") == ["c"]


def test_negated_class():
    assert matches("[!a-c]", "a", "d", "!", "", "\n") == ["d", "!", "\n"]


def test_closing_bracket_as_member():
    assert matches("[]x]", "]", "x", "]x", "[]x]", "y") == ["]", "x"]
    assert matches("[!]x]", "]", "x", "y", "!") == ["y", "!"]


def test_hyphen_as_member():
    assert matches("[-x]", "-", "x", "w") == ["-", "x"]
    assert matches("[x-]", "-", "x", "y") == ["-", "x"]
    assert matches("[!-x]", "-", "x", "w") == ["w"]
    assert matches("[a-c-]", "b", "-", "d") == ["b", "-"]


def test_special_characters_inside_a_class():
    assert matches("[*?[]", "*", "?", "[", "x", "") == ["*", "?", "["]
    assert matches("[\\]", "\\", "]") == ["\\"]
    assert matches("[x!]", "x", "!", "y") == ["x", "!"]
    assert matches("[^a]", "^", "a", "b") == ["^", "a"]


def test_closing_bracket_outside():
    assert matches("a]", "a]", "a") == ["a]"]
    assert matches("[a]]", "a]", "a", "]") == ["a]"]


def test_escapes():
    assert matches("\\*\\?", "*?", "ab") == ["*?"]
    assert matches("\\[a]", "[a]", "a") == ["[a]"]
    assert matches("\\\\n", "\\n", "n", "\n") == ["\\n"]
    assert matches("\\a\\d", "ad", "\\a\\d", "a1") == ["ad"]


def test_other_special_characters_of_regular_expressions():
    assert matches("a.b+(c|d)$", "a.b+(c|d)$", "axbbc", "a.bbc") == ["a.b+(c|d)$"]


def test_malformed():
    for pattern in (
        "[",
        "[a",
        "[]",
        "[!]",
        "[!",
        "[]a",
        "a[b-",
        "[z-a]",
        "[a9-0]",
        "\\",
        "a\\",
        "[a]\\",
        "x*[",
    ):
        for text in ("a", "", "zzz"):
            assert raises(ValueError, glob_match, pattern, text), pattern
    assert glob_match("[a]", "a") is True


def test_many_stars():
    assert glob_match("*a" * 100, "a" * 99 + "b" * 101) is False
    assert glob_match("a*" * 60 + "b", "a" * 200) is False
    assert glob_match("*a" * 100, "a" * 200) is True


def test_generated():
    rng = random.Random(19)
    pieces = {"*": ".*", "?": ".", "a": "a", "b": "b", "[ab]": "[ab]", "[!a]": "[^a]", "\\*": r"\*"}
    found = set()
    for _ in range(150):
        parts = [rng.choice(list(pieces)) for _ in range(rng.randrange(1, 6))]
        text = "".join(rng.choice("abc*") for _ in range(rng.randrange(0, 6)))
        expected = re.fullmatch("".join(pieces[p] for p in parts), text, re.DOTALL) is not None
        assert glob_match("".join(parts), text) is expected, (parts, text)
        found.add(expected)
    assert found == {True, False}
