"""Everything that a test can do with a solution in its own process works with one in another (REFEREE, the examiner)."""

from __future__ import annotations

from textwrap import dedent

import pytest

SOLUTION = """
import asyncio, dataclasses, enum, functools, time
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from typing import NamedTuple

class TooFew(ValueError):
    def __init__(self, need, have):
        super().__init__(f"need {need}, have {have}")
        self.need, self.have = need, have

class Deeper(TooFew):
    pass

def same(x):
    return x

def sort_in_place(xs):
    xs.sort()

def fill(d, s, q, b):
    d["new"] = [1]; s.add(9); q.append(7); b.extend(b"!")

def swap_rows(m):
    m[0], m[1] = m[1], m[0]

def alias(xs):
    return [xs, xs]

def raises(n):
    raise TooFew(n, 3)

def raises_deeper():
    try:
        {}["k"]
    except KeyError as error:
        raise Deeper(1, 2) from error

def plain(kind, *args):
    raise getattr(__builtins__, kind)(*args) if not isinstance(__builtins__, dict) else __builtins__[kind](*args)

def exits():
    raise SystemExit(0)

def interrupts():
    raise KeyboardInterrupt

def skips():
    import unittest
    raise unittest.SkipTest("skipped")

class Stack:
    limit = 7
    made = 0
    def __init__(self, items=()):
        self._items = list(items)
        self.tag = None
    def push(self, x):
        self._items.append(x)
        return self
    def pop(self):
        if not self._items:
            raise IndexError("pop from an empty stack")
        return self._items.pop()
    @property
    def size(self):
        return len(self._items)
    @property
    def inside(self):
        return self._items
    @classmethod
    def of(cls, *items):
        return cls(items)
    @staticmethod
    def twice(x):
        return 2 * x
    def __len__(self): return len(self._items)
    def __iter__(self): return iter(self._items)
    def __contains__(self, x): return x in self._items
    def __getitem__(self, i): return self._items[i]
    def __setitem__(self, i, x): self._items[i] = x
    def __delitem__(self, i): del self._items[i]
    def __eq__(self, other): return isinstance(other, Stack) and self._items == other._items
    def __hash__(self): return hash(tuple(self._items))
    def __lt__(self, other): return self._items < other._items
    def __add__(self, other): return Stack(self._items + list(other))
    def __iadd__(self, other): self._items += list(other); return self
    def __repr__(self): return f"Stack({self._items!r})"
    def __bool__(self): return bool(self._items)
    def __enter__(self): self.tag = "in"; return self
    def __exit__(self, kind, error, trace): self.tag = kind and kind.__name__; return kind is KeyError
    def __call__(self, a, *, b=0): return a + b

class Tall(Stack):
    pass

def count(n):
    for i in range(n):
        got = yield i
        if got is not None:
            yield got * 100
    return "end"

def tidy(log):
    try:
        yield 1
        yield 2
    except ValueError:
        yield "caught"
    finally:
        log.append("closed")

def endless():
    n = 0
    while True:
        yield n
        n += 1

def transform(f, xs):
    return [f(x) for x in xs]

def guarded(f):
    try:
        return f()
    except LookupError as error:
        return type(error).__name__

def call_with(f, *args, **kwargs):
    return f(*args, **kwargs)

def write_report(file, n):
    for i in range(n):
        file.write(f"line {i}\\n")
    return file.getvalue()

def use(obj):
    obj.hits += 1
    return obj.area() + obj.hits

def make_adder(n):
    return lambda x: x + n

Point = namedtuple("Point", "x y")
class Vec(NamedTuple):
    x: int
    y: int = 0
    def norm(self): return (self.x ** 2 + self.y ** 2) ** 0.5
    @property
    def flipped(self): return Vec(self.y, self.x)

def point(): return Point(1, 2)
def vec(): return Vec(3, 4)

class Color(enum.Enum):
    RED = 1
    BLUE = "b"
    def low(self): return self.name.lower()

class Level(enum.IntEnum):
    LOW = 1
    HIGH = 9

class Perm(enum.Flag):
    R = 1
    W = 2

@dataclasses.dataclass
class Item:
    name: str
    tags: list = dataclasses.field(default_factory=list)

@dataclasses.dataclass(frozen=True, order=True)
class Version:
    major: int
    minor: int

_kept = []
def keep(xs):
    _kept.append(xs)
def kept_push(x):
    _kept[-1].append(x)
    return _kept[-1]

_calls = 0
def calls():
    global _calls
    _calls += 1
    return _calls

def shout():
    print("loud", end="!")
    return None

def ask_twice():
    return [input("a? "), input()]

async def later(x):
    await asyncio.sleep(0)
    return x + 1
async def both():
    return await asyncio.gather(later(1), later(2))
async def ticks(n):
    for i in range(n):
        yield i
class Ctx:
    async def __aenter__(self): return "open"
    async def __aexit__(self, *exc): return False

@functools.lru_cache
def cached(x): return x * 2

def shape_of(x):
    return type(x).__name__

def recursion_limit():
    import sys
    return sys.getrecursionlimit()

def random_number():
    import random
    return random.random()
"""

