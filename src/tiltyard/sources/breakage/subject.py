"""What is broken: working code with tests. From a pool each task solved by its reference, from a repository its files.

Data and pure functions; nothing is run here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tiltyard.pool.repository import repository_task
from tiltyard.referee.pytest_files import is_test_name, is_test_side
from tiltyard.task import Files, Metadata, Task, Test

_NO_CODE = frozenset("setup.py noxfile.py conftest.py fabfile.py tasks.py __main__.py".split())
_NO_CODE_FOLDERS = frozenset(
    "doc docs example examples benchmark benchmarks scripts tools misc ci .github".split()
)
BROKEN = "broken"
"""The tag of every task that was made by breaking one."""


@dataclass(frozen=True)
class Subject:
    """``task``: its start is the working code, its hidden tests (where it names them) all tests that there are; its
    reference means nothing. ``targets`` are the files that may be broken. ``described``: what the player of the broken
    task is told about the code beside the symptoms, or ""."""

    task: Task
    targets: tuple[str, ...]
    described: str = ""
    extra: tuple[tuple[str, str], ...] = ()
    own_suite: bool = False
    """The tests lie among the files of the start: each task takes of them what it needs as its suite."""
    as_image: bool = False
    """The start of a task is to be an image."""

    @property
    def name(self) -> str:
        return self.task.id


def subject_of_task(task: Task) -> Subject:
    """A task of a pool as its reference solves it; its hidden tests must be known."""
    working = task.reference.over(task.start)
    whole = replace(task, start=Files(dict(working)), reward="all")
    targets = tuple(p for p in working if p not in task.protected and _may_break(task, p))
    extra = (("broken_from", task.digest),)
    return Subject(whole, targets, _description(task), extra, as_image=bool(task.start.image))


def subject_of_files(
    name: str,
    files: Mapping[str, bytes],
    *,
    metadata: Metadata,
    extra: tuple[tuple[str, str], ...] = (),
    pythonpath: tuple[str, ...] = (),
    plugins: tuple[str, ...] = (),
) -> Subject | None:
    """A repository's files, with the tests that lie among them; None if there are no tests or no other code."""
    start = Files(dict(files))
    suite = {path: data for path, data in start.items() if is_test_name(path)}
    code = [path for path in start if path.endswith(".py") and path not in suite]
    if not suite or not code:
        return None
    first = Files({code[0]: start[code[0]]})
    task = repository_task(
        name, "(working code)", start, suite, (), (), first, metadata=metadata, pythonpath=pythonpath, plugins=plugins
    )  # fmt: skip
    task = replace(task, way="in-process")
    targets = tuple(path for path in code if _may_break(task, path))
    return Subject(task, targets, "", extra, own_suite=True, as_image=True) if targets else None


def _may_break(task: Task, path: str) -> bool:
    *folders, name = path.split("/")
    if not path.endswith(".py") or (task.grading == "pytest" and is_test_side(task, path)):
        return False
    return task.grading != "pytest" or (name not in _NO_CODE and not _NO_CODE_FOLDERS & {*folders[:1]})


def _description(task: Task) -> str:
    """The prompt of a task that said what the code is to do. That of one that reported bugs, which are mended now, would
    lead astray."""
    reports = {"bugfix", "bug", "repair", "fix", BROKEN} & {*task.metadata.tags}
    words = task.prompt.lower()
    if (
        task.grading == "pytest"
        or reports
        or words.startswith(("fix", "mend", "repair", "debug", "find the bug"))
    ):
        return ""
    return task.prompt.strip()


def with_tests(task: Task, ids: tuple[str, ...]) -> Task:
    """A pytest task whose hidden tests are these."""
    known = {test.id: test for test in task.hidden}
    return replace(task, hidden=tuple(known.get(i, Test(i)) for i in ids), pass_to_pass=())
