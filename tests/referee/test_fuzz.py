"""Fuzzing the border between the cells: what goes in comes out, and whatever comes in ends cleanly.

The examiner's side here is the real one (``Peer``, ``Exchange``, ``Codec``, ``Link``); the solution's side is the real one
too, or replays what it said with changes, or makes it up. One thread, no clock: a reply is put into the socket when the
question has left, and the stream ends where the script does, so nothing can hang. Some of it through real cells.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import json
import math
import pathlib
import random
import socket
import struct
import types
import zoneinfo
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.referee.test_codec import hashable, json_values, scalars, values
from tests.referee.test_hostile import PASSING, examine, honest  # noqa: F401
from tiltyard.referee.inside.link import Closed, Link, ProtocolError
from tiltyard.referee.inside.peer import Escaped, Peer

FUZZ = settings(
    max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
BOUND = 1 << 20


# ----------------------------------------------------------------------------------------------------------- two sides


class Direct(Link):
    """An end whose questions are answered by the other side at once, in the same thread; ``said`` is what it sent."""

    def __init__(self) -> None:
        self.other: Any = None
        self.bound = BOUND
        self.arrived: collections.deque[Any] = collections.deque()
        self.said: list[Any] = []

    def send(self, message: list[Any]) -> None:
        copied = json.loads(json.dumps(message))
        self.said.append(copied)
        if message[0] == "q":
            self.other._serve(copied)
        else:
            self.other.link.arrived.append(copied)

    def recv(self) -> list[Any]:
        return self.arrived.popleft()

    def pending(self) -> bool:
        return False


def both(names: dict[str, Any]) -> tuple[Peer, Peer, dict[str, Any]]:
    """The examiner, the solution, and what a test finds under the solution's names."""
    ends = Direct(), Direct()
    examiner = Peer(ends[0], strict=True, home=__name__)
    solution = Peer(ends[1], strict=False, resolve=lambda module, name: names[name])
    ends[0].other, ends[1].other = solution, examiner
    return examiner, solution, examiner.ask("names", list(names))


class Colour(enum.Enum):
    RED = 1
    BLUE = "b"


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Box:
    inside: Any


def alike(a: Any, b: Any, seen: dict[int, int] | None = None) -> bool:
    """Equal with equal types all the way down, and the same object in both wherever it is the same object in one."""
    seen = {} if seen is None else seen
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, dict, set, collections.deque, bytearray)):
        if id(a) in seen:
            return seen[id(a)] == id(b)
        if id(b) in seen.values():
            return False
        seen[id(a)] = id(b)
    if isinstance(a, (float, complex, decimal.Decimal)):
        return repr(a) == repr(b)
    if isinstance(a, dict):
        if isinstance(a, collections.defaultdict) and a.default_factory is not b.default_factory:
            return False
        pairs = zip(a.items(), b.items(), strict=False)
        return len(a) == len(b) and all(alike(x, y, seen) for x, y in pairs)
    if isinstance(a, (list, tuple, collections.deque)):
        if getattr(a, "maxlen", None) != getattr(b, "maxlen", None) or len(a) != len(b):
            return False
        return all(alike(x, y, seen) for x, y in zip(a, b, strict=True))
    return bool(a == b)


rare = (
    st.builds(slice, st.integers() | st.none(), st.integers() | st.none(), st.integers(1, 5))
    | st.builds(range, st.integers(-99, 99), st.integers(-(10**20), 10**20), st.integers(1, 9))
    | st.sampled_from([..., NotImplemented, int, ValueError, len, collections.Counter, datetime.date, object, type(None), KeyError])
    | st.builds(collections.deque, st.lists(st.integers()), st.integers(0, 5))
    | st.builds(collections.defaultdict, st.sampled_from([list, int, None]), st.dictionaries(hashable, st.integers()))
    | st.binary().map(bytearray)
    | st.sampled_from(["a/b", "/", ".", "é/ "]).map(pathlib.PurePosixPath)
    | st.builds(datetime.timezone, st.timedeltas(datetime.timedelta(hours=-23), datetime.timedelta(hours=23)))
    | st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu"]).map(zoneinfo.ZoneInfo)
    | st.fractions() | st.sampled_from([math.inf, -math.inf, math.nan, -0.0, 5e-324, 1e308])
)  # fmt: skip
everything = st.recursive(
    scalars | rare,
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(hashable, inner, max_size=4)
        | st.lists(inner, max_size=4).map(collections.deque)
    ),
    max_leaves=25,
)


