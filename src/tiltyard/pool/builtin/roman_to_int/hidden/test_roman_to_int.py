def test_units():
    assert [roman_to_int(to_roman(n)) for n in range(1, 10)] == list(range(1, 10))


def test_subtractive_pairs():
    pairs = {"IV": 4, "IX": 9, "XL": 40, "XC": 90, "CD": 400, "CM": 900}
    assert {pair: roman_to_int(pair) for pair in pairs} == pairs


def test_additive():
    assert roman_to_int("MDCLXVI") == 1666


def test_repeated_letters():
    assert roman_to_int("CCCXXXIII") == 333


def test_longest():
    assert roman_to_int("MMMDCCCLXXXVIII") == 3888


def test_bounds():
    assert roman_to_int("I") == 1
    assert roman_to_int("MMMCMXCIX") == 3999
    assert raises(ValueError, roman_to_int, "MMMM")


def test_places_left_out():
    assert roman_to_int("MV") == 1005
    assert roman_to_int("DIX") == 509
    assert roman_to_int("MMXX") == 2020


def test_every_number():
    assert [roman_to_int(to_roman(n)) for n in range(1, 4000, 23)] == list(range(1, 4000, 23))
    assert [roman_to_int(to_roman(n)) for n in range(1890, 2010)] == list(range(1890, 2010))


def test_empty_and_white_space():
    for text in ("", " ", " X", "X ", "X\n", "X I"):
        assert raises(ValueError, roman_to_int, text), text
    assert roman_to_int("XI") == 11


def test_other_characters():
    for text in ("A", "XIZ", "10", "X1", "-X", "Ⅷ"):
        assert raises(ValueError, roman_to_int, text), text
    assert roman_to_int("VIII") == 8


def test_lower_case():
    for text in ("xiv", "Xiv", "mm", "iX"):
        assert raises(ValueError, roman_to_int, text), text
    assert roman_to_int("XV") == 15


def test_repeated_too_often():
    for text in ("XXXX", "CCCC", "VIIII", "LXXXX", "VV", "LL", "DD", "MMMMM"):
        assert raises(ValueError, roman_to_int, text), text
    assert roman_to_int("LXXX") == 80


def test_wrong_subtraction():
    for text in ("IL", "IC", "ID", "IM", "VX", "XD", "XM", "LC", "DM", "VL", "IIX", "XXC", "CCM"):
        assert raises(ValueError, roman_to_int, text), text
    assert roman_to_int("XLIX") == 49


def test_wrong_order():
    for text in (
        "IVI",
        "IXI",
        "IXV",
        "IVIV",
        "IXIX",
        "XCX",
        "XCL",
        "XCXC",
        "CMC",
        "CMD",
        "CDC",
        "XLX",
        "IXX",
        "VIX",
        "IVX",
    ):
        assert raises(ValueError, roman_to_int, text), text
    assert roman_to_int("CDXLIV") == 444


def test_every_short_text():
    from itertools import product

    valid = {to_roman(n): n for n in range(1, 4000)}
    for size in (1, 2, 3):
        for letters in product("IVXL" if size == 3 else "IVXLCDM", repeat=size):
            text = "".join(letters)
            if text in valid:
                assert roman_to_int(text) == valid[text]
            else:
                assert raises(ValueError, roman_to_int, text), text
