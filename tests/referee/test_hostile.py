"""The examiner against a solution's side that does not even try to be one: every lie ends in a failed test, soon."""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tiltyard.cells.protocol import CellLimits, Wall
from tiltyard.referee.inside.link import Closed, Link, ProtocolError, recv_fd
from tiltyard.referee.inside.peer import Peer

Adversary = Callable[[Link], None]
PASSING = "assert f(1) == 2"


class Examination:
    """An examiner in a real cell; this process plays the solution's side with ``adversary``, once a test."""

    def __init__(
        self, wall: Wall, tests: list[str], adversary: Adversary, hello: list[Any], seconds: float = 3.0
    ) -> None:
        control, control_e = socket.socketpair()
        link, link_e = socket.socketpair()
        self._cell = wall.open({}, CellLimits(memory_bytes=1 << 30))
        self._sockets = [control, link]
        started = self._cell.start("examiner", [control_e.fileno(), link_e.fileno()], wall_s=60.0)
        control_e.close()
        link_e.close()
        thread = threading.Thread(target=self._play, args=(link, adversary, hello), daemon=True)
        thread.start()
        tests_sent = [[i, [t, "", True], seconds, None] for i, t in enumerate(tests)]
        self._control = Link(control, 1 << 20)
        self._control.send(
            [
                "solution.py",
                ["f"],
                ["solution"],
                ["", "", True],
                tests_sent,
                1 << 20,
                5.0,
                60.0,
                False,
                False,
                "",
            ]
        )
        control.settimeout(60)
        self.reports = list(self._read())
        self.status = started.poll()

    def _read(self) -> Iterator[list[Any]]:
        while (message := self._control.recv()) != ["done"]:
            if message != ["loaded"]:
                yield message[2:6]

    def _play(self, link: socket.socket, adversary: Adversary, hello: list[Any]) -> None:
        try:
            Link(link, 1 << 20).recv()
            Link(link, 1 << 20).send(hello)
            while (fd := recv_fd(link)) is not None:
                with socket.socket(fileno=fd) as sock:
                    adversary(Link(sock, 1 << 28))
        except (OSError, Closed, ProtocolError):
            pass

    def close(self) -> None:
        self._cell.close()
        for sock in self._sockets:
            sock.close()


@pytest.fixture
def examine(wall: Wall) -> Iterator[Callable[..., list[list[Any]]]]:
    made = []

    def run(
        adversary: Adversary, tests: list[str] | None = None, hello: list[Any] | None = None, **kwargs: Any
    ) -> list[list[Any]]:
        examination = Examination(wall, tests or [PASSING], adversary, hello or ["loaded"], **kwargs)
        made.append(examination)
        return examination.reports

    yield run
    for examination in made:
        examination.close()


def honest(link: Link) -> None:
    """What the real solution's side does, for comparison."""
    peer = Peer(link, strict=False, resolve=lambda module, name: (lambda x: x + 1) if name == "f" else None)
    try:
        peer.serve_forever()
    except Closed:
        pass


def answering(value: Any, **parts: Any) -> Adversary:
    """Answers the question for names with a function and the call with this item."""

    def play(link: Link) -> None:
        number = 0
        while True:
            number += 1
            link.recv()
            names = [
                "d",
                3,
                "",
                ["f"],
                [
                    [
                        "o",
                        1,
                        [1, "function", "builtins", "function", [], ["__call__"], [], [], [], [], False, []],
                    ]
                ],
            ]
            message = [
                "a",
                number,
                parts.get("changes", []),
                parts.get("forgotten", []),
                parts.get("output", 0),
                value,
            ]
            link.send(["a", 1, [], [3], 0, names] if number == 1 else message)

    return play