CASES = {
    "in place": "xs = [3, 1, 2]; assert sort_in_place(xs) is None; assert xs == [1, 2, 3]",
    "in place, all kinds": """
        from collections import deque
        d, s, q, b = {}, {1}, deque([1]), bytearray(b"a")
        fill(d, s, q, b)
        assert d == {"new": [1]} and s == {1, 9} and list(q) == [1, 7] and b == b"a!"
    """,
    "rows keep their identity": "a, b = [1], [2]; m = [a, b]; swap_rows(m); assert m[0] is b and m[1] is a",
    "identity": "xs = [1]; assert same(xs) is xs; r = alias(xs); assert r[0] is xs and r[1] is xs",
    "cycles": "xs = [1]; xs.append(xs); ys = same(xs); assert ys is xs and ys[1] is ys",
    "kept argument, both ways": """
        xs = [1]; keep(xs); assert kept_push(2) is xs and xs == [1, 2]
        xs.append(3); assert kept_push(4) == [1, 2, 3, 4]
    """,
    "insides that are handed out": "s = Stack([1]); s.inside.append(5); assert s.pop() == 5; assert s.inside is s.inside",
    "own exception": """
        try:
            raises(5)
        except TooFew as e:
            assert (e.need, e.have) == (5, 3) and str(e) == "need 5, have 3" and isinstance(e, ValueError)
            assert e.args == ("need 5, have 3",) and type(e).__name__ == "TooFew"
        else:
            assert False
    """,
    "own exception by its base": "try:\n    raises(5)\nexcept ValueError:\n    pass\nelse:\n    assert False",
    "exception chain": """
        try:
            raises_deeper()
        except TooFew as e:
            assert type(e) is Deeper and issubclass(Deeper, TooFew) and isinstance(e.__cause__, KeyError)
    """,
    "built-in exceptions": """
        for kind, args in [("ValueError", ("a", 1)), ("KeyError", ("k",)), ("OSError", (2, "gone")), ("ZeroDivisionError", ())]:
            try:
                plain(kind, *args)
            except Exception as e:
                assert type(e).__name__ in (kind, "FileNotFoundError") and e.args == args, (e, e.args)
    """,
    "a class": """
        s = Stack(); assert s.push(1).push(2) is s and len(s) == 2 and s.size == 2
        assert list(s) == [1, 2] and 2 in s and 5 not in s and s[0] == 1 and bool(s) and not Stack()
        s[0] = 4; del s[1]; assert s.pop() == 4
        try:
            s.pop()
        except IndexError as e:
            assert str(e) == "pop from an empty stack"
        else:
            assert False
    """,
    "class attributes and methods": """
        assert Stack.limit == 7 and Stack.of(1, 2).size == 2 and Stack.twice(4) == 8 and Stack.__name__ == "Stack"
        Stack.made = 3; assert Stack.made == 3 and Stack().made == 3
        s = Stack(); s.tag = [1]; assert s.tag == [1] and s.tag is s.tag
        assert hasattr(s, "push") and not hasattr(s, "nothing")
        push = s.push; push(3); assert s.size == 1 and callable(push)
        assert Stack.push(s, 4).size == 2
    """,
    "isinstance": """
        assert isinstance(Tall(), Stack) and isinstance(Stack(), Stack) and not isinstance(Stack(), Tall)
        assert issubclass(Tall, Stack) and type(Stack()) is Stack and not isinstance(Stack(), list)
        from collections.abc import Iterable, Sized, Callable
        assert isinstance(Stack(), Iterable) and isinstance(Stack(), Sized) and not isinstance(point, Sized)
    """,
    "operators between objects": """
        assert Stack([1]) == Stack([1]) and Stack([1]) != Stack([2]) and Stack([1]) < Stack([2])
        assert Stack([1]) + [2] == Stack([1, 2]); s = t = Stack([1]); s += [5]; assert s is t and s.size == 2
        assert {Stack([1]): "a"}[Stack([1])] == "a" and len({Stack([1]), Stack([1]), Stack([2])}) == 2
        assert repr(Stack([1])) == "Stack([1])" and f"{Stack([2])}" == "Stack([2])"
        assert sorted([Stack([2]), Stack([1])])[0] == Stack([1])
    """,
    "an object is never plain data": "assert Stack([1]) != [1] and not (Stack([1]) == [1]) and [Stack()] != [[]]",
    "order against plain data is refused": "try:\n    Stack([1]) < [2]\nexcept TypeError:\n    pass\nelse:\n    assert False",
    "with": """
        with Stack() as s:
            assert s.tag == "in"
        assert s.tag is None
        with s:
            raise KeyError("swallowed")
        assert s.tag == "KeyError"
    """,
    "callable object": "assert Stack()(1, b=2) == 3",
    "copy": """
        import copy
        s = Stack([[1]]); t = copy.deepcopy(s); u = copy.copy(s)
        t.inside[0].append(2); assert s.inside == [[1]] and t.inside == [[1, 2]] and u == s and u is not s
    """,
    "generator": """
        import types
        g = count(3); assert isinstance(g, types.GeneratorType) and next(g) == 0 and g.send(2) == 200 and list(g) == [1, 2]
        try:
            g = count(0); next(g)
        except StopIteration as e:
            assert e.value == "end"
        import itertools
        assert list(itertools.islice(endless(), 3)) == [0, 1, 2]
    """,
    "generator, closed and thrown into": """
        log = []; g = tidy(log); next(g); g.close(); assert log == ["closed"]
        log = []; g = tidy(log); next(g); assert g.throw(ValueError("x")) == "caught"; assert list(g) == [] and log == ["closed"]
    """,
    "callbacks": """
        assert transform(lambda x: x + 1, [1, 2]) == [2, 3] and transform(str, [1]) == ["1"]
        seen = []; transform(seen.append, [1, 2]); assert seen == [1, 2]
        def boom(): raise KeyError("k")
        assert guarded(boom) == "KeyError"
        assert call_with(lambda *a, **k: (a, k), 1, b=2) == ((1,), {"b": 2})
        assert transform(iter([5, 6]).__next__ and (lambda x: x), iter([5, 6])) == [5, 6]
        assert call_with(lambda f: f(3), make_adder(4)) == 7
        depth = [0]
        def again(): depth[0] += 1; return call_with(again) if depth[0] < 5 else depth[0]
        assert call_with(again) == 5
    """,
    "a test's own exception through the solution": """
        class Mine(Exception): pass
        def boom(): raise Mine("z")
        try:
            guarded(boom); assert False
        except Mine as e:
            assert e.args == ("z",)
    """,
    "file-like object": "import io; f = io.StringIO(); assert write_report(f, 2) == 'line 0\\nline 1\\n' == f.getvalue()",
    "instance of a test's class": """
        class Square:
            def __init__(self): self.hits = 0
            def area(self): return 9
        s = Square(); assert use(s) == 10 and s.hits == 1 and same(s) is s and shape_of(s) == "Square"
    """,
    "functions are values": "f = make_adder(2); assert f(3) == 5 and same(f) is f and make_adder.__name__ == 'make_adder'",
    "namedtuples": """
        p = point(); assert p == (1, 2) and p.x == 1 and isinstance(p, tuple) and p == Point(1, 2) and p._replace(x=5) == (5, 2)
        v = vec(); assert v == (3, 4) and v.norm() == 5.0 and v.flipped == Vec(4, 3) and isinstance(v, Vec) and Vec(7) == (7, 0)
    """,
    "enums": """
        assert same(Color.RED) is Color.RED and Color(1) is Color.RED and Color.RED.low() == "red" and Color["BLUE"].value == "b"
        assert [c.name for c in Color] == ["RED", "BLUE"] and Level.HIGH == 9 and Level.LOW < Level.HIGH and isinstance(Level.LOW, int)
        assert Perm.R | Perm.W == Perm(3) and same(Perm.R | Perm.W) == Perm.W | Perm.R
        import enum
        class Mine(enum.Enum):
            A = 1
        assert same(Mine.A) is Mine.A
    """,
    "dataclasses": """
        import dataclasses
        i = Item("a", ["t"]); i.tags.append("u"); assert i.tags == ["t", "u"] and i == Item("a", ["t", "u"]) and i.name == "a"
        assert dataclasses.asdict(i) == {"name": "a", "tags": ["t", "u"]} and dataclasses.replace(i, name="b").name == "b"
        assert Version(1, 2) < Version(1, 10) and len({Version(1, 2), Version(1, 2)}) == 1 and repr(Version(1, 2)) == "Version(major=1, minor=2)"
        try:
            Version(1, 2).major = 3
        except AttributeError:
            pass
        else:
            assert False
    """,
    "plain data of every kind": """
        import collections, datetime as dt, decimal, fractions, pathlib, uuid
        for v in [
            None, True, 0, -1, 10 ** 5000, 1.5, -0.0, float("inf"), 1j, "", "\\ud800\\x00é", b"\\xff", bytearray(b"y"), (), (1, [2]),
            [[], [[]]], set(), {1, "a", (2,)}, frozenset([1, frozenset([2])]), {}, {1: {2: 3}, (1,): None}, range(3, 9, 2), slice(1, None),
            ..., NotImplemented, decimal.Decimal("1.50"), fractions.Fraction(1, 3), dt.date(2020, 2, 29), dt.time(1, 2, 3, 4),
            dt.datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=dt.timezone.utc), dt.datetime(2020, 1, 1, fold=1), dt.timedelta(-1, 5),
            collections.Counter("aab"), collections.OrderedDict(b=1, a=2), collections.deque([1, 2], maxlen=3), int, ValueError,
            collections.defaultdict(list, {1: [2]}), {"a": 1}.items(), {"a": 1}.keys(), uuid.UUID(int=5), pathlib.PurePosixPath("a/b"),
            pathlib.Path("/x"), len,
        ]:
            w = same(v)
            assert w == v and type(w) is type(v), (v, w)
        assert str(same(-0.0)) == "-0.0" and same(float("nan")) != same(float("nan"))
        d = same(collections.defaultdict(list)); d[1].append(2); assert d == {1: [2]}
        assert same(collections.deque([1, 2], maxlen=2)).maxlen == 2
    """,
    "big data": "xs = list(range(200_000)); assert same(xs) is xs; ys = [[i] for i in range(2000)]; assert same(ys) == ys",
    "deep data": "x = []\nfor _ in range(280): x = [x]\nassert same(x) == x and recursion_limit() < 2000",
    "output is data to tests that ask": """
        import contextlib, io
        with contextlib.redirect_stdout(io.StringIO()) as out:
            shout()
        assert out.getvalue() == "loud!"
    """,
    "input is what a test puts there": "import io, sys; sys.stdin = io.StringIO('x\\ny\\n'); assert ask_twice() == ['x', 'y']",
    "async": """
        import asyncio
        assert asyncio.run(later(1)) == 2 and asyncio.run(both()) == [2, 3]
        async def main():
            async with Ctx() as c:
                return c, [i async for i in ticks(3)], await asyncio.gather(later(5), later(6))
        assert asyncio.run(main()) == ("open", [0, 1, 2], [6, 7])
    """,
    "decorated functions": "assert cached(2) == 4 == cached(2) and cached.cache_info().hits == 1",
    "modules": """
        import solution
        from solution import Stack as S, same as s
        assert S is Stack and solution.same(3) == 3 == s(3)
        solution._calls = 41; assert solution.calls() == 42
    """,
    "attribute that is not there": "try:\n    Stack().nothing\nexcept AttributeError:\n    pass\nelse:\n    assert False",
    "wrong arguments": "try:\n    same()\nexcept TypeError:\n    pass\nelse:\n    assert False",
    "threads of a test": """
        import threading
        s = Stack(); ts = [threading.Thread(target=s.push, args=(i,)) for i in range(8)]
        [t.start() for t in ts]; [t.join() for t in ts]; assert s.size == 8
    """,
    "many calls cost the same at the end as at the start": "for i in range(5000): assert same([i]) == [i]",
}


