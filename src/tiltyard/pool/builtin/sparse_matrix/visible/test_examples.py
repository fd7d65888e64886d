def test_entries():
    a = SparseMatrix(2, 3)
    a[0, 2] = 5
    a[1, 0] = -1
    assert a.entries() == [(0, 2, 5), (1, 0, -1)]
    assert (a[0, 2], a[0, 0], a.shape, a.count()) == (5, 0, (2, 3), 2)


def test_operators():
    a = SparseMatrix(2, 3)
    a[0, 2] = 5
    a[1, 0] = -1
    assert (a + a)[0, 2] == 10
    assert (a @ a.transpose()).entries() == [(0, 0, 25), (1, 1, 1)]
    assert (a - a).count() == 0
