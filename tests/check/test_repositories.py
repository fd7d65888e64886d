"""Validation of repository tasks: both lists on start and reference, flaky and order-dependent tests, rows that can't be
built."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tiltyard.check import settled, validate
from tiltyard.cli import app
from tiltyard.images import Images
from tiltyard.pool import Pool, load, to_folder, to_jsonl
from tiltyard.pool.repository import repository_task
from tiltyard.task import Files, Metadata, Task

CORE = "def mean(xs):\n    return sum(xs) / (len(xs) + 1)\n\n\ndef first(xs):\n    return xs[0]\n"
FIXED = CORE.replace("(len(xs) + 1)", "len(xs)")
TESTS = (
    "from sums import first, mean\n\n\ndef test_first():\n    assert first([3]) == 3\n\n\n"
    "def test_mean():\n    assert mean([1, 3]) == 2\n"
)
# one of 26 ways to fail, by chance: that five of them are the same is as likely as one in half a million, and it has to
# happen on the start and on the reference
FLAKY = (
    "\n\ndef test_flaky():\n    import builtins, os\n    kinds = [e for e in vars(builtins).values() if isinstance(e, type)"
    " and issubclass(e, Exception) and not issubclass(e, (Warning, UnicodeError, OSError))][:26]\n"
    "    assert len(kinds) == 26\n    raise kinds[os.urandom(1)[0] % 26]('by chance')\n"
)
ORDERED = (
    "\n\nSEEN = []\n\n\ndef test_one():\n    SEEN.append(1)\n\n\ndef test_two():\n    assert SEEN == [1]\n"
    "\n\ndef test_three():\n    SEEN.append(3)\n"
)


def sums(
    id: str,
    tests: str = TESTS,
    to_pass: tuple[str, ...] = ("test_mean",),
    kept: tuple[str, ...] = ("test_first",),
) -> Task:
    return repository_task(
        id,
        "mean([1, 3]) is 1.33 and should be 2",
        Files({"sums/__init__.py": "from sums.core import first, mean\n", "sums/core.py": CORE}),
        {"tests/test_core.py": tests.encode()},
        [f"tests/test_core.py::{name}" for name in to_pass],
        [f"tests/test_core.py::{name}" for name in kept],
        Files({"sums/core.py": FIXED}),
        metadata=Metadata(source="sums"),
    )


def test_both_lists_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILTYARD_CACHE", str(tmp_path / "cache"))
    before = sums("passes-before", to_pass=("test_mean", "test_first"), kept=())
    pool = [
        sums("fit"),
        replace(before, start=Images().add(before.start)),
        sums("half-before", to_pass=("test_mean", "test_first"), kept=("test_second",), tests=TESTS + "\n\ndef test_second(): pass\n"),
        sums("fails-before", kept=("test_first", "test_mean"), to_pass=("test_new",), tests=TESTS + "\n\ndef test_new():\n    assert mean([1]) == 1\n"),
        sums("not-there", kept=("test_first", "test_gone")),
        replace(sums("no-fix"), reference=Files({"sums/core.py": CORE + "\n"})),
    ]  # fmt: skip
    found = {one.task: one for one in validate(pool, repeats=2, workers=2).tasks}
    assert found["fit"].outcome == "fit" and found["fit"].way == "remote", found["fit"]
    assert {one.outcome for id, one in found.items() if id != "fit"} == {"unfit"}
    first = "the untouched start passes tests/test_core.py::test_first, of FAIL_TO_PASS"
    assert first in found["half-before"].reason
    assert "the untouched start fails tests/test_core.py::test_mean" in found["fails-before"].reason
    assert "of PASS_TO_PASS" in found["fails-before"].reason
    assert "tests/test_core.py::test_gone (not collected)" in found["not-there"].reason
    assert "the reference scores 0: tests/test_core.py::test_mean" in found["no-fix"].reason


def test_flaky_tests_are_named_and_left_out_by_choice() -> None:
    pool = Pool("p", 1, (sums("waverer", TESTS + FLAKY, kept=("test_first", "test_flaky")), sums("steady")))
    flaky = "tests/test_core.py::test_flaky"
    strict = {one.task: one for one in validate(pool).tasks}
    assert strict["steady"].outcome == "fit" and not strict["steady"].flaky
    assert strict["waverer"].outcome == "unfit" and flaky in strict["waverer"].reason
    [without, _] = validate(pool, drop_flaky=True).tasks
    assert without.outcome == "fit" and without.flaky == (flaky,)
    only = [sums("only", TESTS + FLAKY, to_pass=("test_flaky",))]
    [one] = validate(only, drop_flaky=True).tasks
    assert one.outcome == "unfit" and "nothing left to make pass" in one.reason


def test_what_is_left_out_is_left_out_of_what_is_written(tmp_path: Path) -> None:
    sometimes = TESTS + (
        "\n\ndef test_flaky():\n    import builtins, os\n    if mean([1, 3]) != 2:\n"
        "        raise [ValueError, KeyError, TypeError, OSError][os.urandom(1)[0] % 4]\n"
    )
    task = sums("waverer", sometimes, to_pass=("test_mean", "test_flaky"))
    flaky = "tests/test_core.py::test_flaky"
    made = Pool("p", 1, (task,))
    state = tmp_path / "state.jsonl"
    report = validate(made, repeats=12, drop_flaky=True, state=state)
    assert report.ok and report.flaky == {"waverer": (flaky,)}, report.tasks
    assert report.as_json()["tasks"]["waverer"]["flaky"] == [flaky]
    again = validate(made, repeats=12, drop_flaky=True, state=state)
    assert again.resumed == 1 and again.flaky == report.flaky
    assert validate(made, repeats=1, state=state).resumed == 0  # another question
    written = settled(made, report=report)
    to_folder(written, tmp_path / "pool")
    [back] = load(tmp_path / "pool")
    assert [t.id for t in back.hidden] == ["tests/test_core.py::test_first", "tests/test_core.py::test_mean"]
    assert back.way == "remote" and back.digest == written[0].digest


def test_a_suite_that_needs_its_own_order_is_fit_and_named(tmp_path: Path) -> None:
    task = sums("ordered", TESTS + ORDERED, kept=("test_two", "test_three", "test_one", "test_first"))
    assert [t.id.rpartition("::")[2] for t in task.hidden] == [
        "test_first", "test_mean", "test_one", "test_two", "test_three",
    ]  # fmt: skip
    report = validate([task], repeats=2)
    assert report.ok and report.ordered == {"ordered": ("tests/test_core.py::test_two",)}, report.tasks
    dropped = validate([task], repeats=2, drop_flaky=True)
    assert dropped.ok and dropped.flaky == report.ordered and not dropped.ordered
    [without] = settled(Pool("p", 1, (task,)), report=dropped)
    assert "tests/test_core.py::test_two" not in {t.id for t in without.hidden}


def test_ids_that_only_mean_a_test() -> None:
    tests = TESTS + (
        "\n\nimport pytest\n\n\n@pytest.mark.parametrize('x', [1, 2], ids=[f'{n}-{object()}' for n in 'ab'])\n"
        "def test_odd(x):\n    assert first([x]) == x\n"
        "\n\n@pytest.mark.parametrize('x', [1, 2], ids=['more words', 'moreover'])\ndef test_words(x): pass\n"
    )
    addresses = tuple(f"test_odd[{n}-<object object at 0x7f8f17323{n}90>]" for n in "ab")
    pool = [
        sums("addresses", tests, kept=addresses),  # another address in each process
        sums("cut-off", tests, kept=("test_words[more", "test_words[moreover]")),  # by a log split at spaces
        sums("other", tests, kept=("test_odd[c-<object object at 0x7f8f17323290>]",)),
        sums("nearly", tests, kept=("test_words[mor",)),
    ]
    found = {one.task: one for one in validate(pool, repeats=1).tasks}
    assert {id: one.outcome for id, one in found.items()} == {
        "addresses": "fit", "cut-off": "fit", "other": "unfit", "nearly": "unfit",
    }  # fmt: skip
    assert "not collected" in found["other"].reason and "not collected" in found["nearly"].reason


def test_expected_failures_count_for_nothing(tmp_path: Path) -> None:
    tests = (
        TESTS
        + "\n\nimport pytest\n\n\n@pytest.mark.xfail\ndef test_some_day():\n    assert first([1]) == 2\n"
    )
    made = Pool("p", 1, (sums("x", tests, kept=("test_first", "test_some_day")),))
    report = validate(made, repeats=1, state=tmp_path / "state")
    some_day = "tests/test_core.py::test_some_day"
    assert report.ok and report.tasks[0].expected == (some_day,), report.tasks
    assert validate(made, repeats=1, state=tmp_path / "state").tasks[0].expected == (some_day,)
    [written] = settled(made, report=report)
    assert some_day not in {test.id for test in written.hidden} and written.way == "remote"
    hopes = sums("y", tests, to_pass=("test_mean", "test_some_day"))
    assert validate([hopes], repeats=1).tasks[0].outcome == "unfit"  # what must pass has to


def test_what_must_be_compiled_is_said() -> None:
    task = sums("compiled", "from sums._fast import mean\n" + TESTS)
    start = Files({**task.start, "sums/_fast.pyx": "def mean(xs): return 2\n"})
    [one] = validate([replace(task, start=start)], repeats=1).tasks
    assert (
        one.outcome == "unfit"
        and "1 files of the repository need a compiler, such as sums/_fast.pyx" in one.reason
    )


def test_the_command_names_rows_that_cant_be_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILTYARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TILTYARD_REPOS", raising=False)
    (tmp_path / "repos").mkdir()
    row = {
        "instance_id": "org__gone-1",
        "repo": "org/gone",
        "base_commit": "0" * 40,
        "patch": "x",
        "test_patch": "",
        "problem_statement": "p",
        "FAIL_TO_PASS": ["tests/test_a.py::test_a"],
        "PASS_TO_PASS": [],
    }
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps(row) + "\n")
    repos = ["--repos", str(tmp_path / "repos")]
    done = CliRunner().invoke(app, ["validate", f"swebench:{rows}", *repos, "--json"])
    assert done.exit_code == 1, done.output
    said = json.loads(done.stdout)
    assert said["summary"] == {"fit": 0, "unfit": 0, "void": 1}
    [(where, task)] = said["tasks"].items()
    assert "org__gone-1" in where and "can't be built here: repo: found no repository" in task["reason"]
    assert "TILTYARD_REPOS" not in __import__("os").environ
    pool = tmp_path / "pool.jsonl"
    to_jsonl([sums("fit")], pool)
    done = CliRunner().invoke(app, ["tasks", str(pool), *repos])
    assert done.exit_code == 0 and "fit" in done.stdout