@FUZZ
@given(everything)
def test_what_a_test_passes_comes_back_as_it_was(value: Any) -> None:
    got: list[Any] = []

    def echo(x: Any) -> Any:
        got.append(x)
        return x

    _, _, found = both({"echo": echo})
    back = found["echo"](value)
    # an argument that comes back is the argument itself
    if isinstance(value, (list, dict, collections.deque, bytearray)):
        assert back is value
    assert alike(back, value)
    assert alike(got[0], value)


@FUZZ
@given(everything)
def test_what_a_solution_makes_arrives_as_it_is(value: Any) -> None:
    _, _, found = both({"give": lambda: value})
    assert alike(found["give"](), value)


recipes = st.lists(
    st.tuples(st.sampled_from(["list", "dict", "tuple", "deque"]), st.lists(st.integers(0, 30), max_size=5)),
    min_size=1,
    max_size=10,
)


def tangle(recipe: Iterable[tuple[str, list[int]]]) -> list[Any]:
    """Containers that hold each other, in circles too, and numbers."""
    made: list[Any] = []
    for kind, _ in recipe:
        made.append({"list": list, "dict": dict, "deque": collections.deque, "tuple": list}[kind]())
    for n, (kind, inside) in enumerate(recipe):
        for place in inside:
            item = made[place] if place < len(made) else place
            if kind == "dict":
                made[n][len(made[n])] = item
            else:
                made[n].append((item, place) if kind == "tuple" else item)
    return made


@FUZZ
@given(recipes)
def test_what_is_one_object_stays_one_object(recipe: Any) -> None:
    mine, theirs, got = tangle(recipe), tangle(recipe), []
    _, _, found = both({"keep": lambda x: got.append(x) or x, "give": lambda: theirs})
    assert found["keep"](mine) is mine
    assert alike(got[0], mine)
    assert alike(found["give"](), theirs)


changes = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from(["add", "clear", "link", "drop"]), st.integers(0, 9)),
    max_size=6,
)


def change(made: list[Any], steps: Any) -> None:
    """The same changes on one side as on the other."""
    for at, what, other in steps:
        target, source = made[at % len(made)], made[other % len(made)]
        if what == "clear":
            target.clear()
        elif what == "drop" and target:
            target.popitem() if isinstance(target, dict) else target.pop()
        elif what in ("add", "link"):
            item = source if what == "link" else other
            if isinstance(target, dict):
                target[f"{what}{other}"] = item
            else:
                target.append(item)


@FUZZ
@given(recipes, changes, changes)
def test_what_a_call_changes_is_changed_here_too(recipe: Any, first: Any, second: Any) -> None:
    mine, own = tangle(recipe), tangle(recipe)
    # the test's own hold on each container, beside the one through the argument
    held = list(mine)
    _, _, found = both({"change": change})
    for steps in (first, second):
        found["change"](mine, steps)
        change(own, steps)
        assert alike(mine, own)
        assert all(a is b for a, b in zip(held, mine, strict=True))


@FUZZ
@given(st.lists(values, max_size=4), values)
def test_a_callback_sees_and_returns_what_crosses(arguments: list[Any], result: Any) -> None:
    seen: list[Any] = []

    def callback(*args: Any) -> Any:
        seen.append(args)
        return result

    _, _, found = both({"call": lambda f, args: f(*args)})
    assert alike(found["call"](callback, arguments), result)
    assert alike(list(seen[0]), arguments)


