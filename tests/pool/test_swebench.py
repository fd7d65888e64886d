"""Rows in SWE-bench's format on small repositories made here: what is built, what is not and why, and what is remembered."""

import gzip
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tiltyard.errors import TaskError, UsageError
from tiltyard.images import ImageFiles
from tiltyard.pool import load, load_lenient
from tiltyard.pool.nodeids import NoNodeId, in_order, node_id

ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (
        ("NAME", "someone"), ("EMAIL", "someone@example.org"), ("DATE", "2024-03-01T12:00:00+00:00"))},
}  # fmt: skip
CORE = "def mean(xs):\n    return sum(xs) / (len(xs) + 1)\n\n\ndef first(xs):\n    return xs[0]\n"
FIXED = CORE.replace("(len(xs) + 1)", "len(xs)")
TEST = "from sums import first\n\n\nclass TestFirst:\n    def test_first(self):\n        assert first([3]) == 3\n"
TESTED = TEST.replace("first\n", "first, mean\n", 1) + "\n\ndef test_mean():\n    assert mean([1, 3]) == 2\n"


def git(folder: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=folder, env=ENV, check=True, capture_output=True, text=True)
    return done.stdout


def commit(folder: Path, files: dict[str, str | None], message: str) -> str:
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            target.unlink()
        else:
            target.write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)
    return git(folder, "rev-parse", "HEAD").strip()


