def test_shorter_last():
    assert list(chunked([1, 2, 3, 4, 5], 2)) == [[1, 2], [3, 4], [5]]


def test_text():
    assert list(chunked("abcd", 4)) == [["a", "b", "c", "d"]]
