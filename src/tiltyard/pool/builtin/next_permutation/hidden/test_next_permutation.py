from itertools import permutations


def test_last_two_swapped():
    assert step([4, 7, 8, 9]) == (True, [4, 7, 9, 8])


def test_tail_is_reversed():
    assert step([1, 4, 3, 2]) == (True, [2, 1, 3, 4])


def test_smallest_larger_value_is_taken():
    assert step([2, 6, 5, 3, 1]) == (True, [3, 1, 2, 5, 6])


def test_pivot_in_the_middle():
    assert step([5, 2, 8, 6, 3]) == (True, [5, 3, 2, 6, 8])


def test_equal_values_in_the_tail():
    assert step([1, 3, 3, 2]) == (True, [2, 1, 3, 3])
    assert step([2, 3, 2, 2]) == (True, [3, 2, 2, 2])


def test_last_equal_to_pivot():
    assert step([1, 5, 1]) == (True, [5, 1, 1])
    assert step([2, 4, 3, 2]) == (True, [3, 2, 2, 4])


def test_last_arrangement():
    assert step([9, 6, 6, 0]) == (False, [0, 6, 6, 9])


def test_all_equal():
    assert step([7, 7, 7]) == (False, [7, 7, 7])
    assert step([7, 7, 8]) == (True, [7, 8, 7])


def test_empty_and_single():
    assert step([]) == (False, [])
    assert step([3]) == (False, [3])
    assert step([3, 4]) == (True, [4, 3])


def test_negative_values():
    assert step([-1, -3, -2]) == (True, [-1, -2, -3])
    assert step([-1, -2, -3]) == (False, [-3, -2, -1])


def test_changes_the_callers_list():
    values = [1, 2, 2]
    alias = values
    assert next_permutation(values) is True
    assert alias == [2, 1, 2]
    assert next_permutation(alias) is True
    assert values == [2, 2, 1]


def test_all_arrangements_in_order():
    for start in ([1, 2, 3, 4], [0, 0, 1, 2], [1, 1, 2, 2, 2], [5, 6]):
        expected = [list(p) for p in sorted(set(permutations(start)))]
        values = list(start)
        seen = [list(values)]
        for _ in range(len(expected) - 1):
            assert next_permutation(values) is True
            seen.append(list(values))
        assert seen == expected
        assert next_permutation(values) is False
        assert values == start


def test_long_list():
    size = 3000
    assert step([1] + list(range(size, 1, -1))) == (True, [2, 1] + list(range(3, size + 1)))