@FUZZ
@given(st.sampled_from([ValueError, KeyError, ZeroDivisionError, decimal.InvalidOperation, json.JSONDecodeError]), st.lists(scalars, max_size=3))  # fmt: skip
def test_an_exception_arrives_as_its_own_class(kind: type[Exception], arguments: list[Any]) -> None:
    def fail() -> None:
        error = kind.__new__(kind)
        error.args = tuple(arguments)
        raise error

    _, _, found = both({"fail": fail})
    with pytest.raises(kind) as caught:
        found["fail"]()
    assert type(caught.value) is kind
    if kind is not json.JSONDecodeError:
        assert alike(caught.value.args, tuple(arguments))


class Thing:
    """A solution's class that has a bit of everything."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def add(self, item: Any) -> Thing:
        self.items.append(item)
        return self

    def each(self) -> Any:
        yield from self.items

    def fail(self) -> None:
        raise LookupError("nothing")

    def __len__(self) -> int:
        return len(self.items)


def conversation(found: dict[str, Any]) -> list[Any]:
    """What a test may do in a few lines; what it saw. Asserts nothing: lies are told from the truth by the caller."""
    xs = [3, 1, 2]
    seen: list[Any] = [found["twice"](xs), xs, found["twice"]((1, "é", None), lambda x: [x, x])]
    thing = found["Thing"]([1.5])
    seen += [len(thing.add(b"x").add({"k": (1,)})), thing.items, list(thing.each())]
    try:
        thing.fail()
        seen.append("did not raise")
    except LookupError as error:
        seen.append(str(error))
    seen += [found["point"]().x, found["colour"]().name]
    return seen


NAMES: dict[str, Any] = {
    "twice": lambda xs, f=None: [f(x) if f else x for x in [*xs, *xs]], "Thing": Thing, "point": lambda: Point(1, [2]),
    "colour": lambda: Colour.RED,
}  # fmt: skip


def recorded() -> tuple[list[list[Any]], list[Any]]:
    """What the honest side says in a conversation, in turns (all messages between two of the examiner's), and what the
    test sees."""
    ends = Direct(), Direct()
    examiner = Peer(ends[0], strict=True, home=__name__)
    solution = Peer(ends[1], strict=False, resolve=lambda module, name: NAMES[name])
    ends[0].other, ends[1].other = solution, examiner
    seen = conversation(examiner.ask("names", list(NAMES)))
    return ends[1].said, seen


class Scripted(Link):
    """The examiner's end of a real socket; each message that leaves puts the next bytes of the script into it, and the
    last ones are followed by the end of the stream (unless it ``stays_open``)."""

    def __init__(self, script: Iterable[bytes], *, stays_open: bool = False) -> None:
        mine, self.theirs = socket.socketpair()
        self.theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        self.theirs.setblocking(False)
        self.script, self.stays_open = collections.deque(script), stays_open
        super().__init__(mine, BOUND)

    def send(self, message: list[Any]) -> None:
        json.dumps(message)  # it could leave
        try:
            if self.script:
                self.theirs.sendall(self.script.popleft())
            if not self.script and not self.stays_open:
                self.theirs.shutdown(socket.SHUT_WR)
        except OSError:  # more than a socket holds: the stream ends here
            self.theirs.close()

    def close(self) -> None:
        self.theirs.close()
        self.sock.close()


def frame(message: Any) -> bytes:
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    return struct.pack(">I", len(data)) + data


def told(
    script: Iterable[bytes], act: Callable[[dict[str, Any]], Any] = conversation
) -> tuple[str, Any, Peer]:
    """How a test ends whose solution's side says these bytes: "saw" and what, "raised" and the exception, or "escaped"
    and the reason. Anything else that comes out of the examiner's code is a failure of this test."""
    link = Scripted(script)
    peer = Peer(link, strict=True, home=__name__)
    try:
        try:
            return "saw", act(peer.ask("names", list(NAMES))), peer
        except Escaped as escaped:
            return "escaped", escaped.args[0], peer
        except Exception as error:
            return "raised", error, peer
    finally:
        link.close()


def own_fault(error: Exception) -> bool:
    """Whether an exception comes out of the examiner's own modules rather than from the test or the solution."""
    trace = error.__traceback__
    last = None
    while trace is not None:
        last = trace.tb_frame.f_code.co_filename
        trace = trace.tb_next
    return last is not None and last.endswith(
        ("codec.py", "exchange.py", "shared.py", "link.py", "describe.py")
    )


def assert_clean(ending: tuple[str, Any, Peer]) -> None:
    kind, what, peer = ending
    if kind == "raised":
        assert not own_fault(what), repr(what)
        assert not isinstance(what, (ProtocolError, Closed, RecursionError, MemoryError)), repr(what)
    if kind == "escaped":
        assert peer.escaped is not None and isinstance(what, str) and what


TURNS, SEEN = recorded()
HONEST = [frame(message) for message in TURNS]


def test_the_recorded_conversation_can_be_replayed() -> None:
    kind, seen, _ = told(HONEST)
    assert kind == "saw"
    assert alike(seen[:4], SEEN[:4]) and [str(x) for x in seen] == [str(x) for x in SEEN]
    assert len(HONEST) > 10


def test_dying_at_every_point_is_a_failed_test() -> None:
    whole = b"".join(HONEST)
    ends = [sum(map(len, HONEST[:n])) for n in range(len(HONEST) + 1)]
    cuts = sorted(
        {
            *ends[:-1],
            *(e + d for e in ends[:-1] for d in (1, 3, 4, 5, 30)),
            *range(0, len(whole) - 1, 37),
            len(whole) - 1,
        }
    )
    for cut in cuts:
        if cut >= len(whole):
            continue
        script = [
            part[: max(0, cut - start)] for part, start in zip(HONEST, ends, strict=False) if start <= cut
        ]
        kind, reason, _ = told([part for part in script if part])
        assert kind == "escaped", (cut, reason)
        assert "process ended" in reason or "protocol" in reason, reason


@pytest.mark.parametrize("turn", range(len(HONEST)))
def test_a_message_twice_is_a_failed_test(turn: int) -> None:
    kind, _, peer = told([*HONEST[:turn], HONEST[turn] * 2, *HONEST[turn + 1 :]])
    last = turn == len(HONEST) - 1
    # behind the last message nobody looks: what comes then is never read
    assert (kind == "saw") if last else (kind == "escaped" and "protocol_violation" in peer.flags)


@pytest.mark.parametrize("turn", range(1, len(HONEST)))
def test_answering_another_call_is_a_failed_test(turn: int) -> None:
    for number in (TURNS[turn][1] - 1, TURNS[turn][1] + 1, -1, None, str(TURNS[turn][1]), [TURNS[turn][1]]):
        message = [TURNS[turn][0], number, *TURNS[turn][2:]]
        kind, _, peer = told([*HONEST[:turn], frame(message), *HONEST[turn + 1 :]])
        assert kind == "escaped" and "protocol_violation" in peer.flags
    # and an older answer in the place of the new one
    kind, _, peer = told([*HONEST[:turn], HONEST[turn - 1], *HONEST[turn + 1 :]])
    assert kind == "escaped" and "protocol_violation" in peer.flags


def test_messages_in_another_order_are_a_failed_test() -> None:
    rng = random.Random(7)
    for _ in range(40):
        order = list(range(1, len(HONEST)))
        while order == sorted(order):
            rng.shuffle(order)
        assert told([HONEST[0], *(HONEST[n] for n in order)])[0] == "escaped"


@pytest.mark.parametrize("turn", range(len(HONEST)))
def test_one_byte_short_and_nothing_more_leaves_the_test_waiting(turn: int) -> None:
    """The examiner's clock ends that (``test_hostile``); here: no answer is made of what has come so far."""
    link = Scripted([*HONEST[:turn], HONEST[turn][:-1]], stays_open=True)
    peer = Peer(link, strict=True, home=__name__)
    link.sock.settimeout(0.01)  # only what is there already counts
    try:
        with pytest.raises(Escaped):
            conversation(peer.ask("names", list(NAMES)))
    finally:
        link.close()
    assert peer.escaped is not None


def damage(data: bytes, rng: random.Random) -> bytes:
    """The body of a frame with something else in it, its length right again."""
    body = bytearray(data[4:])
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(body))
        what = rng.randrange(4)
        if what == 0:
            body[at] = rng.randrange(256)
        elif what == 1:
            body[at : at + rng.randrange(1, 9)] = b""
        elif what == 2:
            end = min(len(body), at + rng.randrange(1, 40))
            body[at:at] = body[at:end]
        else:
            body[at:at] = rng.choice(
                [b"[", b"]", b"null,", b"-1,", b'"m",', b"1e999", b'["m",1],', b"[[]],", b"NaN,", b'"']
            )
        if not body:
            body += b"0"
    return frame(bytes(body))


