"""Predictions in SWE-bench's format: read, graded through the referee, hostile ones too, and written from a store."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tiltyard import patches
from tiltyard.check import Prediction, grade, prediction_rows, read_predictions
from tiltyard.errors import UsageError
from tiltyard.pool import Pool, to_jsonl
from tiltyard.pool.repository import repository_task
from tiltyard.records import EpisodeRecord
from tiltyard.task import Files, Metadata, Task

CORE = "def mean(xs):\n    return sum(xs) / (len(xs) + 1)\n\n\ndef first(xs):\n    return xs[0]\n"
FIXED = CORE.replace("(len(xs) + 1)", "len(xs)")
TEST = "from sums import first\n\n\ndef test_first():\n    assert first([3]) == 3\n"
TESTED = TEST.replace("first\n", "first, mean\n", 1) + "\n\ndef test_mean():\n    assert mean([1, 3]) == 2\n"
START = Files(
    {
        "sums/__init__.py": "from sums.core import first, mean\n",
        "sums/core.py": CORE,
        "sums/old.py": "raise RuntimeError('nobody may import this')\n",
        "tests/test_core.py": TEST,
    }
)


def sums(id: str = "org__sums-1") -> Task:
    return repository_task(
        id,
        "mean([1, 3]) is 1.33 and should be 2",
        START,
        {"tests/test_core.py": TESTED.encode()},
        ["tests/test_core.py::test_mean"],
        ["tests/test_core.py::test_first"],
        Files({"sums/core.py": FIXED}, removed=["sums/old.py"]),
        metadata=Metadata(source="sums"),
    )


def changed(**files: str | None) -> str:
    """A patch of the start that gives these files (``__`` for ``/``, ``_dot_`` for ``.``) these texts."""
    after = dict(START)
    for name, text in files.items():
        path = name.replace("__init", "\0").replace("__", "/").replace("_dot_", ".").replace("\0", "__init")
        if text is None:
            del after[path]
        else:
            after[path] = text.encode()
    return patches.diff(START, after)


GOLD = changed(sums__core_dot_py=FIXED, sums__old_dot_py=None)


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def row(patch: Any, id: str = "org__sums-1", model: str = "m") -> dict[str, Any]:
    return {"instance_id": id, "model_name_or_path": model, "model_patch": patch}


# -- reading -------------------------------------------------------------------------------------------------------


def test_every_published_shape_is_read(tmp_path: Path) -> None:
    rows = [row("a", "x"), row(None, "y"), row("", "z")]
    expected = (Prediction("x", "m", "a"), Prediction("y", "m", None), Prediction("z", "m", ""))
    lines = write(tmp_path / "p.jsonl", *rows)
    assert read_predictions(lines) == expected
    (tmp_path / "p.json").write_text(json.dumps(rows, indent=2))
    assert read_predictions(tmp_path / "p.json") == expected
    (tmp_path / "d.json").write_text(json.dumps({r["instance_id"]: r for r in rows}, indent=2))
    assert read_predictions(tmp_path / "d.json") == expected
    (tmp_path / "s.json").write_text(json.dumps({"x": "a"}))
    assert read_predictions(tmp_path / "s.json") == (Prediction("x", "", "a"),)
    (tmp_path / "p.gz").write_bytes(gzip.compress(lines.read_bytes()))
    assert read_predictions(tmp_path / "p.gz") == expected
    assert read_predictions(write(tmp_path / "one.jsonl", rows[0])) == expected[:1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no prediction"),
        ("{", "bad JSON"),
        ("[1]", "found int"),
        ('{"instance_id": 3, "model_patch": ""}', "expected the id of a task"),
        (json.dumps(row("a")) + "\n" + json.dumps(row("b")), "second prediction"),
        ("[" * 100_000, "nested too deep|bad JSON"),
        ("\xff\xfe", "UTF-8"),
    ],
)
def test_what_is_no_file_of_predictions(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=message):
        read_predictions(tmp_path / "p")
    with pytest.raises(UsageError, match="no such file"):
        read_predictions(tmp_path)


# -- grading -------------------------------------------------------------------------------------------------------

CHEATS = {
    "tests-changed": changed(tests__test_core_dot_py="def test_mean(): pass\ndef test_first(): pass\n"),
    "tests-removed": changed(tests__test_core_dot_py=None),
    "conftest": changed(
        conftest_dot_py="import pytest\n@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
        "    report = yield\n    report.outcome = 'passed'\n    return report\n"
    ),
    "configured": changed(pytest_dot_ini="[pytest]\naddopts = --collect-only\n"),
    "exits": changed(sums__core_dot_py="import os\nos._exit(0)\n"),
    "site": changed(sitecustomize_dot_py="import os\nos._exit(0)\n"),
    "wrong": changed(sums__core_dot_py=CORE.replace("xs[0]", "xs[-1]")),
    "breaks-first": changed(sums__core_dot_py=FIXED.replace("xs[0]", "1 / 0")),
}
MALFORMED = {
    "prose": "I would change mean so that it divides by len(xs).",
    "cut": GOLD[: len(GOLD) // 2].rsplit("\n", 1)[0],
    "elsewhere": GOLD.replace("len(xs) + 1", "len(ys)"),
    "absolute": "--- /dev/null\n+++ /etc/tiltyard-was-here\n@@ -0,0 +1 @@\n+x\n",
    "up": "--- /dev/null\n+++ b/../../tiltyard-was-here\n@@ -0,0 +1 @@\n+x\n",
    "link": "diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+/etc/passwd\n",
    "binary": "diff --git a/x b/x\nnew file mode 100644\nindex 0..1\nGIT binary patch\nliteral 1\nIcmZ\n\n",
    "huge": "--- /dev/null\n+++ b/big\n@@ -0,0 +1,300000 @@\n" + "+x\n" * 300_000,
    "many": "".join(f"--- /dev/null\n+++ b/f{n}\n@@ -0,0 +1 @@\n+x\n" for n in range(6000)),
    "surrogate": "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+\ud800\n",
    "folder": "--- /dev/null\n+++ b/sums/core.py/x\n@@ -0,0 +1 @@\n+x\n",
    "a-number": 7,
    "a-list": [GOLD],
}


def test_each_prediction_gets_what_it_deserves(tmp_path: Path) -> None:
    git_only = changed(_dot_git__config="[core]\n", _dot_git__hooks__pre="x")
    given: dict[str, Any] = {
        "gold": GOLD,
        "gold-and-git": GOLD + git_only,
        "gold-and-tests": GOLD + CHEATS["tests-changed"],
        "empty": "",
        "white": " \n\n",
        "null": None,
        "git": git_only,
        **CHEATS,
        **MALFORMED,
    }
    pool = Pool("p", 1, (*(sums(id) for id in given), sums("nobody")))
    file = write(
        tmp_path / "p.jsonl", *(row(patch, id) for id, patch in given.items()), row(GOLD, "stranger")
    )
    report = grade(file, pool, state=tmp_path / "state.jsonl", workers=2)
    said = report.as_json()
    assert said["resolved_ids"] == ["gold", "gold-and-git", "gold-and-tests"], said
    assert said["empty_patch_ids"] == ["empty", "null", "white"]
    assert said["error_ids"] == [], said["tiltyard"]["reasons"]
    assert said["unresolved_ids"] == sorted({"git", *CHEATS, *MALFORMED})
    assert said["incomplete_ids"] == ["nobody"] and said["tiltyard"]["unknown_ids"] == ["stranger"]
    assert said["submitted_instances"] == len(given) and said["total_instances"] == len(given) + 1
    assert said["completed_instances"] == len(given) - 3 and said["schema_version"] == 2
    reasons = said["tiltyard"]["reasons"]
    assert all(reasons[id] for id in said["unresolved_ids"])
    assert "does not fit" in reasons["elsewhere"] and "absolute" in reasons["absolute"]
    assert "'..'" in reasons["up"] and "link" in reasons["link"] and "6000 files" in reasons["many"]
    assert said["tiltyard"]["failed_tests"]["wrong"] == ["tests/test_core.py::test_mean"]
    assert {*said["tiltyard"]["failed_tests"]["breaks-first"]} == {"tests/test_core.py::test_first"}
    assert not Path("/etc/tiltyard-was-here").exists()
    again = grade(file, pool, state=tmp_path / "state.jsonl")
    assert again.resumed == len(given) and again.results == report.results


def test_what_is_known_is_of_this_patch_and_task_only(tmp_path: Path) -> None:
    pool, state = Pool("p", 1, (sums(),)), tmp_path / "state.jsonl"
    assert grade([Prediction("org__sums-1", "m", "")], pool, state=state).resumed == 0
    with state.open("a") as file:
        file.write('{"key": ["cut')  # by a crash
    assert grade([Prediction("org__sums-1", "m", "")], pool, state=state).resumed == 1
    other = grade([Prediction("org__sums-1", "m", "prose")], pool, state=state)
    assert other.resumed == 0 and other.results[0].outcome == "unresolved"
    state.write_text("something else\n")
    with pytest.raises(UsageError, match="no state file"):
        grade([], pool, state=state)


# -- from a store --------------------------------------------------------------------------------------------------


def test_one_prediction_a_task() -> None:
    def played(task: str, patch: str, **more: Any) -> EpisodeRecord:
        values: dict[str, Any] = {"player": "random", "seed": 0, "reward": 0.0, "patch": patch, **more}
        return EpisodeRecord(task, "d", **values)

    records = [
        played("b", "2", model="m-1"),
        played("a", "1"),
        played("a", "again"),
        played("a", "later", attempt=1),
        played("c", "", reward=None, void="no cell"),
    ]
    rows, notes = prediction_rows(records)
    assert rows == [row("1", "a", "random"), row("2", "b", "m-1")]
    assert notes == {
        "left out: another one of a task that has one": 1,
        "left out: not attempt 0": 1,
        "left out: void": 1,
    }
    rows, _ = prediction_rows(records, "mine", attempt=1)
    assert rows == [row("later", "a", "mine")]


def test_binary_files_are_no_part_of_a_prediction() -> None:
    after = {**START, "sums/core.py": FIXED.encode(), "core": b"\0\1", "sums/old.py": b"\0"}
    record = EpisodeRecord("a", "d", "p", 0, reward=1.0, patch=patches.diff(START, after))
    [made], notes = prediction_rows([record])
    assert dict(notes) == {"without their binary files, for a patch has text alone": 1}
    assert patches.apply(made["model_patch"], START) == Files({**START, "sums/core.py": FIXED})


def test_the_commands_from_run_to_report(tmp_path: Path) -> None:
    to_jsonl([sums("r-1"), sums("r-2")], tmp_path / "pool.jsonl")
    environment = {**os.environ, "TILTYARD_CACHE": str(tmp_path / "cache")}

    def tiltyard(*args: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "tiltyard", *args],
            capture_output=True, text=True, timeout=600, cwd=tmp_path, env=environment, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    code, said = tiltyard("run", "pool.jsonl", "--player", "reference", "--store", "e.sqlite")
    assert code == 0, said
    code, said = tiltyard("predictions", "e.sqlite", "--out", "p.jsonl")
    assert code == 0 and "2 predictions" in said, said
    assert [one.id for one in read_predictions(tmp_path / "p.jsonl")] == ["r-1", "r-2"]
    code, said = tiltyard("grade", "p.jsonl", "--pool", "pool.jsonl", "--out", "report.json")
    assert code == 0 and "2 of 2 resolved" in said, said
    assert json.loads((tmp_path / "report.json").read_text())["resolved_ids"] == ["r-1", "r-2"]
    code, said = tiltyard("grade", "p.jsonl", "--pool", "pool.jsonl", "--task", "r-2", "--json")
    assert code == 0 and '"submitted_instances": 1' in said, said
    code, said = tiltyard("grade", "nothing.jsonl", "--pool", "pool.jsonl")
    assert code == 2 and "no such file" in said, said