@pytest.fixture
def repos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one repository, ``org__sums``, and a cache of its own."""
    if shutil.which("git") is None:
        pytest.skip("no git command here")
    monkeypatch.setenv("TILTYARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TILTYARD_REPOS", raising=False)
    folder = tmp_path / "repos" / "org__sums"
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    return tmp_path / "repos"


@pytest.fixture
def row(repos: Path) -> dict[str, Any]:
    folder = repos / "org__sums"
    base = commit(
        folder,
        {
            "sums/__init__.py": "from sums.core import first, mean\n",
            "sums/core.py": CORE,
            "sums/old.py": "x = 1\n",
            "tests/test_core.py": TEST,
            "README": "sums\n",
        },
        "all of it",
    )
    fix = commit(
        folder, {"sums/core.py": FIXED, "sums/old.py": None, "tests/test_core.py": TESTED}, "secret: the fix"
    )
    return {
        "instance_id": "org__sums-1",
        "repo": "org/sums",
        "base_commit": base,
        "fix_commit": fix,
        "created_at": "2024-03-02T00:00:00Z",
        "problem_statement": "mean([1, 3]) is 1.33 and should be 2",
        "patch": git(folder, "diff", base, fix, "--", "sums"),
        "test_patch": git(folder, "diff", base, fix, "--", "tests"),
        "FAIL_TO_PASS": ["tests/test_core.py::test_mean"],
        "PASS_TO_PASS": ["tests/test_core.py::TestFirst::test_first"],
        "hints_text": "use len(xs)",
        "version": "1.0",
        "packages": [],
    }


def write(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return f"swebench:{path}"


def test_a_row_becomes_a_task(repos: Path, row: dict[str, Any], tmp_path: Path) -> None:
    pool = load(write(tmp_path / "rows.jsonl", row), repos=repos)
    assert pool.left_out == ()
    [task] = pool
    assert task.id == "org__sums-1" and task.prompt == row["problem_statement"]
    assert task.grading == "pytest" and task.reward == "all" and task.shell
    assert isinstance(task.start, ImageFiles)
    assert task.start["sums/core.py"].decode() == CORE and "sums/old.py" in task.start
    assert not any(".git" in path.split("/") for path in task.start)
    assert dict(task.suite) == {"tests/test_core.py": TESTED.encode()}
    assert dict(task.reference) == {"sums/core.py": FIXED.encode()}
    assert task.reference.removed == {"sums/old.py"}
    assert task.fail_to_pass == ("tests/test_core.py::test_mean",)
    assert task.pass_to_pass == ("tests/test_core.py::TestFirst::test_first",)
    assert [t.id for t in task.visible] == ["tests/test_core.py"]
    assert task.metadata.source == "sums" and task.metadata.created == "2024-03-02"
    assert dict(task.metadata.extra)["base_commit"] == row["base_commit"]
    everything = json.dumps([dict(task.metadata.extra), task.prompt])
    assert "use len(xs)" not in everything  # hints are no part of a task


def test_both_shapes_of_the_lists_and_all_files(repos: Path, row: dict[str, Any], tmp_path: Path) -> None:
    junit = row | {
        "FAIL_TO_PASS": ["tests.test_core::test_mean"],
        "PASS_TO_PASS": ["tests.test_core.TestFirst::test_first"],
    }
    text = row | {key: json.dumps(row[key]) for key in ("FAIL_TO_PASS", "PASS_TO_PASS")}
    python = row | {key: repr(row[key]) for key in ("FAIL_TO_PASS", "PASS_TO_PASS")}
    lower = {key.lower() if key.endswith("PASS") else key: value for key, value in row.items()}
    digests = {
        load(write(tmp_path / "rows.jsonl", one), repos=repos).digest
        for one in (row, junit, text, python, lower)
    }
    assert len(digests) == 1
    whole = tmp_path / "rows.json"
    whole.write_text(json.dumps([row, row | {"instance_id": "second"}], indent=1))
    (tmp_path / "rows.json.gz").write_bytes(gzip.compress(whole.read_bytes()))
    assert load(f"swebench:{whole}", repos=repos).ids == ("org__sums-1", "second")
    assert load(tmp_path / "rows.json.gz", repos=repos).ids == ("org__sums-1", "second")


def test_parquet(repos: Path, row: dict[str, Any], tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    import datetime

    import pyarrow.parquet as pq

    when = datetime.datetime(2024, 3, 2, tzinfo=datetime.UTC)
    pq.write_table(pa.Table.from_pylist([row | {"created_at": when}]), tmp_path / "rows.parquet")
    [task] = load(f"swebench:{tmp_path / 'rows.parquet'}", repos=repos)
    assert task.metadata.created == "2024-03-02" and task.fail_to_pass == ("tests/test_core.py::test_mean",)
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "rows.parquet").read_bytes()[:200])
    with pytest.raises(TaskError, match="damaged"):
        load(f"swebench:{tmp_path / 'cut.parquet'}", repos=repos)


def test_the_second_time_needs_no_repository(repos: Path, row: dict[str, Any], tmp_path: Path) -> None:
    spec = write(tmp_path / "rows.jsonl", row)
    first = load(spec, repos=repos)
    assert load(spec).digest == first.digest
    [kept] = (tmp_path / "cache" / "rows").glob("*.json")
    kept.write_text(kept.read_text()[:-20])  # damaged: it is built again
    with pytest.raises(TaskError, match="--repos DIR"):
        load(spec)
    assert load(spec, repos=repos).digest == first.digest
    for image in (tmp_path / "cache" / "images").glob("*.json"):
        image.unlink()  # collected meanwhile
    again = load(spec, repos=repos)
    assert again.digest == first.digest and again[0].start["README"] == b"sums\n"


def test_the_environment_variable_names_the_folder(
    repos: Path, row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILTYARD_REPOS", str(repos))
    assert load(write(tmp_path / "rows.jsonl", row)).ids == ("org__sums-1",)


def test_what_cant_be_built_says_why_and_hides_nothing(
    repos: Path, row: dict[str, Any], tmp_path: Path
) -> None:
    bad: dict[str, tuple[dict[str, Any], str]] = {
        "no-repo": ({"repo": "org/other"}, "found no repository 'org/other'"),
        "no-commit": ({"base_commit": "0" * 40}, "has no commit"),
        "option": ({"base_commit": "--output=/tmp/x"}, "has no commit"),
        "patch": ({"patch": row["patch"].replace("len(xs) + 1", "len(ys)")}, "does not fit"),
        "binary": ({"patch": "diff --git a/x b/x\nGIT binary patch\nliteral 0\n"}, "patch"),
        "outside": ({"test_patch": "--- /dev/null\n+++ b/../../x.py\n@@ -0,0 +1 @@\n+x\n"}, "'..'"),
        "django": ({"FAIL_TO_PASS": ["test_a (app.tests.TestC)"]}, "Django"),
        "no-file": ({"FAIL_TO_PASS": ["tests/test_gone.py::test_a"]}, "whose file is not there"),
        "no-lists": ({"FAIL_TO_PASS": []}, "no list of tests"),
        "not-a-list": ({"FAIL_TO_PASS": "test_a"}, "FAIL_TO_PASS"),
        "no-prompt": ({"problem_statement": " \n"}, "nothing"),
        "both": ({"patch": row["patch"] + row["test_patch"]}, "also a file of the suite"),
        "number": ({"patch": 7}, "patch"),
        "python": ({"python": "3.4"}, "Python 3.4"),
        "no-python": ({"python": "snake"}, "a version like 3.11"),
    }
    rows = [row | {"instance_id": name} | change for name, (change, _) in bad.items()]
    spec = write(tmp_path / "rows.jsonl", row, *rows, row)
    pool = load(spec, repos=repos)
    assert pool.ids == ("org__sums-1",)
    reasons = {
        name: [str(p) for p in pool.left_out if f"({name})" in p.where or f":{n}" in p.where]
        for n, name in enumerate(bad, 2)
    }
    for name, (_, expected) in bad.items():
        assert any(expected in reason for reason in reasons[name]), (name, reasons[name])
    assert any("which an earlier row has" in str(p) for p in pool.left_out)
    assert len(pool.left_out) == len(bad) + 1


def test_only_bad_rows_are_an_error_with_their_reasons(
    repos: Path, row: dict[str, Any], tmp_path: Path
) -> None:
    spec = write(tmp_path / "rows.jsonl", row | {"repo": "org/other"})
    with pytest.raises(TaskError, match="org/other"):
        load(spec, repos=repos)
    pool, problems = load_lenient(spec, repos=repos)
    assert not pool and not problems and len(pool.left_out) == 1
    with pytest.raises(TaskError, match="is no folder"):
        load(spec, repos=tmp_path / "nowhere")


def test_rows_that_nobody_asked_for_are_not_built(repos: Path, row: dict[str, Any], tmp_path: Path) -> None:
    broken = row | {"instance_id": "broken", "base_commit": "0" * 40}
    spec = write(tmp_path / "rows.jsonl", row, broken)
    pool = load(spec, repos=repos, tasks=["org*"])
    assert pool.ids == ("org__sums-1",) and pool.left_out == ()
    with pytest.raises(UsageError, match="did you mean 'org__sums-1'"):
        load(spec, repos=repos, tasks=["org__sums-2"])
    with pytest.raises(TaskError, match="has no commit"):
        load(spec, repos=repos, tasks=["broken"])


def test_progress_is_told_of_each_row(repos: Path, row: dict[str, Any], tmp_path: Path) -> None:
    class Told:
        total, ends, ended = 0, list[str](), False

        def begin(self, total: int) -> None:
            self.total = total

        def advance(self, result: Any) -> None:
            self.ends.append(result.outcome)

        def end(self) -> None:
            self.ended = True

    told = Told()
    spec = write(tmp_path / "rows.jsonl", row, row | {"instance_id": "b", "repo": "no/where"})
    load(spec, repos=repos, progress=told)
    assert (told.total, told.ends, told.ended) == (2, ["built", "left out"], True)
    told.ends.clear()
    load(spec, repos=repos, progress=told)
    assert told.ends == ["known", "left out"]


def test_a_hostile_repository_runs_nothing(repos: Path, row: dict[str, Any], tmp_path: Path) -> None:
    folder, mark = repos / "org__sums", tmp_path / "ran"
    git(folder, "reset", "-q", "--hard", row["base_commit"])
    (folder / "leak").symlink_to("/etc/passwd")
    (folder / "copy.py").symlink_to("sums/core.py")
    base = commit(folder, {}, "links")
    hook = folder / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    config = folder / ".git" / "config"
    config.write_text(
        config.read_text()
        + f'[core]\n\tfsmonitor = "touch {mark}"\n\tpager = "touch {mark}"\n[diff]\n\texternal = "touch {mark}"\n'
    )
    [task] = load(write(tmp_path / "rows.jsonl", row | {"base_commit": base}), repos=repos)
    assert not mark.exists()
    assert "leak" not in task.start and task.start["copy.py"] == CORE.encode()


@pytest.mark.parametrize(
    ("id_", "found"),
    [
        ("tests/test_a.py::test_x[a::b]", "tests/test_a.py::test_x[a::b]"),
        ("tests.test_a::test_x[1.5-x::y]", "tests/test_a.py::test_x[1.5-x::y]"),
        ("tests.test_a.TestC::test_x", "tests/test_a.py::TestC::test_x"),
        ("tests.test_a.TestC.TestD::test_x", "tests/test_a.py::TestC::TestD::test_x"),
        ("tests.test_a.TestC.test_x", "tests/test_a.py::TestC::test_x"),
        ("pkg.tests.test_b::test_y", "pkg/tests/test_b.py::test_y"),
        ("test_y", "pkg/tests/test_b.py::test_y"),
    ],
)
def test_ids(id_: str, found: str) -> None:
    files = {"tests/test_a.py": b"def test_x(): 1", "pkg/tests/test_b.py": b"\ndef test_y():\n 1"}
    assert node_id(id_, files, files) == found


@pytest.mark.parametrize(
    "id_", ["test_a (app.tests.T)", "tests/test_z.py::t", "tests.test_z::t", "test_q", "", "a b", "[", "::", "../x.py::t"]
)  # fmt: skip
def test_no_ids(id_: str) -> None:
    with pytest.raises(NoNodeId):
        node_id(id_, {"tests/test_a.py": b""}, {})


def test_tests_stand_in_the_order_of_their_files() -> None:
    source = b"""
import unittest
class TestB(unittest.TestCase):
    def test_z(self): 1
    def test_a(self): 1
class TestC:
    def test_z(self): 1
    class TestD(TestB):
        pass
    def test_a(self): 1
if True:
    def test_last(): 1
"""
    given = ["TestC::test_a", "test_last[2]", "TestB::test_z", "test_last[1]", "TestC::TestD::test_q", "TestB::test_a", "TestC::test_z"]  # fmt: skip
    found = in_order(
        ["t/b.py::x", *(f"t/a.py::{name}" for name in given), "t/a.py::unknown"], {"t/a.py": source}
    )
    assert [one.partition("::")[2] for one in found] == [
        "unknown", "TestB::test_a", "TestB::test_z", "TestC::test_z", "TestC::TestD::test_q", "TestC::test_a",
        "test_last[2]", "test_last[1]", "x",
    ]  # fmt: skip
