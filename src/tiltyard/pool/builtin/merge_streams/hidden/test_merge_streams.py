import itertools
import random


def test_two_streams():
    assert list(merge_streams([1, 5, 9], [2, 3, 10])) == [1, 2, 3, 5, 9, 10]


def test_no_streams():
    assert list(merge_streams()) == []
    assert list(merge_streams([], (), iter([]))) == []
    assert list(merge_streams([], [7])) == [7]


def test_one_stream():
    assert list(merge_streams([2, 2, 6])) == [2, 2, 6]
    assert list(merge_streams([], [6, 6, 7])) == [6, 6, 7]


def test_equal_items_are_all_kept():
    assert list(merge_streams([1, 1, 2], [1, 2, 2], [2])) == [1, 1, 1, 2, 2, 2, 2]


def test_kinds_of_iterables():
    merged = merge_streams((1, 7), range(2, 9, 3), (n * n for n in range(3)))
    assert list(merged) == [0, 1, 1, 2, 4, 5, 7, 8]


def test_equal_keys_in_order_of_the_streams():
    first, second = [(1, "a"), (2, "a"), (2, "b")], [(1, "A"), (2, "A"), (3, "A")]
    merged = list(merge_streams(first, second, key=lambda item: item[0]))
    assert merged == [(1, "a"), (1, "A"), (2, "a"), (2, "b"), (2, "A"), (3, "A")]
    merged = list(merge_streams(second, first, key=lambda item: item[0]))
    assert merged == [(1, "A"), (1, "a"), (2, "A"), (2, "a"), (2, "b"), (3, "A")]


def test_items_that_cannot_be_compared():
    one = [{"at": 1, "who": "x"}, {"at": 4, "who": None}]
    two = [{"at": 1, "who": 5}, {"at": 2, "who": "y"}]
    merged = list(merge_streams(one, two, key=lambda item: item["at"]))
    assert [item["who"] for item in merged] == ["x", 5, "y", None]


def test_falling_key():
    merged = merge_streams([9, 5, 1], [8, 2], key=lambda n: -n)
    assert list(merged) == [9, 8, 5, 2, 1]


def test_key_is_called_once_for_each_item():
    seen = []

    def key(item):
        seen.append(item)
        return item % 10

    merged = list(merge_streams([11, 22, 43], [1, 12, 33], [5], key=key))
    assert merged == [11, 1, 22, 12, 43, 33, 5]
    assert sorted(seen) == [1, 5, 11, 12, 22, 33, 43]


def test_endless_streams():
    merged = merge_streams(itertools.count(0, 3), itertools.count(1, 5), [4])
    assert [next(merged) for _ in range(8)] == [0, 1, 3, 4, 6, 6, 9, 11]


def test_nothing_is_taken_before_it_is_asked():
    one, two = Source(1, 2), Source(3)
    merged = merge_streams(one, two)
    assert (one.asked, two.asked) == (0, 0)
    assert next(merged) == 1
    assert (one.asked, two.asked) == (1, 1)


def test_at_most_one_item_ahead():
    one, two = Source(1, 2, 3, 9), Source(5, 6)
    merged = merge_streams(one, two)
    taken = []
    for _ in range(5):
        item = next(merged)
        taken.append((item, one.asked, two.asked))
    assert taken == [(1, 1, 1), (2, 2, 1), (3, 3, 1), (5, 4, 1), (6, 4, 2)]


def test_ended_streams_are_not_asked_again():
    one, two = Source(1), Source(2, 3, 4)
    assert list(merge_streams(one, two, Source())) == [1, 2, 3, 4]
    assert (one.ended, two.ended) == (1, 1)
    assert (one.asked, two.asked) == (2, 4)


def test_disorder_in_one_stream():
    merged = merge_streams([1, 3, 2])
    assert next(merged) == 1
    assert next(merged) == 3
    assert raises(ValueError, next, merged)


def test_disorder_among_others():
    merged = merge_streams([1, 5, 4], [2, 6, 7], [3])
    assert [next(merged) for _ in range(4)] == [1, 2, 3, 5]
    assert raises(ValueError, next, merged)


def test_disorder_is_not_seen_too_early():
    merged = merge_streams([8, 0], [1, 2, 3])
    assert [next(merged) for _ in range(4)] == [1, 2, 3, 8]
    assert raises(ValueError, next, merged)


def test_disorder_by_key():
    merged = merge_streams(["a", "bbb", "cc"], key=lambda s: len(s))
    assert [next(merged), next(merged)] == ["a", "bbb"]
    assert raises(ValueError, next, merged)
    assert list(merge_streams(["c", "bb", "aa"], key=lambda s: len(s))) == ["c", "bb", "aa"]


def test_falsy_items():
    assert list(merge_streams([0, 0, 1], [0])) == [0, 0, 0, 1]
    merged = merge_streams([None, ""], ["x"], key=lambda item: 2 if item is None else 5)
    assert list(merged) == [None, "", "x"]


def test_many_streams():
    streams = [[n, n + 100, n + 200] for n in range(100)]
    assert list(merge_streams(*reversed(streams))) == list(range(300))


def test_generated():
    rng = random.Random(91)
    for _ in range(30):
        streams = []
        for number in range(rng.randrange(1, 6)):
            keys = sorted(rng.randrange(6) for _ in range(rng.randrange(0, 6)))
            streams.append([(key, number, place) for place, key in enumerate(keys)])
        expected = sorted(item for stream in streams for item in stream)
        merged = merge_streams(*streams, key=lambda item: item[0])
        assert list(merged) == expected