def test_damaged_messages_end_cleanly() -> None:
    rng = random.Random(11)
    endings: collections.Counter[str] = collections.Counter()
    for _ in range(1200):
        turn = rng.randrange(len(HONEST))
        ending = told([*HONEST[:turn], damage(HONEST[turn], rng), *HONEST[turn + 1 :]])
        assert_clean(ending)
        endings[ending[0]] += 1
    assert endings["escaped"] > 600


def grafted(message: Any, other: Any, rng: random.Random) -> Any:
    """The message with a piece of another one, or of itself, in the place of one of its own: well formed, and wrong."""
    places: list[tuple[list[Any], int]] = []

    def walk(item: Any) -> None:
        if isinstance(item, list):
            for n, inner in enumerate(item):
                places.append((item, n))
                walk(inner)

    made, donor = json.loads(json.dumps(message)), []
    walk(json.loads(json.dumps(other)))
    donor, places = [holder[n] for holder, n in places], []
    walk(made)
    for _ in range(rng.choice((1, 1, 2, 3))):
        holder, n = rng.choice(places)
        if n < len(holder):
            holder[n] = rng.choice(
                [*donor, None, True, -1, 0, 2**70, 1.5, "", "__class__", [], ["m", 1], ["r", 2], ["o", 1, 1]]
            )
    return made