@pytest.mark.parametrize("name", CASES)
def test_works_as_in_one_process(grade, name: str) -> None:
    verdict = grade(SOLUTION, [CASES[name]])
    assert verdict.void is None
    assert [o.reason for o in verdict.outcomes] == [""]
    assert verdict.reward == 1.0


def test_each_test_gets_a_fresh_solution_and_the_same_random_numbers(grade) -> None:
    verdict = grade(
        SOLUTION,
        [
            "assert calls() == 1",
            "assert calls() == 1 and calls() == 2",
            "assert random_number() == 0.8444218515250481",
            "assert random_number() == 0.8444218515250481",
        ],
    )
    assert [o.reason for o in verdict.outcomes] == ["", "", "", ""]


def test_fraction_and_all(grade) -> None:
    tests = ["assert same(1) == 1", "assert same(1) == 2", "assert same(3) == 3", "assert nothing"]
    verdict = grade(SOLUTION, tests)
    assert verdict.reward == 0.5
    assert [(o.passed, o.reason) for o in verdict.outcomes] == [
        (True, ""), (False, "assertion failed"), (True, ""), (False, "raised NameError"),
    ]  # fmt: skip
    assert grade(SOLUTION, tests, reward="all").reward == 0.0


@pytest.mark.parametrize("call", ["exits", "interrupts", "skips"])
def test_what_would_steer_a_test_runner_is_a_failure_whatever_the_test_catches(grade, call: str) -> None:
    verdict = grade(SOLUTION, [f"try:\n    {call}()\nexcept BaseException:\n    pass"])
    assert verdict.reward == 0.0
    assert verdict.flags == ("steering_exception",)


