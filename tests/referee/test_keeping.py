"""Solutions that are answered by one process, or not: what one test leaves behind must never reach the next."""

from __future__ import annotations

import sys
import types
from textwrap import dedent

import pytest

from tests.referee.conftest import Grade
from tiltyard.referee.inside.keeping import watch
from tiltyard.task import Limits


@pytest.fixture(autouse=True)
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watched", types.ModuleType("watched"))


def module_of(source: str) -> types.ModuleType:
    module = sys.modules["watched"]  # dataclasses look a class's module up
    exec(compile(dedent(source), "watched.py", "exec"), module.__dict__)
    return module


FORGETFUL = {
    "functions": "import math\nfrom itertools import chain\ndef f(x, y=(1, None)):\n    return math.floor(x) + sum(chain(y))",
    "tables": "ROMAN = {'I': 1, 'V': 5}\nPAIRS = [(1, 'a'), (2, 'b')]\ndef f(s):\n    return ROMAN[s]",
    "dispatch": "import operator\nOPS = {'+': operator.add, '-': lambda a, b: a - b}",
    "a class": """
        from dataclasses import dataclass, field
        @dataclass
        class Account:
            owner: str
            entries: list = field(default_factory=list)
            RATE = 0.5
            @property
            def balance(self):
                return sum(self.entries)
            @classmethod
            def empty(cls):
                return cls("")
            @staticmethod
            def zero():
                return 0
        """,
    "an enum": "import enum\nclass Colour(enum.Enum):\n    RED = 1\n    BLUE = 2",
    "a named tuple": "from collections import namedtuple\nPoint = namedtuple('Point', 'x y')",
    "typing": "from typing import Generic, TypeVar, Optional\nT = TypeVar('T')\nclass Box(Generic[T]):\n    x: Optional[T] = None",
    "an exception": "class Broke(ValueError):\n    '''No money.'''",
    "a closure": "def make(n):\n    def add(x):\n        return x + n\n    return add\nadd2 = make(2)",
    "a mark of its own": "from __future__ import annotations\nMISSING = object()\ndef f(x=MISSING):\n    return x is MISSING",
    "patterns": "import re\nWORD = re.compile('[a-z]+')",
    "a memo of its own": "from functools import lru_cache\ndef f(n):\n    @lru_cache\n    def g(k):\n        return k\n    return g(n)",
}

KEEPING = {
    "a cache": "from functools import lru_cache\n@lru_cache\ndef f(n):\n    return n",
    "an instance": "class A:\n    pass\nshared = A()",
    "an iterator": "import itertools\nids = itertools.count()",
    "a closure over an iterator": "def make():\n    it = iter([1, 2])\n    return lambda: next(it)\nf = make()",
    "a generator": "g = (x for x in range(3))",
    "a file": "def f():\n    return open('state').read()",
    "a module with a memory": "import sys\ndef f():\n    return sys.getrecursionlimit()",
    "an import inside": "def f():\n    import os\n    return os.environ",
    "a context": "import decimal\ndef f():\n    decimal.getcontext().prec = 3",
    "code of its own": "def f(s):\n    return eval(s)",
    "a nested function that opens": "def f():\n    def g():\n        return open('x')\n    return g()",
    "a random generator": "import random\nr = random.Random(3)",
    "a partial": "from functools import partial\nf = partial(print, 3)",
    "too much": "T = [(n, str(n)) for n in range(5000)]",
}


@pytest.mark.parametrize("name", FORGETFUL)
def test_what_keeps_nothing_is_watched_and_seen_to_be_unchanged(name: str) -> None:
    seen = watch([module_of(FORGETFUL[name])])
    assert seen is not None
    assert not seen.changed()


@pytest.mark.parametrize("name", KEEPING)
def test_what_may_keep_something_is_not_watched(name: str) -> None:
    assert watch([module_of(KEEPING[name])]) is None


@pytest.mark.parametrize(
    ("source", "change"),
    [
        ("n = 0\ndef f():\n    global n\n    n += 1", "f()"),
        ("def f(x, seen=[]):\n    seen.append(x)", "f(1)"),
        ("def f(*, seen={}):\n    seen[1] = 2", "f()"),
        ("def f():\n    f.calls = 1", "f()"),
        ("class A:\n    n = 0\n    def __init__(self):\n        A.n += 1", "A()"),
        ("class A:\n    all = []\n    def __init__(self):\n        self.all.append(1)", "A()"),
        ("class A:\n    _all = {}\n    def __init__(self):\n        self._all[1] = 1", "A()"),
        ("T = {'a': [1]}\ndef f():\n    T['a'].append(2)", "f()"),
        ("T = [1, 2]\ndef f():\n    T.reverse()", "f()"),
        ("T = {1}\ndef f():\n    T.add(2)", "f()"),
        (
            "def make():\n    n = 0\n    def f():\n        nonlocal n\n        n += 1\n    return f\nf = make()",
            "f()",
        ),
        ("def f():\n    pass", "new = 1"),
        ("x = 1\ndef f():\n    global x\n    del x", "f()"),
    ],
)
def test_a_change_is_seen(source: str, change: str) -> None:
    module = module_of(source)
    seen = watch([module])
    assert seen is not None
    assert not seen.changed()
    exec(change, module.__dict__)
    assert seen.changed()


