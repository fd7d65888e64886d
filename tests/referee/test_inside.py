"""What holds for all code that runs inside cells, whichever room it belongs to."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import tiltyard
from tiltyard.referee.inside.plain import is_plain


def test_the_inside_folders_are_one_package_so_no_name_is_there_twice() -> None:
    names = Counter(
        p.stem for p in Path(tiltyard.__file__).parent.glob("*/inside/*.py") if p.stem != "__init__"
    )
    assert [n for n, count in names.items() if count > 1] == []


@pytest.mark.parametrize(
    ("code", "plain"),
    [
        ("assert f(1) == 2", True),
        ("import math, random\nrandom.seed(3)\nassert f(random.random()) < math.pi", True),
        ("from shop.core import Basket\nb = Basket()\nb.limit = 3\nassert b.items == []", True),
        (
            "def helper(x):\n    return [x]\nclass T:\n    def __init__(self): self.hits = 0\nassert f(T()) == 1",
            True,
        ),
        ("try:\n    f(-1)\nexcept ValueError as e:\n    assert str(e) == 'x' and e.__cause__ is None", True),
        ("import os\nassert f(1)", False),
        ("import sys, io\nsys.stdin = io.StringIO('x')", False),
        ("import math\nmath.pi = 3", False),
        ("import math\ndel math.pi", False),
        ("import string as s\ns.digits += 'x'", False),
        ("from decimal import getcontext\ngetcontext().prec = 3", False),
        ("import random\nsetattr(random, 'seed', None)", False),
        ("import threading", False),
        ("__import__('os')", False),
        ("().__class__.__subclasses__()", False),
        ("exec('import os')", False),
        ("import collections\ncollections.abc.Sized.register(int)", False),
        ("async def t(): pass", False),
        ("f(", False),
    ],
)
def test_what_leaves_nothing_behind_in_the_examiner(code: str, plain: bool) -> None:
    assert is_plain(code, frozenset({"shop", "shop.core"})) is plain


def test_an_examiner_with_another_interpreter_compiles_the_source_itself(
    wall, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.referee.conftest import make_task
    from tiltyard.referee import Referee, calls

    monkeypatch.setattr(calls, "MAGIC", "00000000")
    task = make_task("def f(x): return x", ["assert f(1) == 1", "assert f(1) == 2"], prelude="import math")
    assert Referee(wall).grade(task, task.reference).reward == 0.5


def test_the_rehearsal_leaves_nothing_behind() -> None:
    import sys

    from tiltyard.referee.inside.rehearsal import warm_up

    before = (sys.stdout, sys.stdin, list(sys.meta_path), sys.getrecursionlimit())
    warm_up()
    assert (sys.stdout, sys.stdin, list(sys.meta_path), sys.getrecursionlimit()) == before
