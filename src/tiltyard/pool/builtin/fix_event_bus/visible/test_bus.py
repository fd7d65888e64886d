def test_two_once_handlers():
    bus = EventBus()
    calls = []
    bus.once("e", lambda: calls.append("a"))
    bus.once("e", lambda: calls.append("b"))
    bus.emit("e")
    assert calls == ["a", "b"]


def test_results():
    bus = EventBus()
    bus.on("sum", lambda a, b: a + b)
    bus.on("sum", lambda a, b: a * b)
    assert bus.emit("sum", 3, 4) == [7, 12]
