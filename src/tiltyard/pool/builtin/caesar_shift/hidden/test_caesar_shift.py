def test_simple():
    assert caesar_shift("tilt", 2) == "vknv"


def test_wraps_at_the_end():
    assert caesar_shift("wxyz", 4) == "abcd"
    assert caesar_shift("Z", 1) == "A"


def test_wraps_at_the_start():
    assert caesar_shift("abcd", -4) == "wxyz"
    assert caesar_shift("A", -1) == "Z"


def test_case_is_kept():
    assert caesar_shift("AbYz", 2) == "CdAb"


def test_neighbours_of_the_alphabet_stay():
    assert caesar_shift("@a[`z{A", 1) == "@b[`a{B"


def test_other_characters_stay():
    assert caesar_shift("m, 42\tn\n_o", 1) == "n, 42\to\n_p"


def test_letters_outside_ascii_stay():
    assert caesar_shift("né ßa Ωb", 13) == "aé ßn Ωo"


def test_zero():
    assert caesar_shift("Same", 0) == "Same"
    assert caesar_shift("Same", 1) == "Tbnf"


def test_full_turns():
    assert caesar_shift("Round", 26) == "Round"
    assert caesar_shift("Round", 27) == "Spvoe"
    assert caesar_shift("Round", 26 * 1000 + 1) == "Spvoe"


def test_large_negative():
    assert caesar_shift("Back", -53) == "Azbj"


def test_empty():
    assert caesar_shift("", 7) == ""
    assert caesar_shift("q", 7) == "x"


def test_there_and_back():
    text = "The five boxing wizards jump QUICKLY, 7 times."
    for shift in range(-30, 60):
        there = caesar_shift(text, shift)
        assert caesar_shift(there, -shift) == text
        assert (there == text) == (shift % 26 == 0)


def test_every_letter():
    letters = "abcdefghijklmnopqrstuvwxyz"
    for shift in range(1, 26):
        expected = "".join(chr((ord(c) - 97 + shift) % 26 + 97) for c in letters)
        assert caesar_shift(letters, shift) == expected
        assert caesar_shift(letters.upper(), shift) == expected.upper()
