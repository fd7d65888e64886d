def test_nothing_registered():
    emitter = EventEmitter()
    assert emitter.emit("ping") == 0
    assert emitter.count("ping") == 0
    assert emitter.off("ping", len) is False
    emitter.on("ping", lambda: None)
    assert (emitter.emit("ping"), emitter.count("ping"), emitter.emit("pong")) == (1, 1, 0)


def test_order_of_registration():
    log, emitter = Log(), EventEmitter()
    for name in "cab":
        emitter.on("go", log.callback(name))
    assert emitter.emit("go") == 3
    assert log.calls == ["c", "a", "b"]


def test_arguments():
    log, emitter = Log(), EventEmitter()
    emitter.on("go", log.callback("p"))
    emitter.once("go", log.callback("q"))
    emitter.emit("go", 1, [2], key="v")
    assert log.calls == [("p", (1, [2]), {"key": "v"}), ("q", (1, [2]), {"key": "v"})]


def test_events_are_apart():
    log, emitter = Log(), EventEmitter()
    emitter.on("one", log.callback("p"))
    emitter.on("two", log.callback("q"))
    assert emitter.emit("two") == 1
    assert log.calls == ["q"]
    assert (emitter.count("one"), emitter.count("two"), emitter.count("three")) == (1, 1, 0)


def test_once_keeps_its_place_and_goes():
    log, emitter = Log(), EventEmitter()
    emitter.on("go", log.callback("p"))
    emitter.once("go", log.callback("q"))
    emitter.on("go", log.callback("r"))
    assert emitter.count("go") == 3
    assert (emitter.emit("go"), emitter.emit("go")) == (3, 2)
    assert log.calls == ["p", "q", "r", "p", "r"]
    assert emitter.count("go") == 2


def test_registered_twice():
    log, emitter = Log(), EventEmitter()
    p = log.callback("p")
    emitter.on("go", p)
    emitter.on("go", log.callback("q"))
    emitter.on("go", p)
    assert emitter.emit("go") == 3
    assert log.calls == ["p", "q", "p"]
    assert emitter.count("go") == 3


def test_off_ends_the_oldest():
    log, emitter = Log(), EventEmitter()
    p = log.callback("p")
    emitter.on("go", p)
    emitter.on("go", log.callback("q"))
    emitter.on("go", p)
    assert emitter.off("go", p) is True
    assert emitter.emit("go") == 2
    assert log.calls == ["q", "p"]
    assert emitter.off("go", p) is True
    assert emitter.off("go", p) is False
    assert emitter.count("go") == 1


def test_off_of_once():
    log, emitter = Log(), EventEmitter()
    p, q = log.callback("p"), log.callback("q")
    emitter.once("go", p)
    emitter.on("go", q)
    assert emitter.off("other", p) is False
    assert emitter.off("go", p) is True
    assert emitter.emit("go") == 1
    assert log.calls == ["q"]


def test_off_after_once_was_called():
    log, emitter = Log(), EventEmitter()
    p = log.callback("p")
    emitter.once("go", p)
    assert emitter.emit("go") == 1
    assert emitter.off("go", p) is False


def test_registered_during_emit():
    log, emitter = Log(), EventEmitter()
    late = log.callback("late")
    emitter.once("go", log.callback("p", lambda: emitter.on("go", late)))
    emitter.on("go", log.callback("q"))
    assert emitter.emit("go") == 2
    assert log.calls == ["p", "q"]
    assert emitter.emit("go") == 2
    assert log.calls == ["p", "q", "q", "late"]


def test_ended_during_emit_before_its_turn():
    log, emitter = Log(), EventEmitter()
    r = log.callback("r")
    emitter.on("go", log.callback("p", lambda: emitter.off("go", r)))
    emitter.on("go", log.callback("q"))
    emitter.on("go", r)
    emitter.on("go", log.callback("s"))
    assert emitter.emit("go") == 3
    assert log.calls == ["p", "q", "s"]


