import random


def test_text_on_both_sides():
    assert decode_string("pre2[mid]post") == "premidmidpost"


def test_two_in_a_row():
    assert decode_string("2[x]3[y]") == "xxyyy"


def test_several_digits():
    assert decode_string("12[k]") == "k" * 12
    assert decode_string("100[uv]w") == "uv" * 100 + "w"


def test_leading_zeros():
    assert decode_string("007[q]") == "q" * 7


def test_zero_times():
    assert decode_string("a0[bcd]e") == "ae"
    assert decode_string("0[2[x]]") == ""
    assert decode_string("1[z]") == "z"


def test_nested_with_text_around():
    assert decode_string("2[p2[q]r]s") == "pqqrpqqrs"


def test_three_deep():
    assert decode_string("2[3[2[m]n]]") == "mmnmmnmmn" * 2


def test_siblings_inside():
    assert decode_string("2[2[a]b2[c]]") == "aabccaabcc"


def test_empty():
    assert decode_string("") == ""
    assert decode_string("3[]") == ""
    assert decode_string("2[4[]d]") == "dd"


def test_other_characters_stand_for_themselves():
    assert decode_string("2[ (a), ]-\n") == " (a),  (a), -\n"
    assert decode_string("2[é²]") == "é²é²"


def test_number_without_bracket():
    for text in ("3", "a2b", "2[a3]", "4]", "2 [a]", "12", "2[3a]", "0[3]", "1[2][a]", "x1[1]0[b]"):
        assert raises(ValueError, decode_string, text), text
    assert decode_string("2[a]") == "aa"


def test_bracket_without_number():
    for text in ("[a]", "2[[a]]", "x[y]", "2[a][b]", "[]"):
        assert raises(ValueError, decode_string, text), text
    assert decode_string("2[b]x") == "bbx"


def test_not_closed():
    for text in ("2[a", "2[a3[b]", "5["):
        assert raises(ValueError, decode_string, text), text
    assert decode_string("2[a3[b]]c") == "abbbabbbc"


def test_closes_nothing():
    for text in ("]", "a]", "2[a]]", "]2[a]"):
        assert raises(ValueError, decode_string, text), text
    assert decode_string("2[a]1[b]") == "aab"


def test_every_digit():
    for digit in "123456789":
        assert decode_string(f"{digit}[ab]") == "ab" * int(digit)
    assert decode_string("0097[q]") == "q" * 97


def test_hundred_deep():
    assert decode_string("1[" * 99 + "2[o]" + "]" * 99) == "oo"


def test_generated():
    rng = random.Random(14)

    def make(depth):
        text, value = "", ""
        for _ in range(rng.randrange(1, 4)):
            if depth and rng.random() < 0.6:
                count = rng.randrange(0, 4)
                inner_text, inner_value = make(depth - 1)
                text += f"{count}[{inner_text}]"
                value += inner_value * count
            else:
                letters = "".join(rng.choice("abc ") for _ in range(rng.randrange(0, 3)))
                text += letters
                value += letters
        return text, value

    for _ in range(80):
        text, value = make(3)
        assert decode_string("s" + text) == "s" + value
