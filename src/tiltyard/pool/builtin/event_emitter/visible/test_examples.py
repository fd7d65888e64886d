def test_on_and_once():
    seen = []

    def show(x):
        seen.append(("show", x))

    emitter = EventEmitter()
    emitter.on("data", show)
    emitter.once("data", lambda x: seen.append(("once", x)))
    assert emitter.emit("data", 1) == 2
    assert emitter.emit("data", 2) == 1
    assert seen == [("show", 1), ("once", 1), ("show", 2)]


def test_off():
    def ignore(x):
        pass

    emitter = EventEmitter()
    emitter.on("data", ignore)
    assert emitter.off("data", ignore) is True
    assert emitter.off("data", ignore) is False
    assert emitter.emit("data", 3) == 0