def test_pieces_of_true_messages_in_wrong_places_end_cleanly() -> None:
    rng = random.Random(13)
    endings: collections.Counter[str] = collections.Counter()
    for _ in range(1500):
        turn = rng.randrange(len(TURNS))
        message = grafted(TURNS[turn], rng.choice(TURNS), rng)
        ending = told([*HONEST[:turn], frame(message), *HONEST[turn + 1 :]])
        assert_clean(ending)
        endings[ending[0]] += 1
    assert endings["escaped"] > 500


def use(found: dict[str, Any]) -> Any:
    """A test that uses what it got in every way that it can, without believing anything."""
    value = found["twice"](1)
    seen: list[Any] = []
    for act in (
        repr, len, iter, list, hash, bool, str, lambda v: v == 3, lambda v: v + 1, lambda v: v[0], lambda v: v(), lambda v: v.x,
        lambda v: 3 in v, lambda v: v < 2, lambda v: isinstance(v, int), lambda v: sorted(v), lambda v: dict(v),
    ):  # fmt: skip
        try:
            seen.append(type(act(value)).__name__)
        except Escaped:
            raise
        except Exception as error:
            assert not own_fault(error), repr(error)
            seen.append(type(error).__name__)
    return seen


FUNCTION = ["o", 1, [1, "twice", "m", "function", [], ["__call__"], [], [], [], [], False, []]]
FOUND = frame(["a", 1, [], [3], 0, ["d", 3, "", ["twice"], [FUNCTION]]])