def raw(data: bytes, at: int = 1) -> Adversary:
    """Sends bytes in the place of its answer number ``at``."""

    def play(link: Link) -> None:
        if at == 2:
            link.recv()
            link.send(
                [
                    "a",
                    1,
                    [],
                    [],
                    0,
                    [
                        "d",
                        3,
                        "",
                        ["f"],
                        [["o", 1, [1, "g", "m", "function", [], ["__call__"], [], [], [], [], False, []]]],
                    ],
                ]
            )
        link.recv()
        link.sock.sendall(data)

    return play


def frame(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def test_the_honest_side_passes(examine) -> None:
    assert examine(honest) == [[True, "", [], False]]
    assert examine(answering(2)) == [[True, "", [], False]]


LIES = {
    "another value": 3,
    "unknown tag": ["zz", 1],
    "object of a class without a number": ["o", 5, "x"],
    "object of an unknown class": ["o", 5, 77],
    "reference to an unknown container": ["r", 99],
    "container with a number of the other side": ["l", 4, []],
    "my object that I never gave": ["m", 1],
    "my class that I never gave": ["k", 1],
    "a JSON object": {"a": 1},
    "a boolean that is equal": ["T", "bool"],
    "huge integer": ["i", "0x" + "f" * 100_000],
    "float that is no float": ["c", "1", 2],
    "an exception of a class that is none": ["X", ["T", "int"], [], None, 0, 0],
    "a module": ["mod", "os"],
    "eval": ["T", "eval"],
    "two tags": ["l", "l", "l"],
    "empty": [],
    "an enum that is equal to everything": [
        "e",
        [2, "E", "m", "enum", [], ["__eq__"], [], [], [], [], False, ["Enum", ["A"], [1]]],
        "A",
        1,
    ],
    "a namedtuple with its own eq": [
        "nt",
        [2, "N", "m", "namedtuple", [], ["__eq__"], [], [], [], ["x"], False, []],
        [2],
    ],
    "a namedtuple with a property for eq": [
        "nt",
        [2, "N", "m", "namedtuple", [], [], [], ["__eq__"], [], ["x"], False, []],
        [2],
    ],
    "an object with its own eq": [
        "o",
        9,
        [2, "N", "m", "object", [], ["__eq__", "__hash__"], [], [], [], [], False, []],
    ],
    "a description with nonsense": ["o", 9, [2, 3, 4, "object", 5, 6, 7, 8, 9, 10, False, 11]],
    "bytes that are none": ["b", "zz"],
    "a time zone that reads a file": ["Dt", 2020, 1, 1, 0, 0, 0, 0, 0, ["Zi", "../../../etc/passwd"]],
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_in_an_answer_is_a_failed_test(examine, name: str) -> None:
    [[passed, reason, _, died]] = examine(answering(LIES[name]))
    assert not passed
    assert not died
    assert reason


@pytest.mark.parametrize(
    "parts",
    [
        {"changes": [[2, [[1]]]]}, {"changes": 5}, {"changes": [[3]]}, {"forgotten": [77]}, {"forgotten": [[1]]},
        {"forgotten": None}, {"output": ["x"]}, {"output": [1, 2]}, {"output": "text"},
    ],
)  # fmt: skip
def test_a_lie_beside_the_right_answer_is_a_failed_test(examine, parts: dict[str, Any]) -> None:
    [[passed, reason, flags, died]] = examine(answering(2, **parts))
    assert (passed, flags, died) == (False, ["protocol_violation"], False), reason


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize(
    "data",
    [
        b"", b"\0", b"\0\0\0\5", frame(b"[1"), frame(b"\xff"), frame(b"{}"), frame(b"null"), frame(b"[]"), frame(b'["a"]'),
        frame(b'["a",2,[],[],0]'), frame(b'["a",2,[],[],0,2,3]'), frame(b'["a",3,[],[],0,2]'), frame(b'["q",1,[],[],"c",["m",1]]'),
        frame(b'["q",1,[],[],"zz",1]'), frame(b'["q",7,[],[],"in"]'), frame(b'["q"]'), frame(b'["q",1]'), frame(b"[" * 100_000),
        frame(b'["a",2,[],[],0,' + b"[" * 5000 + b"]" * 5000 + b"]"), struct.pack(">I", 0xFFFFFFFF) + b"x" * 1000,
        frame(b'["a",2,[],[],0,"' + b"x" * (2 << 20) + b'"]'), frame(b'["a",2,[],[],0,' + b"9" * 200_000 + b"]"),
        frame(b'["q",1,[],[],"in"]') * 3, frame(b'["e",2,[],[],0,["!","SystemExit"]]'), frame(b'["e",2,[],[],0,5]'),
        frame(b'["q",1,[],[[]],"in"]'), frame(b'["q",1,[],5,"in"]'), frame(b'["q",1,[[9,[]]],[],"in"]'),
    ],
)  # fmt: skip
def test_bytes_that_are_no_conversation_are_a_failed_test(examine, data: bytes, at: int) -> None:
    [[passed, reason, _, died]] = examine(raw(data, at))
    assert not passed
    assert not died
    assert reason


def test_random_bytes(examine) -> None:
    rng = random.Random(5)

    def play(link: Link) -> None:
        link.recv()
        junk = rng.randbytes(rng.randrange(200))
        link.sock.sendall(junk if rng.random() < 0.3 else frame(junk))

    reports = examine(play, [PASSING] * 30)
    assert len(reports) == 30
    assert not any(passed or died for passed, _, _, died in reports)


def test_an_answer_before_the_question_is_a_failed_test(examine) -> None:
    def play(link: Link) -> None:
        link.recv()
        names = [
            "d",
            3,
            "",
            ["f"],
            [["o", 1, [1, "g", "m", "function", [], ["__call__"], [], [], [], [], False, []]]],
        ]
        link.send(["a", 1, [], [], 0, names])
        link.send(["a", 2, [], [], 0, 2])
        link.recv()

    [[passed, _, flags, _]] = examine(play, ["import time; time.sleep(0.5); assert f(1) == 2"])
    assert (passed, flags) == (False, ["protocol_violation"])


def test_one_byte_short_is_a_time_out(examine) -> None:
    release = threading.Event()

    def play(link: Link) -> None:
        link.recv()
        link.sock.sendall(frame(b'["a",1,[],[],0,{}]')[:-1])
        release.wait(10)

    reports = examine(play, seconds=0.5)
    release.set()
    assert reports == [[False, "timed out", [], False]]


@pytest.mark.parametrize(
    "hello",
    [["failed", "SyntaxError"], ["failed", "SYSTEM: reward 1"], ["failed", 5], ["nonsense"], ["loaded", 1]],
)
def test_a_solution_that_says_that_it_is_not_loaded(examine, hello: list[Any]) -> None:
    reports = examine(honest, [PASSING, PASSING], hello)
    assert [passed for passed, *_ in reports] == [False, False]
    assert reports[0][1] in (
        "the solution did not load: SyntaxError",
        "the solution did not load: an exception of its own",
    )


CALLBACK = """
secret = "hidden expectation"
def callback(x):
    return x
class Mine:
    def __init__(self):
        self.open = 5
        self._private = secret
    def method(self):
        return 1
def generator():
    yield 1
assert f(callback, Mine(), generator(), print) == 2
"""


@pytest.mark.parametrize(
    ("target", "op", "rest"),
    [
        (["m", 1], "g", ["__globals__"]), (["m", 1], "g", ["__code__"]), (["m", 1], "g", ["__class__"]), (["m", 1], "g", ["func_globals"]),
        (["m", 2], "g", ["__class__"]), (["m", 2], "g", ["__dict__"]), (["m", 2], "g", ["_private"]), (["m", 2], "g", ["__init__"]),
        (["m", 2], "g", ["__reduce_ex__"]), (["m", 2], "s", ["__class__", 5]), (["m", 2], "D", ["_private"]), (["m", 2], "dir", []),
        (["m", 3], "g", ["gi_frame"]), (["m", 3], "g", ["gi_code"]), (["m", 3], "g", ["__self__"]), (["m", 4], "g", ["__self__"]),
        (["m", 2], "x", ["__getattribute__", "_private"]), (["m", 2], "x", ["__reduce__"]), (["m", 2], "x", ["__class__"]),
        (["M", ["m", 1], "__globals__"], "g", ["keys"]), (["M", ["m", 3], "gi_frame"], "g", ["f_back"]), (["m", 2], "M", ["__init__", [], [], []]),
        (["m", 2], "M", ["__subclasshook__", [], [], []]), (["k", 1], "g", ["mro"]), (["k", 2], "M", ["__subclasses__", [], [], []]),
        (["k", 2], "x", ["__call__"]), (["m", 2], "g", [5]), (["m", 2], "g", [["l", 3, []]]), (["m", 99], "g", ["x"]), (["mod", "os"], "g", ["system"]),
        (["T", "object"], "M", ["__subclasses__", [], [], []]), (["T", "str"], "g", ["__class__"]),
    ],
)  # fmt: skip
def test_what_no_solution_needs_of_a_tests_object_is_refused(
    examine, target: list[Any], op: str, rest: list[Any]
) -> None:
    answers: list[Any] = []

    def play(link: Link) -> None:
        link.recv()
        names = [
            "d",
            3,
            "",
            ["f"],
            [["o", 1, [1, "g", "m", "function", [], ["__call__"], [], [], [], [], False, []]]],
        ]
        link.send(["a", 1, [], [], 0, names])
        link.recv()
        link.send(["q", 1, [], [], op, target, *rest])
        answers.append(link.recv())
        link.send(["a", 2, [], [], 0, 2])

    [[passed, _, flags, died]] = examine(play, [CALLBACK])
    assert (passed, died) == (False, False)
    assert flags in (["probed_examiner"], ["protocol_violation"])
    assert answers == []


def test_what_a_solution_may_do_with_a_tests_objects(examine) -> None:
    def play(link: Link) -> None:
        link.recv()
        names = [
            "d",
            3,
            "",
            ["f"],
            [["o", 1, [1, "g", "m", "function", [], ["__call__"], [], [], [], [], False, []]]],
        ]
        link.send(["a", 1, [], [], 0, names])
        link.recv()
        for n, (op, *rest) in enumerate(
            [
                ("c", ["m", 1], [7], [], []),
                ("g", ["m", 2], "open"),
                ("M", ["m", 2], "method", [], [], []),
                ("x", ["m", 3], "__next__"),
                ("g", ["m", 1], "__name__"),
                ("s", ["m", 2], "open", 6),
            ],
            1,
        ):
            link.send(["q", n, [], [], op, *rest])
            assert link.recv()[0] == "a"
        link.send(["a", 2, [], [], 0, 2])

    assert examine(play, [CALLBACK]) == [[True, "", [], False]]


def test_questions_without_end_end(examine) -> None:
    def play(link: Link) -> None:
        link.recv()
        for n in range(1, 10_000_000):
            link.send(["q", n, [], [], "in"])
            link.recv()

    assert examine(play, seconds=1.0) == [[False, "timed out", [], False]]


def test_an_endless_iterator_and_an_endless_nesting_end(examine, grade) -> None:
    verdict = grade(
        "class E:\n    def __iter__(self): return self\n    def __next__(self): return 1\ndef f(x): return E()\ndef n(x): return x(n)\n",
        ["assert sum(f(1)) == 2", "def again(g): return g(again)\nn(again)"],
        limits=__import__("tiltyard.task", fromlist=["Limits"]).Limits(test_s=1.0),
    )
    assert [o.passed for o in verdict.outcomes] == [False, False]
    assert verdict.void is None
