"""From a break that works to a task: pure, so that who makes it and who validates it make the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tiltyard.images import Images
from tiltyard.referee.pytest_files import is_test_name
from tiltyard.sources.breakage.ready import Ready
from tiltyard.sources.breakage.report import Broken
from tiltyard.sources.breakage.subject import BROKEN
from tiltyard.sources.breakage.trimmed import without_tests
from tiltyard.task import Files, Task, Test

MAX_PASSING = 200
"""Tests of a suite that must go on passing, at most: those that reach the change come first."""


def task_of(ready: Ready, broken: Broken) -> Task:
    """The task. Its start is the code with the fault, its reference the original of the changed files. Of a suite in the start
    the failing tests are taken out."""
    base = ready.subject.task
    original = Files({path: base.start[path] for path in broken.changed})
    about = replace(
        base.metadata,
        source=base.metadata.source or ready.subject.name,
        difficulty=broken.hiddenness,
        tags=tuple(dict.fromkeys((BROKEN, *base.metadata.tags))),
        extra=(*base.metadata.extra, *ready.subject.extra, *broken.facts),
    )
    start = broken.changed.over(base.start)
    task = replace(
        base,
        id=f"{ready.subject.name}-{BROKEN}-{broken.mark}",
        prompt=broken.prompt,
        start=start,
        reference=original,
        reward="all",
        metadata=about,
    )
    return task if task.grading != "pytest" else _of_suite(ready, broken, task)


def _of_suite(ready: Ready, broken: Broken, task: Task) -> Task:
    known = {test.id: test for test in ready.subject.task.hidden}
    order = {test.id: n for n, test in enumerate(ready.task.hidden)}
    kept = sorted(_passing(ready, broken), key=order.__getitem__)
    hidden = tuple(known.get(name, Test(name)) for name in (*broken.failing, *kept))
    changed, gone = without_tests(task.start, broken.failing)
    files = {test.id.partition("::")[0] for test in hidden}
    trusted = {**task.start, **task.suite}
    suite = {path: trusted[path] for path in sorted({*files, *changed, *gone}) if path in trusted}
    laid = Files(changed, gone).over(task.start)
    visible = tuple(
        test
        for test in task.visible
        if test.id.partition("::")[0] in laid and test.id not in {*broken.failing}
    )
    shown = {test.id.partition("::")[0] for test in visible}
    visible += tuple(Test(path) for path in sorted({*changed} - shown) if is_test_name(path))
    return replace(
        task,
        start=laid,
        suite=Files(suite) if ready.subject.own_suite else task.suite,
        hidden=hidden,
        pass_to_pass=tuple(kept),
        visible=visible,
        way=ready.subject.task.way,
    )


def _passing(ready: Ready, broken: Broken) -> list[str]:
    """Those that reach the change, then those of the same test files, then others, evenly."""
    failing, near = {*broken.failing}, list(broken.passing)
    left = MAX_PASSING - len(near)
    files = {name.partition("::")[0] for name in broken.failing}
    others = [t.id for t in ready.task.hidden if t.id not in failing and t.id not in {*near}]
    beside = [name for name in others if name.partition("::")[0] in files]
    far = [name for name in others if name.partition("::")[0] not in files]
    if left <= 0:
        return _evenly(near, MAX_PASSING)
    return [*near, *_evenly(beside, left), *_evenly(far, left - len(beside))]


def _evenly(names: Sequence[str], most: int) -> list[str]:
    if most <= 0:
        return []
    return list(names) if len(names) <= most else [names[n * len(names) // most] for n in range(most)]


def with_image(task: Task) -> Task:
    """The task with its start as an image, in the store of this machine."""
    return replace(task, start=Images().add(task.start))