# a grammar of items that look right: tags with fields of the right kind, mostly
numbers = st.integers(-2, 12) | st.sampled_from([2**31, 2**70, -(2**70)])
names = st.sampled_from(
    [
        "__eq__",
        "__len__",
        "__iter__",
        "__class__",
        "x",
        "",
        "__call__",
        "__bool__",
        "__getattr__",
        "é",
        "__dict__",
    ]
)
descriptions = st.tuples(
    numbers, names, names, st.sampled_from(["object", "function", "namedtuple", "enum", "exception", "generator", "coroutine", "module", "zz"]),
    st.lists(st.sampled_from([["T", "int"], ["T", "ValueError"], ["Z", "json", "JSONDecodeError"], ["T", "tuple"]]), max_size=2),
    st.lists(names, max_size=4), st.lists(names, max_size=2), st.lists(names, max_size=2), st.lists(names, max_size=2),
    st.lists(names, max_size=2), st.booleans(), st.just([]) | st.tuples(names, st.lists(names, max_size=2), st.lists(numbers, max_size=2)).map(list),
).map(list)  # fmt: skip
items = st.recursive(
    st.none() | st.booleans() | numbers | st.floats() | st.text(max_size=4),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["l", "s", "q"]), numbers, st.lists(inner, max_size=3)).map(list),
        st.tuples(st.sampled_from(["t", "f"]), st.lists(inner, max_size=3)).map(list),
        st.tuples(st.just("d"), numbers, st.sampled_from(["", "O", "C", "D", "x"]), st.lists(inner, max_size=2), st.lists(inner, max_size=2), inner).map(list),
        st.tuples(st.just("o"), numbers, descriptions | numbers, inner).map(list),
        st.tuples(st.sampled_from(["m", "k", "K", "r", "mod", "T", "b", "i", "U", "De", "P", "Zi", "B", "!"]), inner | numbers | names).map(list),
        st.tuples(st.just("M"), inner, names).map(list),
        st.tuples(st.just("nt"), descriptions | numbers, st.lists(inner, max_size=3)).map(list),
        st.tuples(st.just("e"), descriptions | numbers, names, inner).map(list),
        st.tuples(st.just("X"), st.sampled_from([["T", "ValueError"], ["T", "SystemExit"], ["T", "int"], ["Z", "os", "error"], ["k", 1]]), st.lists(inner, max_size=2), st.none() | names, numbers, inner).map(list),
        st.tuples(st.sampled_from(["Da", "Dt", "Ti", "Td", "Tz", "Fr", "c", "R", "S", "V", "mp", "na", "ns"]), inner, inner, inner, inner).map(list),
    ),
    max_leaves=12,
)  # fmt: skip


@settings(FUZZ, max_examples=500)
@given(items | json_values)
def test_any_answer_is_a_value_that_can_be_used_or_a_failed_test(item: Any) -> None:
    try:
        answer = frame(["a", 2, [], [], 0, item])
    except (TypeError, ValueError):
        return
    assert_clean(told([FOUND, answer], use))


@settings(FUZZ, max_examples=200)
@given(items | json_values)
def test_any_exception_is_one_that_a_test_can_catch_or_a_failed_test(item: Any) -> None:
    kind, what, peer = told([FOUND, frame(["e", 2, [], [], 0, item])], lambda found: found["twice"](1))
    assert kind != "saw"
    if kind == "raised":
        assert isinstance(what, Exception) and not isinstance(what, (ProtocolError, Closed))
        assert type(what).__name__ not in ("SkipTest", "SystemExit")
    else:
        assert peer.escaped is not None


@settings(FUZZ, max_examples=200)
@given(
    st.sampled_from(["c", "M", "g", "s", "D", "x", "w", "in", "names", "dir", "zz", ""]),
    items | st.sampled_from([["m", n] for n in range(1, 5)]), st.lists(items | names, max_size=4),
)  # fmt: skip
def test_any_question_is_answered_or_refused(op: str, target: Any, rest: list[Any]) -> None:
    def act(found: dict[str, Any]) -> Any:
        secret = "the expected value"

        class Mine:
            public = 1
            _private = secret

            def method(self) -> int:
                return 1

        return found["twice"](lambda x: x, Mine(), iter([1]))

    question = frame(["q", 1, [], [], op, target, *rest])
    said: list[Any] = []

    class Listening(Scripted):
        def send(self, message: list[Any]) -> None:
            said.append(message)
            super().send(message)

    link = Listening([FOUND, question, frame(["a", 2, [], [], 0, 2])])
    peer = Peer(link, strict=True, home=__name__)
    try:
        act(peer.ask("names", ["twice"]))
    except Escaped:
        pass
    except Exception as error:
        assert not own_fault(error), repr(error)
    finally:
        link.close()
    answers = [json.dumps(message) for message in said if message[0] in ("a", "e")]
    assert not any("the expected value" in answer for answer in answers)


