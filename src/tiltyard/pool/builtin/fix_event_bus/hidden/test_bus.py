def test_three_once_handlers():
    bus = EventBus()
    calls = []
    for name in "abc":
        bus.once("e", lambda name=name: calls.append(name))
    bus.emit("e")
    assert calls == ["a", "b", "c"]
    assert bus.count("e") == 0
    assert bus.emit("e") == []


def test_once_between_others():
    bus = EventBus()
    bus.on("e", lambda: 1)
    bus.once("e", lambda: 2)
    bus.on("e", lambda: 3)
    assert bus.emit("e") == [1, 2, 3]
    assert bus.emit("e") == [1, 3]


def test_once_is_unregistered_before_its_call():
    bus = EventBus()
    counts = []
    bus.once("e", lambda: counts.append(bus.count("e")))
    bus.emit("e")
    assert counts == [0]


def test_once_that_emits_again():
    bus = EventBus()
    calls = []

    def handler():
        calls.append(1)
        bus.emit("e")

    bus.once("e", handler)
    bus.emit("e")
    assert calls == [1]


def test_handler_that_cancels_itself():
    bus = EventBus()
    tickets = []

    def first():
        bus.off(tickets[0])
        return "first"

    tickets.append(bus.on("e", first))
    bus.on("e", lambda: "second")
    assert bus.emit("e") == ["first", "second"]
    assert bus.emit("e") == ["second"]


def test_handler_that_cancels_an_earlier_one():
    bus = EventBus()
    first = bus.on("e", lambda: 1)
    bus.on("e", lambda: bus.off(first))
    bus.on("e", lambda: 3)
    assert bus.emit("e") == [1, True, 3]
    assert bus.emit("e") == [False, 3]


def test_handler_that_cancels_a_later_one():
    bus = EventBus()
    tickets = []
    bus.on("e", lambda: bus.off(tickets[0]))
    tickets.append(bus.on("e", lambda: "never"))
    bus.on("e", lambda: "last")
    assert bus.emit("e") == [True, "last"]


def test_handler_that_registers_another():
    bus = EventBus()

    def grow():
        if bus.count("e") < 50:
            bus.on("e", grow)
        return bus.count("e")

    bus.on("e", grow)
    assert bus.emit("e") == [2]
    assert bus.emit("e") == [3, 4]


def test_buses_are_apart():
    one, two = EventBus(), EventBus()
    one.on("e", lambda: "one")
    assert two.count("e") == 0
    assert two.emit("e") == []
    assert one.emit("e") == ["one"]


def test_tickets_of_each_bus():
    one, two = EventBus(), EventBus()
    assert [one.on("x", lambda: 0), one.once("y", lambda: 0)] == [1, 2]
    assert [two.on("x", lambda: 0), two.on("x", lambda: 0)] == [1, 2]
    assert two.off(1) is True
    assert one.count("x") == 1


def test_tickets_are_not_used_again():
    bus = EventBus()
    assert bus.on("e", lambda: 0) == 1
    assert bus.off(1) is True
    assert bus.off(1) is False
    assert bus.on("e", lambda: 0) == 2


def test_events_are_apart():
    bus = EventBus()
    bus.on("a", lambda: "a")
    bus.on("b", lambda: "b")
    assert bus.emit("b") == ["b"]
    assert bus.emit("c") == []
    assert bus.delivered == 1


def test_exception_stops_the_delivery():
    bus = EventBus()
    calls = []

    def bad():
        raise ValueError("no")

    bus.on("e", lambda: calls.append(1))
    bus.once("e", bad)
    bus.once("e", lambda: calls.append(3))
    raises(ValueError, bus.emit, "e")
    assert calls == [1]
    assert bus.delivered == 1
    assert bus.count("e") == 2
    bus.emit("e")
    assert calls == [1, 1, 3]