def test_what_compares_equal_to_all_is_no_way_to_hide_a_change() -> None:
    module = module_of("x = 1.5\ndef f():\n    global x\n    x = float('1.5')")
    seen = watch([module])
    assert seen is not None
    module.f()
    assert seen.changed()  # another object: in doubt, changed


STATES = [
    "n = 0\ndef f():\n    global n\n    n += 1\n    return n",
    "def f(seen=[]):\n    seen.append(1)\n    return len(seen)",
    "import itertools\nids = itertools.count(1)\ndef f():\n    return next(ids)",
    "class C:\n    n = 0\ndef f():\n    C.n += 1\n    return C.n",
    "def f():\n    f.n = getattr(f, 'n', 0) + 1\n    return f.n",
]


@pytest.mark.parametrize("state", STATES)
def test_each_test_finds_the_solution_as_it_was_loaded(grade: Grade, state: str) -> None:
    verdict = grade(state, ["assert f() == 1", "assert (f(), f()) == (1, 2)", "assert f() == 1"])
    assert verdict.reward == 1.0, verdict


def test_a_test_that_changes_the_solutions_table_does_so_for_itself(grade: Grade) -> None:
    source = "T = {'a': 1}\ndef f(k):\n    return T[k]\ndef table():\n    return T"
    tests = [
        "assert f('a') == 1",
        "t = solution.table()\nt['a'] = 5\nassert f('a') == 5",
        "assert f('a') == 1",
    ]
    verdict = grade(source, [f"import solution\n{test}" for test in tests])
    assert [o.passed for o in verdict.outcomes] == [True, True, True], verdict


def test_a_test_that_does_not_end_costs_only_itself(grade: Grade) -> None:
    source = "import time\ndef f(x):\n    if x == 2:\n        time.sleep(600)\n    return x"
    verdict = grade(source, [f"assert f({n}) == {n}" for n in range(5)], limits=Limits(test_s=4.0))
    assert [o.reason for o in verdict.outcomes] == ["", "", "timed out", "", ""], verdict


def test_a_process_that_ends_costs_only_its_test(grade: Grade) -> None:
    source = "import ctypes\ndef f(x):\n    if x == 2:\n        ctypes.string_at(0)\n    return x"
    verdict = grade(source, [f"assert f({n}) == {n}" for n in range(5)])
    assert [o.passed for o in verdict.outcomes] == [True, True, False, True, True], verdict


def test_memory_that_runs_out_in_one_test_is_there_for_the_next(grade: Grade) -> None:
    source = "def f(x):\n    held = bytearray(1 << 40) if x == 1 else b''\n    return x"
    verdict = grade(source, [f"assert f({n}) == {n}" for n in range(3)])
    assert [o.passed for o in verdict.outcomes] == [True, False, True], verdict


def test_when_a_test_that_times_out_decides_the_others_are_not_run(grade: Grade) -> None:
    source = "import time\ndef f(x):\n    if x == 1:\n        time.sleep(600)\n    return x"
    verdict = grade(
        source, [f"assert f({n}) == {n}" for n in range(4)], limits=Limits(test_s=4.0), reward="all"
    )
    assert verdict.reward == 0.0
    assert [o.reason.partition(":")[0] for o in verdict.outcomes] == [
        "",
        "timed out",
        "not run",
        "not run",
    ], verdict


def test_what_is_printed_in_one_test_is_not_read_in_the_next(grade: Grade) -> None:
    source = "def f(x):\n    print('said', x)\n    return x"
    tests = [
        "import io, contextlib\nwith contextlib.redirect_stdout(io.StringIO()) as out:\n    f(1)\nassert out.getvalue() == 'said 1\\n'",
        "f(2)",
        "import io, contextlib\nwith contextlib.redirect_stdout(io.StringIO()) as out:\n    f(3)\nassert out.getvalue() == 'said 3\\n'",
    ]
    verdict = grade(source, tests)
    assert verdict.reward == 1.0, verdict


def test_random_numbers_begin_anew_with_each_test(grade: Grade) -> None:
    source = "import random\ndef f():\n    return random.random()"
    verdict = grade(source, ["assert f() == 0.8444218515250481"] * 3)
    assert verdict.reward == 1.0, verdict


def test_the_modules_of_the_list_exist() -> None:
    from tiltyard.referee.inside import keeping

    names = {name.partition(".")[0] for name in keeping.PURE}
    assert names <= sys.stdlib_module_names
