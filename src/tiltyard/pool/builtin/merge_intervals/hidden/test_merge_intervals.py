import random


def test_disjoint_come_out_sorted():
    assert merge_intervals([(20, 25), (0, 5), (10, 15)]) == [(0, 5), (10, 15), (20, 25)]


def test_sharing_one_point():
    assert merge_intervals([(7, 9), (3, 7)]) == [(3, 9)]


def test_neighbouring_integers_stay_apart():
    assert merge_intervals([(7, 9), (3, 6)]) == [(3, 6), (7, 9)]


def test_one_inside_the_other():
    assert merge_intervals([(0, 100), (10, 20), (30, 40), (90, 95)]) == [(0, 100)]


def test_chain():
    assert merge_intervals([(1, 3), (5, 8), (3, 5), (8, 13)]) == [(1, 13)]


def test_long_one_bridges_later_ones():
    assert merge_intervals([(1, 50), (2, 3), (40, 60), (61, 70)]) == [(1, 60), (61, 70)]


def test_same_start():
    assert merge_intervals([(4, 9), (4, 5), (4, 12), (15, 15)]) == [(4, 12), (15, 15)]


def test_duplicates():
    assert merge_intervals([(2, 5), (2, 5)]) == [(2, 5)]


def test_points():
    assert merge_intervals([(5, 5), (3, 3), (5, 5), (4, 4)]) == [(3, 3), (4, 4), (5, 5)]
    assert merge_intervals([(5, 5), (1, 5)]) == [(1, 5)]


def test_negative():
    assert merge_intervals([(-3, 2), (-10, -5), (-6, -4)]) == [(-10, -4), (-3, 2)]


def test_empty_and_single():
    assert merge_intervals([]) == []
    assert merge_intervals([[6, 8]]) == [(6, 8)]


def test_lists_and_tuples_mixed():
    result = merge_intervals([[4, 6], (1, 2), [2, 3], (4, 5)])
    assert result == [(1, 3), (4, 6)]
    assert all(type(pair) is tuple for pair in result)


def test_backward_interval_raises():
    assert raises(ValueError, merge_intervals, [(9, 8)])
    assert raises(ValueError, merge_intervals, [(1, 10), (5, 4)])
    assert raises(ValueError, merge_intervals, [[0, -1], [2, 3]])
    assert merge_intervals([(8, 9)]) == [(8, 9)]


def test_arguments_are_not_changed():
    intervals = [[5, 8], [1, 2], [2, 6]]
    assert merge_intervals(intervals) == [(1, 8)]
    assert intervals == [[5, 8], [1, 2], [2, 6]]


def test_generated():
    rng = random.Random(31)
    for count in range(1, 40):
        intervals = []
        for _ in range(count):
            start = rng.randrange(0, 120)
            intervals.append((start, start + rng.choice([0, 1, 2, 5, 9])))
        # Independent oracle on half points, so that neighbouring integers stay apart.
        covered = {x for s, e in intervals for x in range(2 * s, 2 * e + 1)}
        expected = []
        for x in sorted(covered):
            if x - 1 not in covered:
                expected.append([x // 2, x // 2])
            expected[-1][1] = (x + 1) // 2 if x % 2 else x // 2
        assert merge_intervals(intervals) == [tuple(pair) for pair in expected]
