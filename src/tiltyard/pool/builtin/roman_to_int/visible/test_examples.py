def test_small():
    assert roman_to_int("XIV") == 14


def test_large():
    assert roman_to_int("MCMXCIV") == 1994


def test_single_letters():
    assert [roman_to_int(letter) for letter in "IVXLCDM"] == [1, 5, 10, 50, 100, 500, 1000]
