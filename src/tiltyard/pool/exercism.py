"""Exercises of Exercism's Python track: the folder ``exercises/practice`` (or the track, or one exercise).

The player finds the stubs, and what the track shows to students besides (``editor`` files, protected). The reference
is the example solution. Hidden is each test method of the exercise's unittest suite, which imports the solution by its
module's name; modules beside the suite that it imports are the examiner's own. The first test is visible. An exercise
is solved only as a whole (reward ``all``). Nothing is executed here, and links are not followed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictStr

from tiltyard.errors import Problem, UsageError
from tiltyard.pool.model import make_task, parse
from tiltyard.pool.sources import third_party
from tiltyard.pool.suites import SuiteError, helper_modules, methods_of, modules_of, prelude
from tiltyard.task import Files, Limits, Metadata, Task, Test, path_problem

CONFIG = ".meta/config.json"
DOCS = ("introduction.md", "instructions.md", "instructions.append.md")
LIMITS = Limits(test_s=10.0)
MAX_FILE = 4 << 20


class FilesRow(BaseModel):
    """Which file of an exercise is what."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    solution: list[StrictStr] = Field(min_length=1)
    test: list[StrictStr] = Field(min_length=1)
    example: list[StrictStr] = Field(min_length=1)
    editor: list[StrictStr] = Field(default=[])


class ConfigRow(BaseModel):
    """``.meta/config.json``. Other keys are not used."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    files: FilesRow


def find_exercises(path: Path) -> list[Path]:
    """The folders of exercises below a folder: itself, its subfolders, or those of its ``exercises/practice``.

    UsageError: there is none.
    """
    if (path / CONFIG).is_file():
        return [path]
    for root in (path, path / "exercises" / "practice"):
        found = sorted(p for p in root.iterdir() if (p / CONFIG).is_file()) if root.is_dir() else []
        if found:
            return found
    raise UsageError(
        f"{path} has no exercise in it; expected the folder exercises/practice of the Python track, in which each "
        f"exercise has a {CONFIG}"
    )


def read_exercise(folder: Path, problems: list[Problem]) -> Task | None:
    """The task of an exercise's folder, or None with its problems appended."""
    reader = _Reader(folder, problems)
    data = reader.json(CONFIG)
    config = parse(ConfigRow, data, f"{folder}/{CONFIG}", problems) if data is not None else None
    if config is None:
        return None
    files = config.files
    if len(files.example) != len(files.solution):
        found = f"{len(files.example)} for {len(files.solution)} solution files"
        reader.problem(
            CONFIG, "files.example", found, "one example for each solution file, in the same order"
        )
        return None
    shown = [name for name in files.editor if name not in (*files.solution, *files.test)]
    start = {name: reader.read(name) for name in (*files.solution, *shown)}
    examples = [reader.read(name) for name in files.example]
    suites = {name: reader.text(name) for name in files.test}
    docs = [text for name in DOCS if (text := reader.text(f".docs/{name}", optional=name != DOCS[1])).strip()]
    if reader.failed:
        return None
    helpers = _helpers(reader, suites.values(), files.solution)
    head = helper_modules(helpers.items())
    hidden, visible = _tests(reader, suites, head, bool(helpers.keys() - {Path(n).stem for n in shown}))
    if reader.failed:
        return None
    solved = dict(zip(files.solution, examples, strict=True))
    packages = _packages([*solved.values()], [*suites.values(), *helpers.values()], start, helpers)
    names = " and ".join(f"`{name}`" for name in files.solution)
    return make_task(
        str(folder),
        problems,
        id=folder.resolve().name,
        prompt="\n\n".join([*(text.strip() for text in docs), f"Write your solution in {names}."]) + "\n",
        start=Files(start),
        protected=frozenset(shown),
        reference=Files(solved),
        main=files.solution[0],
        visible=visible,
        hidden=hidden,
        prelude=prelude(packages),
        reward="all",
        limits=LIMITS,
        metadata=Metadata(
            source="Exercism Python track",
            difficulty=_difficulty(folder),
            license="MIT",
            tags=("exercism",),
            packages=packages,
        ),
    )


