"""What lies in a player's workspace at the start: the task's start files, and readable views of its visible tests.

The views (``test_visible.py``; ``visible/NAME.in``, ``.out``, ``.args`` and ``.rc``) are made from the task, so they
are the same bytes always. They are protected, run_tests never reads them, and they are never part of a submission.
Where a file of the task has such a name, the task's file wins. Hidden tests, the prelude and the reference are never
read here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tiltyard.cells.start import Changed, is_git
from tiltyard.parsing import parse_source
from tiltyard.task import Files, Task, Test

TEST_FILE = "test_visible.py"
CASE_FOLDER = "visible"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True, slots=True)
class Workspace:
    """``files`` is what the cell opens with; ``protected`` says of each file that can't be written, why."""

    files: Files
    views: frozenset[str]
    protected: dict[str, str]
    is_suite: bool = False
    """Whether tests are files: then a file that the player took away is gone for them as well."""

    def submission(self, files: Mapping[str, bytes], skipped: Iterable[tuple[str, str]] = ()) -> Files:
        """What is handed in of the files in the workspace: all that the player could write; of an image only what is not
        as it was, and what was taken away. ``skipped``, of a capture, is neither: it counts as it was at the start."""
        if not self.is_suite:
            return Files({p: b for p, b in files.items() if p not in self.protected})
        gone = {p for p in set(self.files).difference(files, self.protected) if not is_git(p)}
        if gone:
            gone -= _not_looked_at(gone, skipped)
        if isinstance(files, Changed) and files.image == self.files:
            files = files.changed
        kept = {p: b for p, b in files.items() if p not in self.protected}
        if self.files.image:
            kept = {p: b for p, b in kept.items() if p not in self.files or self.files[p] != b}
        return Files(kept, gone)


def _not_looked_at(paths: set[str], skipped: Iterable[tuple[str, str]]) -> set[str]:
    """Those of ``paths`` of which a capture does not say that they are gone."""
    names = {path for path, _ in skipped}
    deep = {path for path, why in skipped if why.startswith("deeper")}
    if "…" in names:  # the list is not complete
        return paths
    return {p for p in paths if p in names or any(p.startswith(f"{folder}/") for folder in deep)}


def workspace(task: Task) -> Workspace:
    """The workspace of a task."""
    taken = {*task.start, *task.reference, *(() if task.grading == "pytest" else (task.main,))}
    folders = {path.rsplit("/", n)[0] for path in taken for n in range(1, path.count("/") + 1)}
    views = {p: c for p, c in _views(task).items() if not _clashes(p, taken, folders)}
    protected = dict.fromkeys(sorted(task.protected), "the task needs it as it is")
    protected |= dict.fromkeys(views, "it only shows the visible tests, and changing it would change nothing")
    files = Files(views).over(task.start)
    return Workspace(files, frozenset(views), protected, task.grading == "pytest")


def _clashes(path: str, taken: set[str], folders: set[str]) -> bool:
    above = {path.rsplit("/", n)[0] for n in range(1, path.count("/") + 1)}
    return path in taken or path in folders or bool(above & taken)


def _views(task: Task) -> dict[str, str]:
    if not task.visible or task.grading == "pytest":  # whose visible tests are start files
        return {}
    if task.grading == "calls":
        return {TEST_FILE: test_file(task)}
    out = {}
    for name, test in zip(case_names(task.visible), task.visible, strict=True):
        out[f"{CASE_FOLDER}/{name}.in"] = test.stdin
        out[f"{CASE_FOLDER}/{name}.out"] = test.stdout
        if test.args:
            out[f"{CASE_FOLDER}/{name}.args"] = "".join(arg + "\n" for arg in test.args)
        if test.exit_code:
            out[f"{CASE_FOLDER}/{name}.rc"] = f"{test.exit_code}\n"
    return out


def case_names(tests: tuple[Test, ...]) -> list[str]:
    """A file name for each test: its id where that can be one, else its number."""
    plain = [t.id for t in tests]
    good = all(_PLAIN_NAME.fullmatch(i) for i in plain) and len({i.lower() for i in plain}) == len(plain)
    return plain if good else [f"case-{n}" for n in range(1, len(tests) + 1)]


# -- visible tests of calls tasks, as code to read ---------------------------------------------------------------


def test_file(task: Task) -> str:
    """Python that holds the visible tests and can be read, and run, as it stands."""
    head = f'"""The visible tests of {_one_line(task.id)}. run_tests() runs them."""\n'
    module = module_name(task.main)
    if task.entry:
        names = ", ".join(task.entry)
        head += f"\nfrom {module} import {names}\n" if module else f"\n# {names}: from {task.main}\n"
    return head + "".join(f"\n\n{block}\n" for block in test_blocks(task.visible))


test_file.__test__ = False  # type: ignore[attr-defined]  # its name makes pytest take it for a test


def module_name(path: str) -> str:
    """The dotted name under which a file of the workspace can be imported, or ""."""
    parts = path.removesuffix(".py").split("/")
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    return ".".join(parts) if path.endswith(".py") and all(p.isidentifier() for p in parts) else ""


def test_blocks(tests: tuple[Test, ...]) -> list[str]:
    """The tests as code. Tests that share a file (the same code but for the function called) stand there once."""
    blocks: list[str] = []
    for test in tests:
        source = _shared_source(test.code)
        block = source if source is not None else f"# {_one_line(test.id)}\n{test.code.strip(chr(10))}"
        if block not in blocks:
            blocks.append(block)
    return blocks


test_blocks.__test__ = False  # type: ignore[attr-defined]


def _shared_source(code: str) -> str | None:
    """The test file that the code is made of, without the call of one of its functions; None if it is no such code."""
    body = parse_source(code).body
    if len(body) < 2:
        return None
    last = body[-1]
    if not (isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)):
        return None
    call = last.value
    if not isinstance(call.func, ast.Name) or call.args or call.keywords:
        return None
    if not any(isinstance(n, ast.FunctionDef) and n.name == call.func.id for n in body[:-1]):
        return None
    lines = code.split("\n")
    return "\n".join(lines[: last.lineno - 1]).strip("\n")


def _one_line(text: str) -> str:
    return " ".join(text.replace("\\", "/").replace('"""', "'").split())
