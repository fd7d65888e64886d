import itertools


def test_no_rest():
    assert list(chunked([3, 1, 4, 1, 5, 9], 3)) == [[3, 1, 4], [1, 5, 9]]


def test_rest_of_one():
    assert list(chunked([3, 1, 4, 1, 5, 9, 2], 3)) == [[3, 1, 4], [1, 5, 9], [2]]


def test_size_one():
    assert list(chunked("xyz", 1)) == [["x"], ["y"], ["z"]]


def test_size_larger_than_the_iterable():
    assert list(chunked([7, 8], 10)) == [[7, 8]]


def test_empty():
    assert list(chunked([], 2)) == []
    assert list(chunked("", 1)) == []
    assert list(chunked("q", 1)) == [["q"]]


def test_range():
    assert list(chunked(range(10, 15), 2)) == [[10, 11], [12, 13], [14]]


def test_falsy_items():
    assert list(chunked([0, None, "", False, 0], 2)) == [[0, None], ["", False], [0]]


def test_generator():
    assert list(chunked((n * n for n in range(5)), 3)) == [[0, 1, 4], [9, 16]]


def test_result_is_an_iterator():
    chunks = chunked("abcde", 2)
    assert next(chunks) == ["a", "b"]
    assert next(chunks) == ["c", "d"]
    assert next(chunks) == ["e"]
    assert next(chunks, "over") == "over"


def test_endless():
    chunks = chunked(itertools.count(5), 3)
    assert next(chunks) == [5, 6, 7]
    assert next(chunks) == [8, 9, 10]


def test_takes_nothing_before_it_is_asked():
    taken = []

    def source():
        for n in range(9):
            taken.append(n)
            yield n

    chunks = chunked(source(), 4)
    assert taken == []
    assert next(chunks) == [0, 1, 2, 3]
    assert taken == [0, 1, 2, 3]
    assert next(chunks) == [4, 5, 6, 7]
    assert taken == [0, 1, 2, 3, 4, 5, 6, 7]


def test_new_lists():
    values = [1, 2, 3, 4]
    chunks = chunked(values, 4)
    first = next(chunks)
    first.append(5)
    assert values == [1, 2, 3, 4]
    assert list(chunked(values, 2)) == [[1, 2], [3, 4]]


def test_bad_size():
    assert raises(ValueError, lambda: next(chunked([1, 2], 0)))
    assert raises(ValueError, lambda: next(chunked([1, 2], -1)))
    assert raises(ValueError, lambda: next(chunked([], 0), None))
    assert next(chunked([1, 2], 1)) == [1]


def test_all_sizes():
    for count in range(12):
        for size in range(1, 7):
            expected = [list(range(i, min(i + size, count))) for i in range(0, count, size)]
            assert list(chunked(iter(range(count)), size)) == expected
