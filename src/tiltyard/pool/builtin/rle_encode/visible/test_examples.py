def test_runs():
    assert rle_encode("aaabcc") == [("a", 3), ("b", 1), ("c", 2)]


def test_a_character_may_come_back():
    assert rle_encode("abab") == [("a", 1), ("b", 1), ("a", 1), ("b", 1)]


def test_one_character():
    assert rle_encode("z") == [("z", 1)]
