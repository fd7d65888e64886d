def test_older():
    assert compare_versions("1.9", "1.10") == -1


def test_same():
    assert compare_versions("1.2", "1.2.0") == 0


def test_newer():
    assert compare_versions("2.0", "1.99.99") == 1
