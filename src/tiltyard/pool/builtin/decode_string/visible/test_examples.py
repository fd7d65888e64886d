def test_repeat():
    assert decode_string("3[ab]c") == "abababc"


def test_nested():
    assert decode_string("2[a3[b]]") == "abbbabbb"


def test_plain():
    assert decode_string("xyz") == "xyz"
