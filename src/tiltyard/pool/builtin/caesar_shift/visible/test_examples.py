def test_forward():
    assert caesar_shift("abc xyz", 3) == "def abc"


def test_backward():
    assert caesar_shift("Hello!", -1) == "Gdkkn!"
