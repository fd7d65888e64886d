"""Which commits could be tasks, and why the others could not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sources.histories import History

from tiltyard.errors import UsageError
from tiltyard.git import Repository
from tiltyard.sources.mine import Bounds, find_candidates
from tiltyard.sources.mine.dig import named_in_filters
from tiltyard.sources.mine.history import (
    NO_SOURCE,
    NO_TESTS,
    REVERT,
    REVERTED,
    ROOT,
    TOO_BIG,
    TWICE,
    changed_lines,
    fingerprint,
)
from tiltyard.sources.mine.license import license_of
from tiltyard.sources.mine.material import new_names, readable_by_pytest
from tiltyard.sources.mine.sides import is_source, is_test_side
from tiltyard.sources.mine.sides import tests_to_run as concerned


def step(n: int) -> dict[str, str]:
    """A change of source and tests, another one for each number."""
    return {
        f"box/m{n}.py": f"def f{n}():\n    return {n}\n",
        f"tests/test_m{n}.py": f"from box.m{n} import f{n}\n\n\ndef test_f{n}():\n    assert f{n}() == {n}\n",
    }


def test_what_falls_out_and_why(tmp_path: Path) -> None:
    """Each commit is a candidate or falls out for one reason, and nothing is counted twice."""
    history = History(tmp_path / "box")
    root = history.commit("begin", {"box/__init__.py": "", "tests/__init__.py": "", **step(0)})
    docs = history.commit("words", {"docs/conf.py": "x = 1\n", "tests/data.txt": "a\n"})
    plain = history.commit("source alone", {"box/more.py": "x = 1\n"})
    good = history.commit("one", step(1))
    undone = history.commit("two", step(2))
    revert = history.commit(f"Undo two\n\nThis reverts commit {undone}.", dict.fromkeys(step(2)))
    big = history.commit("big", {**step(3), "box/big.py": "x = 1\n" * 50})
    history.git("checkout", "-q", "-b", "side", good)
    late = history.commit("four", step(4))
    history.git("checkout", "-q", "main")
    picked = history.git("cherry-pick", late) and history.git("rev-parse", "HEAD")
    found = find_candidates(Repository(history.path), bounds=Bounds(lines=20))
    assert [c.sha for c in found.commits] == [picked, good] and found.merges == ()
    assert found.out == {
        root: ROOT, docs: NO_SOURCE, plain: NO_TESTS, undone: REVERTED, revert: REVERT, big: TOO_BIG,
    }  # fmt: skip
    [newest, oldest] = found.commits
    assert (oldest.message, oldest.base, oldest.lines, oldest.is_merge) == ("one", plain, 2, False)
    assert oldest.commit_date.startswith("2024-01-05") and newest.mark != oldest.mark
    assert [c.sha for c in find_candidates(Repository(history.path), since="2024-01-09").commits] == [picked]
    assert [c.sha for c in find_candidates(Repository(history.path), until="2024-01-05").commits] == [good]
    with pytest.raises(UsageError, match="since is 'yesterday'; expected a date like"):
        find_candidates(Repository(history.path), since="yesterday")


def test_a_change_counts_once_and_merges_know_their_commits(tmp_path: Path) -> None:
    """A cherry-pick is the commit that it was picked from; a merge of one commit is that commit; a merge of several is
    a candidate that names them."""
    history = History(tmp_path / "box")
    history.commit("begin", {"box/__init__.py": "", **step(0)})
    history.git("checkout", "-q", "-b", "one")
    single = history.commit("one", step(1))
    history.git("checkout", "-q", "-b", "two", "main")
    source, tests = ({p: t for p, t in step(2).items() if (p[:3] == "box") is side} for side in (True, False))
    first, second = history.commit("the source", source), history.commit("and its tests", tests)
    history.git("checkout", "-q", "main")
    again = history.commit("one, picked", step(1))
    history.git("merge", "-q", "--no-ff", "-m", "Merge pull request #5 from ann/two", "two")
    merge = history.git("rev-parse", "HEAD")
    history.git("merge", "-q", "--no-ff", "-m", "Merge branch one", "one")
    found = find_candidates(Repository(history.path))
    assert [c.sha for c in found.commits] == [single]
    assert [(c.sha, set(c.side)) for c in found.merges] == [(merge, {first, second})]
    assert found.out[again] == TWICE and found.looked_at == 7


def test_fingerprints_do_not_see_places_and_spaces() -> None:
    one = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n x\n-y = 1\n+y  =  2\n--- not a file\n"
    two = one.replace("-1,2 +1,2", "-90,2 +91,2").replace("y  =  2", "y = 2")
    assert fingerprint(one) == fingerprint(two) != fingerprint(one.replace("+y  =  2", "+y = 3"))
    assert list(changed_lines(one)) == [("a.py", "-y = 1"), ("a.py", "+y  =  2"), ("a.py", "--- not a file")]


@pytest.mark.parametrize(
    ("path", "source", "tests"),
    [
        ("box/core.py", True, False),
        ("src/box/testing/core.py", True, False),
        ("box/tests/data/a.json", False, True),
        ("testing/test_a.py", False, True),
        ("tests.py", False, True),
        ("box/conftest.py", False, True),
        ("box/core_test.py", False, True),
        ("box/attest.py", True, False),
        ("setup.py", False, False),
        ("docs/conf.py", False, False),
        ("README.md", False, False),
    ],
)
def test_sides(path: str, source: bool, tests: bool) -> None:
    assert (is_source(path), is_test_side(path)) == (source, tests)


def test_which_tests_a_change_concerns() -> None:
    """Changed test modules, those that hold tests under another name, and those that name data or helpers that changed."""
    after = {
        "tests/test_a.py": b"",
        "tests/test_b.py": b"open('tests/data/words.txt')",
        "tests/test_c.py": b"from tests.helpers import x",
        "tests/number.py": b"class T(TestCase):\n    def test_it(self): pass\n",
        "tests/helpers.py": b"x = 1\n",
        "tests/data/words.txt": b"a",
        "tests/conftest.py": b"",
        "tests/deep/test_d.py": b"",
    }
    assert concerned(["tests/test_a.py", "tests/gone.py"], after, 9) == ("tests/test_a.py",)
    assert concerned(["tests/number.py"], after, 9) == ("tests/number.py",)
    assert concerned(["tests/data/words.txt"], after, 9) == ("tests/test_b.py",)
    assert concerned(["tests/helpers.py"], after, 9) == ("tests/test_c.py",)
    assert len(concerned(["tests/conftest.py"], after, 9)) == 4
    assert len(concerned(["tests/conftest.py"], after, 2)) == 2


MIT = b"Permission is hereby granted, free of charge, to any person\nobtaining a copy of this software"
BSD = b"Redistribution and use in source and binary forms, with or without modification"


@pytest.mark.parametrize(
    ("files", "spdx"),
    [
        ({"LICENSE": b"The MIT License\n\n" + MIT}, "MIT"),
        ({"LICENCE.txt": BSD}, "BSD-2-Clause"),
        ({"COPYING": BSD + b" Neither the name of the author"}, "BSD-3-Clause"),
        ({"LICENSE.md": b"Apache License\n   Version 2.0, January 2004"}, "Apache-2.0"),
        (
            {
                "LICENSE": b"GNU LESSER GENERAL PUBLIC LICENSE\n Version 3 GNU GENERAL PUBLIC LICENSE version 3"
            },
            "LGPL-3.0",
        ),
        ({"pyproject.toml": b'[project]\nlicense = {text = "MIT"}\n'}, "MIT"),
        (
            {"setup.py": b"setup(classifiers=['License :: OSI Approved :: Apache Software License'])"},
            "Apache-2.0",
        ),
        ({"setup.cfg": b"[metadata]\nlicense = BSD\n"}, "LicenseRef-BSD"),
        ({"docs/LICENSE": MIT, "LICENSE": b"all rights reserved"}, ""),
        ({}, ""),
    ],
)
def test_licenses(files: dict[str, bytes], spdx: str) -> None:
    assert license_of(files) == spdx


def test_old_configurations_are_made_readable() -> None:
    """A section that no pytest of today starts with gets its name of today, and only that one."""
    old = b"[metadata]\nname = a\n[pytest]\naddopts = -q\n"
    made = readable_by_pytest({"setup.cfg": old, "a.py": b"[pytest]"})
    assert made == {"setup.cfg": old.replace(b"[pytest]", b"[tool:pytest]"), "a.py": b"[pytest]"}
    both = {"setup.cfg": b"[tool:pytest]\n[pytest]\n"}
    assert readable_by_pytest(both) == both and readable_by_pytest({}) == {}


def test_tools_that_a_configuration_names_are_needed() -> None:
    """pytest does not start where a warning's class can't be imported."""
    text = (
        b'filterwarnings = ["error", "ignore:no data:coverage.exceptions.CoverageWarning", "ignore::box.Own"]'
    )
    assert named_in_filters({"pyproject.toml": text}) == ("coverage",)
    assert named_in_filters({"docs/pyproject.toml": text, "tox.ini": b"[pytest]\naddopts = -q\n"}) == ()


def test_new_names_are_those_that_only_the_fix_has() -> None:
    fix = {
        "box/a.py": b"class New:\n    LIMIT = 1\n\n    def old(self, deep=1): ...\n\ndef _hidden(): ...\n",
        "b.txt": b"",
    }
    suite = {"tests/test_a.py": b"from box.a import New\nNew().old(deep=2)\nNew.LIMIT\n_hidden"}
    assert new_names({"box/a.py": b"def old(): ...\n", "tests/x.py": b"deep"}, fix, suite) == (
        "LIMIT",
        "New",
        "deep",
    )
    assert new_names({}, {"box/a.py": b"def broken(:\n"}, suite) == ()