def _tests(
    reader: _Reader, suites: dict[str, str], head: str, secret: bool
) -> tuple[tuple[Test, ...], tuple[Test, ...]]:
    """Hidden and visible tests. ``secret``: modules of the suite that students don't see, so they see no test."""
    hidden: list[Test] = []
    visible: list[Test] = []
    for name, source in suites.items():
        try:
            methods = methods_of(source)
        except SuiteError as error:
            reader.problem(name, "", str(error), "a unittest suite")
            continue
        if not methods:
            reader.problem(name, "", "no test method that is run", "a unittest suite")
        prefix = f"{Path(name).stem}::" if len(suites) > 1 else ""
        hidden += [m.hidden(head, prefix) for m in methods]
        if not visible and not secret:
            visible += [m.visible(head, prefix) for m in methods[:1]]
    return tuple(hidden), tuple(visible)


def _helpers(reader: _Reader, suites: Any, solution: Sequence[str]) -> dict[str, str]:
    """Modules beside the suites that these import, and those that these import, the most needed first."""
    theirs = {Path(name).stem for name in solution}
    out: dict[str, str] = {}

    def add(source: str) -> None:
        for name in sorted(modules_of(source) - theirs - out.keys()):
            if (reader.folder / f"{name}.py").is_file():
                text = reader.text(f"{name}.py")
                out[name] = ""  # against modules that import each other
                add(text)
                del out[name]
                out[name] = text

    for source in suites:
        add(source)
    return out


def _packages(
    solved: list[bytes], tests: list[str], start: dict[str, bytes], helpers: dict[str, str]
) -> tuple[str, ...]:
    sources = [data.decode("utf-8", "replace") for data in solved]
    own = {Path(name).parts[0].removesuffix(".py") for name in start} | helpers.keys()
    return tuple(name for name in third_party(*sources, *tests) if name not in own)


def _difficulty(folder: Path) -> float | None:
    """What the track's own ``config.json`` says, from 1 to 10, where the exercise lies in a whole track."""
    try:
        data = json.loads((folder.resolve().parents[2] / "config.json").read_bytes())
        listed = data["exercises"]["practice"]
        found = next((e["difficulty"] for e in listed if e["slug"] == folder.resolve().name), None)
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


class _Reader:
    """Reads the files of one exercise; what is wrong with them goes to ``problems``."""

    def __init__(self, folder: Path, problems: list[Problem]) -> None:
        self.folder = folder
        self._problems = problems
        self._before = len(problems)

    @property
    def failed(self) -> bool:
        return len(self._problems) > self._before

    def problem(self, name: str, field: str, found: str, expected: str) -> None:
        self._problems.append(Problem(f"{self.folder}/{name}", field, found, expected))

    def read(self, name: str, optional: bool = False) -> bytes:
        """The content of a file below the folder, b"" with a problem if there is none."""
        if (why := path_problem(name)) is not None:
            self.problem(CONFIG, "files", f"{why} ({name!r})", "paths below the exercise's folder")
            return b""
        path = self.folder / name
        if optional and not path.exists():
            return b""
        steps = [self.folder.joinpath(*Path(name).parts[:n]) for n in range(1, len(Path(name).parts) + 1)]
        try:
            if any(step.is_symlink() for step in steps) or not path.is_file():
                found = "nothing" if not path.exists() else "no regular file"
                self.problem(name, "", found, "a file of the exercise")
                return b""
            if path.stat().st_size > MAX_FILE:
                self.problem(name, "", f"{path.stat().st_size} bytes", f"at most {MAX_FILE}")
                return b""
            return path.read_bytes()
        except OSError as error:
            self.problem(name, "", error.strerror or str(error), "a file that can be read")
            return b""

    def text(self, name: str, optional: bool = False) -> str:
        """As :meth:`read`, decoded; line ends as Python reads them."""
        try:
            return self.read(name, optional).decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError:
            self.problem(name, "", "bytes that are not UTF-8", "text in UTF-8")
            return ""

    def json(self, name: str) -> Any:
        try:
            return json.loads(self.text(name))
        except (ValueError, RecursionError) as error:
            self.problem(name, "", f"bad JSON ({error})", "JSON")
            return None


def read_exercises(path: Path, problems: list[Problem]) -> Iterator[tuple[str, Task | None]]:
    """(where, task) of each exercise that :func:`find_exercises` finds."""
    for folder in find_exercises(path):
        yield str(folder), read_exercise(folder, problems)
