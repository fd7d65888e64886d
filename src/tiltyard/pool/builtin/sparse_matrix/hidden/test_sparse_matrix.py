import random


def test_new_matrix():
    m = SparseMatrix(3, 4)
    assert m.shape == (3, 4)
    assert m.count() == 0 and m.entries() == []
    assert m[0, 0] == 0 and m[2, 3] == 0


def test_read_and_write():
    m = SparseMatrix(3, 3)
    m[1, 2] = 7
    m[2, 1] = -7
    m[1, 2] = 8
    assert (m[1, 2], m[2, 1], m[1, 1]) == (8, -7, 0)
    assert m.count() == 2


def test_entries_are_sorted():
    m = SparseMatrix(20, 20)
    for r, c in ((10, 2), (2, 10), (2, 9), (0, 19), (10, 1)):
        m[r, c] = r + c
    assert m.entries() == [(0, 19, 19), (2, 9, 11), (2, 10, 12), (10, 1, 11), (10, 2, 12)]


def test_writing_zero():
    m = matrix([[1, 2], [0, 3]])
    m[0, 1] = 0
    m[1, 0] = 0
    assert m.entries() == [(0, 0, 1), (1, 1, 3)]
    assert m.count() == 2 and m[0, 1] == 0


def test_index_out_of_range():
    m = matrix([[1, 2, 3], [4, 5, 6]])
    for r, c in ((2, 0), (0, 3), (-1, 0), (0, -1), (5, 5)):
        assert raises(IndexError, lambda r=r, c=c: m[r, c]), (r, c)
        assert raises(IndexError, m.__setitem__, (r, c), 1), (r, c)
        assert raises(IndexError, m.__setitem__, (r, c), 0), (r, c)
    assert dense(m) == [[1, 2, 3], [4, 5, 6]]


def test_bad_shape():
    for shape in ((0, 1), (1, 0), (-1, 2), (2, -1)):
        assert raises(ValueError, SparseMatrix, *shape), shape
    assert SparseMatrix(1, 1).shape == (1, 1)


def test_add():
    total = matrix([[1, 0, 2], [0, 0, 3]]) + matrix([[0, 5, 2], [0, 0, -1]])
    assert dense(total) == [[1, 5, 4], [0, 0, 2]]


def test_subtract_and_negate():
    a, b = matrix([[1, 0], [2, 3]]), matrix([[0, 4], [2, 1]])
    assert dense(a - b) == [[1, -4], [0, 2]]
    assert dense(b - a) == [[-1, 4], [0, -2]]
    assert dense(-a) == [[-1, 0], [-2, -3]]


def test_entries_that_become_zero():
    a, b = matrix([[1, -2], [0, 3]]), matrix([[-1, 2], [0, 1]])
    assert (a + b).entries() == [(1, 1, 4)]
    assert (a + b).count() == 1
    assert (a - a).count() == 0
    assert (a * 0).entries() == []
    assert (matrix([[1, 1]]) @ matrix([[2], [-2]])).count() == 0


def test_times_a_number():
    a = matrix([[1, 0], [-2, 3]])
    assert dense(a * 3) == [[3, 0], [-6, 9]]
    assert dense(-2 * a) == [[-2, 0], [4, -6]]
    assert (a * 0).shape == (2, 2)


def test_product():
    a, b = matrix([[1, 2, 0], [0, -1, 3]]), matrix([[2, 0], [1, 1], [0, 4]])
    assert dense(a @ b) == [[4, 2], [-1, 11]]
    assert dense(b @ a) == [[2, 4, 0], [1, 1, 3], [0, -4, 12]]


def test_product_shape():
    a, b = SparseMatrix(2, 5), SparseMatrix(5, 3)
    assert (a @ b).shape == (2, 3)
    a[1, 4] = 2
    b[4, 0] = 3
    assert (a @ b).entries() == [(1, 0, 6)]


def test_transpose():
    a = matrix([[1, 0, 2], [0, 3, 0]])
    assert a.transpose().shape == (3, 2)
    assert dense(a.transpose()) == [[1, 0], [0, 3], [2, 0]]
    assert dense(a.transpose().transpose()) == dense(a)


def test_shapes_that_do_not_fit():
    a, b = matrix([[1, 2, 3]]), matrix([[1], [2], [3]])
    assert raises(ValueError, lambda: a + b)
    assert raises(ValueError, lambda: a - b)
    assert raises(ValueError, lambda: a @ a)
    assert raises(ValueError, lambda: SparseMatrix(2, 2) + SparseMatrix(2, 3))
    assert dense(a @ b) == [[14]]


def test_operands_stay_as_they_are():
    a, b = matrix([[1, 2], [3, 4]]), matrix([[5, -2], [0, 1]])
    results = [a + b, a - b, a @ b, a * 2, 2 * a, -a, a.transpose()]
    assert dense(a) == [[1, 2], [3, 4]]
    assert dense(b) == [[5, -2], [0, 1]]
    for result in results:
        result[0, 0] = 99
    assert dense(a) == [[1, 2], [3, 4]] and dense(b) == [[5, -2], [0, 1]]


def test_results_do_not_follow_their_operands():
    a, zero = matrix([[1, 2]]), SparseMatrix(1, 2)
    results = [a + zero, zero + a, a * 1, a - zero]
    turned = a.transpose()
    a[0, 0] = 50
    zero[0, 1] = 60
    assert [dense(result) for result in results] == [[[1, 2]]] * 4
    assert dense(turned) == [[1], [2]]


def test_huge_shapes():
    size = 10**9
    a = SparseMatrix(size, size)
    a[0, size - 1] = 2
    a[size - 1, 5] = 3
    assert (a @ a).entries() == [(0, 5, 6)]
    assert (a + a).entries() == [(0, size - 1, 4), (size - 1, 5, 6)]
    assert a.transpose()[5, size - 1] == 3
    assert raises(IndexError, lambda: a[size, 0])


def test_product_of_many_entries():
    size = 10**6
    a = SparseMatrix(size, size)
    for n in range(300):
        a[n * 7 % 997, n] = n + 1
    b = a
    for _ in range(6):
        b = b + b
    product = b @ a.transpose()
    assert product.count() == 300
    assert product[7, 7] == 64 * 4 and product[0, 7] == 0


def test_against_lists():
    rng = random.Random(71)
    for _ in range(12):
        n, k, m = (rng.randrange(1, 5) for _ in range(3))
        a = [[rng.choice([0, 0, 1, -1, 2]) for _ in range(k)] for _ in range(n)]
        b = [[rng.choice([0, 0, 1, -1, 3]) for _ in range(m)] for _ in range(k)]
        expected = [[sum(a[i][j] * b[j][x] for j in range(k)) for x in range(m)] for i in range(n)]
        product = matrix(a) @ matrix(b)
        assert dense(product) == expected
        assert product.count() == sum(value != 0 for row in expected for value in row)