written_back = st.lists(
    st.tuples(
        st.sampled_from([2, 2, 4, 4, 5, 7]), st.lists(st.lists(items, max_size=3) | json_values, max_size=3)
    ).map(list)
    | json_values,
    max_size=3,
)


@settings(FUZZ, max_examples=300)
@given(written_back, st.lists(numbers, max_size=3) | json_values)
@example([[4, [[["l", 5, []]], [1]]]], [])
@example([[4, [["k"], [["r", 4]]]], [2, [[["r", 2], ["r", 4]]]]], [])
@example([[2, [[["l", 5, [["r", 5]]]]]], [5, [[1]]]], [5])
@example([[2, 5]], [2, 2])
def test_any_write_back_is_taken_or_a_failed_test(written: Any, forgotten: Any) -> None:
    def act(found: dict[str, Any]) -> Any:
        xs: list[Any] = [1, {"k": 2}]
        found["twice"](xs)
        found["twice"]({"again": xs})
        return xs

    try:
        answer = frame(["a", 2, written, forgotten, 0, None])
    except (TypeError, ValueError):
        return
    ending = told([FOUND, answer], act)
    assert ending[0] != "raised", repr(ending[1])
    assert_clean(ending)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 900_000, b'["a",2,[],[],0,' + b'["l",5,[' * 3000, b'["a",2,[],[],0,"' + b"\\ud800" * 1000 + b'"]',
        b'["a",2,[],[],0,' + b"[" * 290 + b"]" * 290 + b"]", b'["a",2,[],[],0,["i","0x' + b"f" * 500_000 + b'"]]',
        b'["a",2,[],[],0,' + b"7" * 500_000 + b"]", b'["a",2,[],[],0,1e400]', b'["a",2,[],[],0,["De","1E+999999999999999999"]]',
        b'["a",2,[],[],0,["De","' + b"9" * 100_000 + b'"]]', b'["a",2,[],[],0,["R",0,' + b"9" * 4000 + b",1]]",
        b'["a",2,[],[],0,["Td",999999999,0,0]]', b'["a",2,[],[],0,["Td",1e400,0,0]]', b'["a",2,[],[],0,["na",5,"<f8",[9999999999],"00"]]',
        b'["a",2,[],[],0,["na",5,"<U999999999",[1],"00"]]', b'["a",2,[],[],0,["ns","O","00"]]', b'["a",2,[],[],0,["q",5,99999999999999999999,[]]]',
        b'["a",2,[],[],0,["f",[' + b'["f",[],' * 2000 + b"]]]", b'["a",2,[],[],0,["b","' + b"0" * 900_001 + b'"]]',
        b'["a",2,[],[],0,["d",5,"",[["t",[["l",7,[]]]]],[1]]]', b'["a",2,[],[],0,["s",5,[["l",7,[]]]]]',
        b'["a",2,[],[],0,["X",["T","ValueError"],[],null,0,' + b'["X",["T","ValueError"],[],null,0,' * 400 + b"0" + b"]" * 402,
    ],
    ids=lambda body: body[:40].decode(),
)  # fmt: skip
def test_huge_and_deep_answers_end_cleanly(body: bytes) -> None:
    assert_clean(told([FOUND, frame(body)], use))


def test_a_frame_is_taken_whatever_pieces_it_arrives_in() -> None:
    rng = random.Random(3)
    messages = [[n, "é" * n, [n]] for n in range(40)]
    frames = [frame(message) for message in messages]
    data = b"".join(frames)
    ends = [sum(map(len, frames[: n + 1])) for n in range(len(frames))]
    mine, theirs = socket.socketpair()
    link, sent, got = Link(mine, BOUND), 0, []
    with mine, theirs:
        while sent < len(data):
            size = rng.choice((1, 2, 3, 5, 50, 200))
            theirs.sendall(data[sent : sent + size])
            sent = min(len(data), sent + size)
            while len(got) < sum(end <= sent for end in ends):
                got.append(link.recv())
    assert got == messages


