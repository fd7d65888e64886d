import random


def test_new_buffer():
    buffer = RingBuffer(4)
    assert len(buffer) == 0
    assert list(buffer) == []
    assert buffer.capacity == 4
    assert buffer.is_full is False


def test_append_below_capacity():
    buffer = RingBuffer(3)
    assert buffer.append("p") is None
    assert buffer.append("q") is None
    assert list(buffer) == ["p", "q"]
    assert len(buffer) == 2


def test_append_returns_what_was_dropped():
    buffer = RingBuffer(2)
    assert [buffer.append(n) for n in range(5)] == [None, None, 0, 1, 2]
    assert list(buffer) == [3, 4]


def test_is_full():
    buffer = filled(2, "x")
    assert buffer.is_full is False
    buffer.append("y")
    assert buffer.is_full is True
    buffer.append("z")
    assert buffer.is_full is True
    assert buffer.pop_oldest() == "y"
    assert buffer.is_full is False


def test_pop_oldest():
    buffer = filled(3, "abcd")
    assert buffer.pop_oldest() == "b"
    assert buffer.pop_oldest() == "c"
    assert list(buffer) == ["d"]
    assert len(buffer) == 1


def test_pop_from_empty():
    buffer = filled(2, [1])
    assert buffer.pop_oldest() == 1
    assert raises(IndexError, buffer.pop_oldest)
    assert raises(IndexError, RingBuffer(1).pop_oldest)


def test_append_after_pop_fills_the_gap():
    buffer = filled(3, [1, 2, 3, 4])
    assert buffer.pop_oldest() == 2
    assert buffer.append(5) is None
    assert buffer.append(6) == 3
    assert list(buffer) == [4, 5, 6]


def test_index_from_both_ends():
    buffer = filled(3, [5, 6, 7, 8, 9])
    assert [buffer[i] for i in (0, 1, 2)] == [7, 8, 9]
    assert [buffer[i] for i in (-1, -2, -3)] == [9, 8, 7]


def test_index_of_a_buffer_that_is_not_full():
    buffer = filled(5, [1, 2])
    assert (buffer[1], buffer[-2]) == (2, 1)
    assert raises(IndexError, lambda: buffer[2])
    assert raises(IndexError, lambda: buffer[-3])


def test_index_out_of_range():
    buffer = filled(2, "abc")
    assert raises(IndexError, lambda: buffer[2])
    assert raises(IndexError, lambda: buffer[-3])
    assert raises(IndexError, lambda: RingBuffer(2)[0])
    assert buffer[1] == "c"


def test_clear():
    buffer = filled(2, [1, 2, 3])
    buffer.clear()
    assert len(buffer) == 0 and list(buffer) == []
    assert buffer.capacity == 2 and buffer.is_full is False
    assert buffer.append(4) is None
    assert list(buffer) == [4]


def test_none_and_equal_items():
    buffer = filled(3, [None, 0, None])
    assert list(buffer) == [None, 0, None]
    assert len(buffer) == 3
    assert buffer.append(0) is None
    assert list(buffer) == [0, None, 0]
    assert [buffer.pop_oldest() for _ in range(3)] == [0, None, 0]


def test_capacity_one():
    buffer = RingBuffer(1)
    assert [buffer.append(item) for item in "abc"] == [None, "a", "b"]
    assert (buffer[0], buffer[-1], len(buffer)) == ("c", "c", 1)


def test_bad_capacity():
    assert raises(ValueError, RingBuffer, 0)
    assert raises(ValueError, RingBuffer, -2)
    assert RingBuffer(1).capacity == 1


def test_iterates_again():
    buffer = filled(3, [1, 2, 3])
    assert list(buffer) == [1, 2, 3]
    assert list(buffer) == [1, 2, 3]
    pairs = [(a, b) for a in buffer for b in buffer]
    assert len(pairs) == 9


def test_generated():
    rng = random.Random(10)
    for capacity in (1, 2, 3, 7):
        buffer = RingBuffer(capacity)
        model = []
        for n in range(60):
            if rng.random() < 0.7:
                expected = model.pop(0) if len(model) == capacity else None
                model.append(n)
                assert buffer.append(n) == expected
            elif model:
                assert buffer.pop_oldest() == model.pop(0)
            assert len(buffer) == len(model)
            if n % 10 == 0:
                assert list(buffer) == model
