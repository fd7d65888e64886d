def test_order():
    queue = PriorityQueue()
    queue.push("write", 2)
    queue.push("test", 2)
    queue.push("plan", 1)
    assert [queue.pop() for _ in range(3)] == ["plan", "write", "test"]


def test_update():
    queue = PriorityQueue()
    queue.push("write", 2)
    queue.push("test", 3)
    queue.update("test", 1)
    assert queue.peek() == "test"
    assert len(queue) == 2