def test_callback_ends_itself():
    log, emitter = Log(), EventEmitter()
    callbacks = {}
    callbacks["p"] = log.callback("p", lambda: emitter.off("go", callbacks["p"]))
    emitter.on("go", callbacks["p"])
    emitter.on("go", log.callback("q"))
    emitter.on("go", log.callback("r"))
    assert emitter.emit("go") == 3
    assert emitter.emit("go") == 2
    assert log.calls == ["p", "q", "r", "q", "r"]


def test_one_already_called_is_ended_during_emit():
    log, emitter = Log(), EventEmitter()
    p = log.callback("p")
    emitter.on("go", p)
    emitter.on("go", log.callback("q", lambda: emitter.off("go", p)))
    emitter.on("go", log.callback("r"))
    assert emitter.emit("go") == 3
    assert log.calls == ["p", "q", "r"]
    assert emitter.count("go") == 2


def test_once_has_ended_when_it_runs():
    log, emitter = Log(), EventEmitter()
    counts = []
    emitter.once("go", log.callback("p", lambda: counts.append(emitter.count("go"))))
    assert emitter.emit("go") == 1
    assert counts == [0]


def test_nested_emit_does_not_repeat_once():
    log, emitter = Log(), EventEmitter()
    inner = []
    emitter.once("go", log.callback("p", lambda: inner.append(emitter.emit("go"))))
    emitter.on("go", log.callback("q"))
    assert emitter.emit("go") == 2
    assert inner == [1]
    assert log.calls == ["p", "q", "q"]


def test_once_used_up_by_a_nested_emit():
    log, emitter = Log(), EventEmitter()
    inner = []
    emitter.once("go", log.callback("p", lambda: inner.append(emitter.emit("go"))))
    emitter.once("go", log.callback("q"))
    assert emitter.emit("go") == 1
    assert inner == [1]
    assert log.calls == ["p", "q"]


def test_nested_emit_of_another_event():
    log, emitter = Log(), EventEmitter()
    emitter.on("outer", log.callback("p", lambda: emitter.emit("inner", 5)))
    emitter.on("outer", log.callback("q"))
    emitter.on("inner", log.callback("i"))
    assert emitter.emit("outer") == 2
    assert log.calls == ["p", ("i", (5,), {}), "q"]


def test_registered_during_emit_is_seen_by_nested_emit():
    log, emitter = Log(), EventEmitter()
    late = log.callback("late")

    def then():
        emitter.on("go", late)
        emitter.emit("go")

    emitter.once("go", log.callback("p", then))
    assert emitter.emit("go") == 1
    assert log.calls == ["p", "late"]


def test_exception_does_not_stop_the_others():
    log, emitter = Log(), EventEmitter()

    def fail():
        raise KeyError("first")

    emitter.on("go", log.callback("p", fail))
    emitter.on("go", log.callback("q"))
    assert raises(KeyError, emitter.emit, "go")
    assert log.calls == ["p", "q"]
    assert emitter.count("go") == 2


def test_first_exception_is_raised():
    emitter = EventEmitter()

    def make(error):
        def fail():
            raise error

        return fail

    emitter.on("go", lambda: None)
    emitter.on("go", make(IndexError("one")))
    emitter.on("go", make(TypeError("two")))
    try:
        emitter.emit("go")
    except IndexError as error:
        assert error.args == ("one",)
    else:
        raise AssertionError("nothing was raised")


def test_once_that_fails_has_ended():
    log, emitter = Log(), EventEmitter()

    def fail():
        raise ValueError("no")

    emitter.once("go", log.callback("p", fail))
    emitter.on("go", log.callback("q"))
    assert raises(ValueError, emitter.emit, "go")
    assert emitter.emit("go") == 1
    assert log.calls == ["p", "q", "q"]


def test_emitters_are_independent():
    log = Log()
    one, two = EventEmitter(), EventEmitter()
    one.on("go", log.callback("p"))
    assert (two.emit("go"), one.emit("go")) == (0, 1)
