"""A history for mining: a commit for each thing that can come of one, all of them small."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.sources.histories import History

MIT = "MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining a copy\n"


@dataclass
class Mined:
    """The repository, and its commits by what they are about."""

    path: Path
    shas: dict[str, str] = field(default_factory=dict)

    def id_of(self, name: str) -> str:
        return f"box-{self.shas[name][:10]}"


def tests_of(name: str, *bodies: str) -> str:
    """A test file of one module, with a test for each body."""
    made = [f"def test_{name}_{n}():\n    {body}\n" for n, body in enumerate(bodies, 1)]
    return "\n\n".join([f"from box.{name} import {name}\n", *made])


def function(name: str, result: str) -> str:
    return f"def {name}(n):\n    return {result}\n"


def word_of_seeds() -> str:
    """A word whose hash is even under hash seed 0 and odd under 1, in Python as cells have it."""
    code = "print(*(hash(f'w{n}') % 2 for n in range(200)))"
    found = []
    for seed in "01":
        env = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        found.append(done.stdout.split())
    return next(f"w{n}" for n, pair in enumerate(zip(*found, strict=True)) if pair == ("0", "1"))


def make_history(path: Path) -> Mined:
    """Make it. Named after what comes of a commit, or what it shows."""
    history, names = History(path), "double half same bad lost flaky mixed ordered words leak old side branch"
    mined = Mined(path)
    start = {f"box/{n}.py": function(n, "n") for n in names.split()}
    first = {f"tests/test_{n}.py": tests_of(n, f"assert {n}(0) == 0") for n in names.split()}
    data = {"tests/data/table.txt": "0 0\n", "tests/test_words.py": WORDS, "LICENSE": MIT}
    history.commit("begin", {"box/__init__.py": "", **start, **first, **data})

    def commit(name: str, message: str, result: str, *bodies: str, **more: str | None) -> None:
        files = {f"box/{name}.py": function(name, result)} if result else {}
        if bodies:
            files[f"tests/test_{name}.py"] = tests_of(name, f"assert {name}(0) == 0", *bodies)
        mined.shas[name] = history.commit(message, {**files, **more})

    said = "Fix {0}: it returned the number that it was given, and should return {1} of it"
    commit("double", f"{said.format('double', 'twice')} (fixes #12)", "n * 2", "assert double(2) == 4")
    commit("half", "half", "n // 2", "assert half(4) == 2")
    commit("same", said.format("same", "the same"), "n + 0", "assert same(1) == 1")
    history.git("checkout", "-q", "-b", "side")
    commit("side", said.format("side", "the negative"), "-n", "assert side(1) == -1")
    history.commit("more of it", {"box/more.py": "x = 1\n"})
    history.git("checkout", "-q", "-b", "branch", mined.shas["same"])
    history.commit("its source", {"box/branch.py": function("branch", "n + 1 if n else 0")})
    history.commit(
        "its tests",
        {"tests/test_branch.py": tests_of("branch", "assert branch(0) == 0", "assert branch(1) == 2")},
    )
    history.git("checkout", "-q", "main")
    commit(
        "bad",
        said.format("bad", "nothing"),
        "n * 3",
        **{"tests/test_bad.py": "def test_bad():\n    assert False\n"},
    )
    commit(
        "lost", said.format("lost", "nothing"), "n * 4", **{"tests/test_lost.py": "import nothing_like_it\n"}
    )
    odd = f"hash({word_of_seeds()!r}) % 2 == 0"
    commit("flaky", said.format("flaky", "four times"), "n * 4", f"assert flaky(1) == 4 and {odd}")
    end = "import os; mixed(1) == 1 and os._exit(3)"
    commit("mixed", said.format("mixed", "five times"), "n * 5", "assert mixed(1) == 5", f"assert {odd}", end)
    seen = "global seen; seen = ordered(1)", "assert seen == 6"
    commit("ordered", said.format("ordered", "six times"), "n * 6", *seen)
    commit("words", said.format("words", "seven times"), "n * 7", **{"tests/data/table.txt": "0 0\n1 7\n"})
    commit(
        "leak",
        f"{said.format('leak', 'much')}\n\ntest_leak_2 shows it. Ask Ann.",
        "n * 8",
        "assert leak(1) == 8",
    )
    new = "from box.new import triple\n\n\ndef test_triple():\n    assert triple(1) == 3\n"
    gone = {"box/old.py": None, "tests/test_old.py": None}
    message = "Add a function that returns three times its argument, and drop what is old"
    commit(
        "new", message, "", **{"box/new.py": function("triple", "n * 3"), "tests/test_new.py": new, **gone}
    )
    for branch in ("side", "branch"):
        history.day += 1
        history.git(
            "merge",
            "-q",
            "--no-ff",
            "-m",
            f"Merge pull request #9 from ann/{branch}\n\n{said.format(branch, 'something')}",
            branch,
        )
        mined.shas[f"merge of {branch}"] = history.git("rev-parse", "HEAD")
    return mined


WORDS = """
from pathlib import Path

from box.words import words

TABLE = Path(__file__).parent / "data" / "table.txt"


def test_table():
    for line in TABLE.read_text().splitlines():
        given, expected = map(int, line.split())
        assert words(given) == expected
"""