def test_stop_iteration_from_a_call_does_not_end_a_tests_loop(grade) -> None:
    verdict = grade(
        "def f(x): raise StopIteration\nclass It:\n    def __iter__(self): return self\n    def __next__(self): raise StopIteration\n",
        [
            "assert all(map(lambda c: f(c) == c, [1, 2]))",
            "assert list(map(f, [1])) == []",
            "assert list(It()) == []",
        ],
    )
    assert [o.passed for o in verdict.outcomes] == [False, False, True]


def test_a_changed_argument_is_noted(grade) -> None:
    assert grade(SOLUTION, ["xs = [2, 1]; sort_in_place(xs); assert xs == [1, 2]"]).flags == (
        "changed_argument",
    )
    assert grade(SOLUTION, ["xs = [2, 1]; same(xs)"]).flags == ()


def test_after_a_time_out_no_more_is_run_where_one_failure_decides(grade) -> None:
    from tiltyard.task import Limits

    tests = ["assert same(1) == 1", "import time; time.sleep(60)", "assert same(2) == 2"]
    verdict = grade(SOLUTION, tests, reward="all", limits=Limits(test_s=0.5))
    assert [o.reason for o in verdict.outcomes] == ["", "timed out", "not run: a test before it timed out"]
    verdict = grade(SOLUTION, tests, limits=Limits(test_s=0.5))
    assert [o.reason for o in verdict.outcomes] == ["", "timed out", ""]


