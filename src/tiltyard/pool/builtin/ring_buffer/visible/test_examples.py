def test_oldest_is_dropped():
    buffer = RingBuffer(3)
    for item in "abc":
        assert buffer.append(item) is None
    assert buffer.append("d") == "a"
    assert list(buffer) == ["b", "c", "d"]


def test_index():
    buffer = RingBuffer(2)
    buffer.append(10)
    buffer.append(20)
    assert (buffer[0], buffer[-1]) == (10, 20)
