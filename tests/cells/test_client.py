"""The client against keepers that lie: every answer is bounded, checked, and a surprise is a lost cell."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tiltyard.cells import CellFileError, CellLimits, CellLost, Run
from tiltyard.cells import client as client_module
from tiltyard.cells.client import KeeperCell, job_of
from tiltyard.cells.inside import wire
from tiltyard.errors import ArenaError

Answer = Callable[[dict[str, object], socket.socket], None]
CAPS = {"max_file_bytes": 100, "max_bytes": 1000, "max_files": 10, "max_depth": 5}


class Liar:
    """A keeper over a real socket that answers as a test says."""

    def __init__(self, answer: Answer) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.buried = 0
        self.answer = answer
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        limits = CellLimits()
        self.cell = KeeperCell(self.ours, wall="process", limits=limits, env={}, bury=self.bury)

    def bury(self) -> None:
        self.buried += 1

    def serve(self) -> None:
        try:
            while True:
                request, _, _ = wire.receive(self.theirs, deadline=time.monotonic() + 60, max_block=1 << 20)
                self.answer(request, self.theirs)
        except (wire.WireError, OSError):
            pass

    def close(self) -> None:
        self.cell.close()
        self.theirs.close()
        self.thread.join()


@pytest.fixture
def liar() -> Iterator[Callable[[Answer], Liar]]:
    made: list[Liar] = []

    def make(answer: Answer) -> Liar:
        made.append(Liar(answer))
        return made[-1]

    yield make
    for one in made:
        one.close()


def saying(header: dict[str, object], block: bytes = b"") -> Answer:
    return lambda request, sock: wire.send(
        sock, {"id": request["id"], **header}, block, deadline=time.monotonic() + 60
    )


def raw(data: bytes) -> Answer:
    return lambda request, sock: sock.sendall(data)


def deep(request: dict[str, object], sock: socket.socket) -> None:
    text = b'{"id":1,"x":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    sock.sendall(struct.pack("!IQ", len(text), 0) + text)


NONSENSE = {
    "no frame": raw(b"GET / HTTP/1.1\r\n\r\n"),
    "a huge header": raw(struct.pack("!IQ", 2**32 - 1, 0)),
    "a huge block": raw(struct.pack("!IQ", 2, 2**63) + b"{}"),
    "no JSON": raw(struct.pack("!IQ", 5, 0) + b"{bad}"),
    "no object": raw(struct.pack("!IQ", 2, 0) + b"[]"),
    "bad UTF-8": raw(struct.pack("!IQ", 2, 0) + b"\xff\xfe"),
    "a deep header": deep,
    "a giant number": raw(struct.pack("!IQ", 6010, 0) + b'{"id":' + b"1" * 6003 + b"}"),
    "another's answer": saying({"id": 99}),
    "an id that is true": saying({"id": "1"}),
    "a block that was not asked for": saying({}, b"x" * 1001),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_is_a_lost_cell(liar: Callable[[Answer], Liar], name: str) -> None:
    one = liar(NONSENSE[name])
    with pytest.raises(CellLost) as error:
        one.cell.read("x", max_bytes=1000)
    assert not error.value.during_run
    assert one.buried == 1
    with pytest.raises(CellLost):
        one.cell.read("x", max_bytes=1000)


BAD_LISTS = [
    {},
    {"entries": 5, "left_out": 0},
    {"entries": [["a", "file", 1]] * 6, "left_out": 0},
    {"entries": [["a", "file"]], "left_out": 0},
    {"entries": [["a", "file", True]], "left_out": 0},
    {"entries": [["a", "file", "1"]], "left_out": 0},
    {"entries": [[1, "file", 1]], "left_out": 0},
    {"entries": [], "left_out": True},
    {"entries": [], "left_out": -2},
    {"entries": [], "left_out": 1.5},
]
BAD_CAPTURES: list[tuple[dict[str, object], bytes]] = [
    ({}, b""),
    ({"files": [["a", 1]], "skipped": []}, b""),
    ({"files": [["a", 1]], "skipped": []}, b"xx"),
    ({"files": [["../a", 1]], "skipped": []}, b"x"),
    ({"files": [["/etc/passwd", 1]], "skipped": []}, b"x"),
    ({"files": [["a\ud800", 1]], "skipped": []}, b"x"),
    ({"files": [["a", -1]], "skipped": []}, b""),
    ({"files": [["a", 101]], "skipped": []}, b"x" * 101),
    ({"files": [["a", 0]] * 11, "skipped": []}, b""),
    ({"files": [["a", 1.0]], "skipped": []}, b"x"),
    ({"files": [], "skipped": [["a"]]}, b""),
    ({"files": [], "skipped": [["a", 1]]}, b""),
    ({"files": [], "skipped": "ab"}, b""),
]
GOOD_RUN = {"rc": 0, "timed_out": False, "seconds": 0.1, "out": 1, "dropped": [0, 0]}
BAD_RUNS = [
    {},
    GOOD_RUN | {"rc": "0"},
    GOOD_RUN | {"rc": None},
    GOOD_RUN | {"timed_out": 1},
    GOOD_RUN | {"seconds": "1"},
    GOOD_RUN | {"out": 3},
    GOOD_RUN | {"out": -1},
    GOOD_RUN | {"dropped": [0]},
    GOOD_RUN | {"dropped": [0, "0"]},
]


@pytest.mark.parametrize("answer", BAD_LISTS)
def test_listings_are_checked(liar: Callable[[Answer], Liar], answer: dict[str, object]) -> None:
    with pytest.raises(CellLost) as error:
        liar(saying(answer)).cell.list(max_entries=5)
    assert not error.value.during_run


@pytest.mark.parametrize(("answer", "block"), BAD_CAPTURES)
def test_captures_are_checked(
    liar: Callable[[Answer], Liar], answer: dict[str, object], block: bytes
) -> None:
    with pytest.raises(CellLost):
        liar(saying(answer, block)).cell.capture(**CAPS)


@pytest.mark.parametrize("answer", BAD_RUNS)
def test_results_are_checked(liar: Callable[[Answer], Liar], answer: dict[str, object]) -> None:
    with pytest.raises(CellLost) as error:
        liar(saying(answer, b"xy")).cell.run(Run(("true",)))
    assert error.value.during_run


def test_good_answers_are_taken(liar: Callable[[Answer], Liar]) -> None:
    result = liar(saying(GOOD_RUN, b"xy")).cell.run(Run(("true",)))
    assert (result.stdout, result.stderr) == (b"x", b"y")
    capture = liar(saying({"files": [["a", 1], ["b", 2]], "skipped": [["f", "fifo"]]}, b"xyz")).cell.capture(
        **CAPS
    )
    assert (capture.files, capture.skipped) == ({"a": b"x", "b": b"yz"}, (("f", "fifo"),))


def test_a_programs_status_is_checked(liar: Callable[[Answer], Liar]) -> None:
    def answer(request: dict[str, object], sock: socket.socket) -> None:
        saying({"program": 0} if request["op"] == "start" else {"rc": "zero"})(request, sock)

    program = liar(answer).cell.start("echo", [], wall_s=1)
    with pytest.raises(CellLost) as error:
        program.poll()
    assert error.value.during_run


def test_errors_are_told_apart_and_cut(liar: Callable[[Answer], Liar]) -> None:
    with pytest.raises(CellFileError) as error:
        liar(saying({"error": "file", "text": "x" * 10_000})).cell.read("x", max_bytes=1)
    assert len(str(error.value)) == 2000
    with pytest.raises(ArenaError, match="disk"):
        liar(saying({"error": "arena", "text": "disk"})).cell.read("x", max_bytes=1)
    with pytest.raises(ArenaError):
        liar(saying({"error": ["?"], "text": {}})).cell.read("x", max_bytes=1)


def test_silence_is_a_lost_cell(liar: Callable[[Answer], Liar], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "GRACE_S", 0.2)
    one = liar(lambda request, sock: None)
    with pytest.raises(CellLost) as error:
        one.cell.run(Run(("true",), wall_s=0.1))
    assert error.value.during_run and one.buried == 1


def test_a_slow_trickle_is_a_lost_cell(
    liar: Callable[[Answer], Liar], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "GRACE_S", 0.5)

    def trickle(request: dict[str, object], sock: socket.socket) -> None:
        text = json.dumps({"id": request["id"]}).ljust(10_000).encode()
        for byte in struct.pack("!IQ", len(text), 0) + text:
            sock.sendall(bytes([byte]))
            time.sleep(0.01)

    begin = time.monotonic()
    with pytest.raises(CellLost):
        liar(trickle).cell.run(Run(("true",), wall_s=0.1))
    assert time.monotonic() - begin < 30


def test_descriptors_that_were_not_asked_for_are_not_taken(liar: Callable[[Answer], Liar]) -> None:
    def push(request: dict[str, object], sock: socket.socket) -> None:
        wire.send(sock, {"id": request["id"]}, b"data", deadline=time.monotonic() + 60, fds=[0, 1, 2])

    one = liar(push)
    held = open_descriptors()
    for _ in range(5):
        assert one.cell.read("x", max_bytes=10) == b"data"
    assert open_descriptors() == held


def open_descriptors() -> int:
    import os

    return len(os.listdir("/dev/fd"))  # noqa: PTH208


def test_jobs() -> None:
    assert job_of(["python", "a.py", "x"]) == ("script", ["a.py", "x"])
    assert job_of(["python", "-c", "code", "x"]) == ("code", ["code", "x"])
    assert job_of(["python", "-m", "mod", "x"]) == ("module", ["mod", "x"])
    assert job_of(["python"]) == ("stdin", [])
    assert job_of(["python", "-", "x"]) == ("stdin", ["x"])
    assert job_of(["@echo", "x"]) == ("tool", ["echo", "x"])
    assert job_of(["python3", "a.py"]) == ("command", ["python3", "a.py"])
    for argv in ([], ["@nosuch"], ["@../wire"], ["python", "-u", "a.py"], ["python", "-m"], ["a\0b"]):
        with pytest.raises(CellFileError):
            job_of(argv)