def test_comparing_by_the_solutions_own_eq_is_noted(grade) -> None:
    assert grade(SOLUTION, ["assert Stack([1]) == Stack([1])"]).flags == ("delegated_comparison",)
    assert grade(SOLUTION, ["assert same(1) == 1"]).flags == ()


def test_subclassing_a_solutions_class_says_why_not(grade) -> None:
    verdict = grade(SOLUTION, ["class Mine(Stack): pass"])
    assert verdict.outcomes[0].reason == "raised TypeError"


def test_several_files_and_packages(wall) -> None:
    from tiltyard.referee import Referee
    from tiltyard.task import Files, Task, Test

    reference = Files(
        {
            "shop/__init__.py": "from shop.core import Basket\n",
            "shop/core.py": "from . import prices\nclass Basket:\n    def total(self, *names): return sum(prices.PRICES[n] for n in names)\n",
            "shop/prices.py": "PRICES = {'tea': 3}\n",
        }
    )
    tests = [
        "from shop.core import Basket\nassert Basket().total('tea', 'tea') == 6",
        "import shop.prices\nassert shop.prices.PRICES == {'tea': 3} and shop.Basket().total('tea') == 3",
        "import shop\nshop.prices.PRICES['tea'] = 5\nassert Basket().total('tea') == 5",
        "from shop.core import Nothing",
        "import shop.nowhere",
    ]
    task = Task(
        "shop", "p", Files({**reference, "shop/core.py": ""}), tuple(Test(str(i), t) for i, t in enumerate(tests)), reference,
        entry=("Basket",), main="shop/core.py",
    )  # fmt: skip
    verdict = Referee(wall).grade(task, reference)
    assert [o.reason for o in verdict.outcomes] == [
        "",
        "",
        "",
        "raised ImportError",
        "raised ModuleNotFoundError",
    ]
    assert Referee(wall).grade(task, task.start).reward == 0.0