# ------------------------------------------------------------------------------------------------ through real cells


def test_made_up_messages_through_a_real_examiner(examine: Callable[..., list[list[Any]]]) -> None:  # noqa: F811
    rng = random.Random(17)
    named = [*FUNCTION[:2], [1, "f", *FUNCTION[2][2:]]]
    found = frame(["a", 1, [], [3], 0, ["d", 3, "", ["f"], [named]]])
    turns = iter([True] * 25 + [False] * 5)

    def play(link: Link) -> None:
        if next(turns):
            link.recv()
            link.sock.sendall(found)
        link.recv()
        first = rng.randrange(6)
        body = [
            lambda: frame(["a", 2, [], [], 0, ["o", rng.randrange(9), rng.randrange(9)]]),
            lambda: frame(["a", rng.randrange(9) + 3, [], [], 0, 2]),
            lambda: frame(grafted(["a", 2, [], [], 0, ["l", 5, [1]]], FUNCTION, rng)) + b"\0",
            lambda: damage(frame(["q", 1, [], [], "c", ["m", 1], [], [], []]), rng),
            lambda: frame(["e", 2, [], [], 0, ["!", "SystemExit"]]),
            lambda: frame(["a", 2, [], [], 0, 2])[: rng.randrange(20)],
        ][first]()
        link.sock.sendall(body)

    reports = examine(play, [PASSING] * 30, seconds=20.0)
    assert len(reports) == 30
    for passed, reason, _, died in reports:
        assert not passed and not died and reason


def test_an_honest_test_after_each_lie_is_none_the_worse(examine: Callable[..., list[list[Any]]]) -> None:  # noqa: F811
    rng = random.Random(19)
    count = iter(range(20))

    def play(link: Link) -> None:
        if next(count) % 2:
            honest(link)
        else:
            link.recv()
            link.sock.sendall(rng.randbytes(rng.randrange(1, 60)))

    reports = examine(play, [PASSING] * 20, seconds=20.0)
    assert [passed for passed, *_ in reports] == [False, True] * 10


SABOTAGE = {
    "writes into every descriptor": "for fd in range(3, 64):\n            try: os.write(fd, DATA)\n            except OSError: pass",
    "answers twice from a fork": "os.fork()",
    "closes every descriptor": "os.closerange(3, 64)",
    "half an answer and death": "for fd in range(3, 64):\n            try: os.write(fd, DATA[:7])\n            except OSError: pass\n        os._exit(0)",
    "reads what is for its own peer": "import select\n        for fd in range(3, 64):\n            try:\n                os.set_blocking(fd, False); os.read(fd, 1 << 16)\n            except OSError: pass",
}  # fmt: skip


@pytest.mark.parametrize("name", SABOTAGE)
def test_a_solution_that_meddles_with_its_own_link_gains_nothing(wall: Any, name: str) -> None:
    from tests.referee.conftest import make_task
    from tiltyard.referee import Referee
    from tiltyard.task import Files, Limits

    source = (
        "import os, struct\nBODY = b'[\"a\",2,[],[],0,2]'\nDATA = struct.pack('>I', len(BODY)) + BODY\n"
        f"def f(x):\n    if x > 0:\n        {SABOTAGE[name]}\n    return x + 5\n"
    )
    task = make_task(
        "def f(x): return x + 1",
        ["assert f(2) == 3", "assert f(-5) == -4", "assert f(3) == 4"],
        limits=Limits(test_s=10.0),
    )
    verdict = Referee(wall).grade(task, Files({"solution.py": source}))
    assert (verdict.reward, verdict.void) == (0.0, None)
    assert types.MappingProxyType({o.id: o.passed for o in verdict.outcomes}) == {
        f"hidden/{n}": False for n in (1, 2, 3)
    }
    assert Referee(wall).grade(task, task.reference).reward == 1.0