def test_the_prelude_is_trusted_and_runs_before_each_test(grade) -> None:
    prelude = dedent(
        """
        def same(x): return "the prelude's own"
        def helper(x): return same(x)
        """
    )
    verdict = grade(SOLUTION, ["assert same(1) == 1", "assert helper(2) == 2"], prelude=prelude)
    assert verdict.reward == 1.0


def test_a_name_that_the_solution_lacks_is_never_taken_from_the_prelude(wall) -> None:
    from tests.referee.conftest import make_task
    from tiltyard.referee import Referee
    from tiltyard.task import Files

    task = make_task("def f(x): return x", ["assert f(1) == 1"], prelude="def f(x): return x")
    verdict = Referee(wall).grade(task, Files({"solution.py": "g = 1"}))
    assert verdict.outcomes[0].reason == "raised NameError"


def test_names_of_the_solution_never_shadow_what_a_test_uses(wall) -> None:
    from tests.referee.conftest import make_task
    from tiltyard.referee import Referee
    from tiltyard.task import Files

    task = make_task("def f(x): return x", ["assert all(f(x) == x for x in range(3)) and abs(f(-2)) == 2"])
    cheat = "def f(x): return 0\nabs = all = range = len = isinstance = lambda *a: 2\nclass AssertionError(Exception): pass\n"
    assert Referee(wall).grade(task, Files({"solution.py": cheat})).reward == 0.0


def test_a_prelude_that_fails_is_void_and_says_so(grade) -> None:
    verdict = grade(SOLUTION, ["assert same(1) == 1"], prelude="import no_such_module_here")
    assert verdict.reward is None
    assert verdict.void is not None and "prelude raised ModuleNotFoundError" in verdict.void
