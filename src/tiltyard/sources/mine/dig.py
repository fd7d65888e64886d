"""One commit examined: its environment, its lists of tests, and the way in which they can be graded.

What a worker holds is a repository and walls; what it gives back is an :class:`Entry`, plain data that says what came of
the commit and, for a task, all that can't be read from the repository. An arena's failure is an entry too (``void``).
"""

from __future__ import annotations

import datetime
import re
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Self

from tiltyard import environments
from tiltyard.cells import make_wall
from tiltyard.cells.protocol import Wall
from tiltyard.environments import BuildError, Environment
from tiltyard.errors import ArenaError, TaskError
from tiltyard.git import GitError, Repository
from tiltyard.pool.model import size_problems
from tiltyard.pool.nodeids import in_order
from tiltyard.pool.repository import REPOSITORY_LIMITS
from tiltyard.referee.pytest_settle import Tried, settle
from tiltyard.referee.suites import collect_suite
from tiltyard.sources.mine.history import Candidate
from tiltyard.sources.mine.lists import Lists, find_lists
from tiltyard.sources.mine.material import draft, take_apart
from tiltyard.task import Files, SuiteWay, Task, Test

NO_TEST_FILE = "changes no file that pytest collects"
NO_ENVIRONMENT = "no environment"
NOT_GRADED = "can't be graded"
TOO_BIG_TREE = "too big a tree"
MALFORMED = "no well-formed task"
VOID = "void: the arena failed"
TASK = "task"
_TOOLS = frozenset({"coverage", "pytest_cov"})
OLD_PYTHON = "3.9"
VARIANTS = (("", ""), ("pytest<8", ""), ("", OLD_PYTHON))
"""What is asked of an environment beside what the repository declares, and its Python: hooks may be older than the newest
pytest; what was long deprecated (``collections.Mapping``) is gone since Python 3.10."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the outcome of a commit depends on, beside the commit. Times in seconds; ``python`` "": what the repository
    allows; ``extra``: more requirements; ``environment`` False: cells as they are, no packages are looked for."""

    repository: str
    name: str
    wall: str = "auto"
    python: str = ""
    extra: tuple[str, ...] = ()
    environment: bool = True
    repeats: int = 3
    test_s: float = 20.0
    run_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Entry:
    """What came of one commit. ``outcome`` is "task" or why it is none, ``detail`` says more. The rest as in ``Task``."""

    commit: str
    outcome: str
    detail: str = ""
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    ordered: tuple[str, ...] = ()
    unloaded: bool = False
    way: SuiteWay = ""
    python: str = ""
    packages: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    seconds: float = field(default=0.0, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, without what is not there."""
        return {key: value for key, value in asdict(self).items() if value not in ("", (), False)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The entry that ``as_dict`` made it of. ValueError, TypeError: it did not."""
        if not isinstance(data.get("commit"), str) or not isinstance(data.get("outcome"), str):
            raise ValueError("no entry of a commit")
        values: dict[str, Any] = {}
        for f in fields(cls):
            value = data.get(f.name, f.default)
            values[f.name] = tuple(map(str, value)) if isinstance(value, list) else value
        return cls(**values)


class Digger:
    """A worker's hands (``workers.Handler``)."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.repository = Repository(settings.repository)
        self.walls: dict[int, Wall] = {}
        warnings.simplefilter("ignore", SyntaxWarning)  # of old code, which is parsed here
        self.wall(0)  # a wall that does not work is found here, before any commit is blamed
        self.pythons = {python.minor for python in environments.pythons()}

    def wall(self, hash_seed: int) -> Wall:
        """The wall for a hash seed, opened when it is first needed."""
        if hash_seed not in self.walls:
            self.walls[hash_seed] = make_wall(self.settings.wall, hash_seed=hash_seed)
        return self.walls[hash_seed]

    def close(self) -> None:
        for wall in self.walls.values():
            wall.close()

    def __call__(self, candidate: Candidate) -> Entry:
        begun = time.monotonic()
        try:
            entry = self._examined(candidate)
        except (ArenaError, GitError) as error:
            entry = Entry(candidate.sha, VOID, str(error)[:500])
        except TaskError as error:
            entry = Entry(candidate.sha, MALFORMED, str(error.problems[0])[:500])
        return replace(entry, seconds=round(time.monotonic() - begun, 3))

    def _examined(self, candidate: Candidate) -> Entry:
        material = take_apart(self.repository, candidate)
        if not material.modules:
            return Entry(candidate.sha, NO_TEST_FILE)
        for name in ("start", "reference", "suite"):
            for problem in size_problems(
                getattr(material, name), name, REPOSITORY_LIMITS, candidate.sha[:10]
            ):
                return Entry(candidate.sha, TOO_BIG_TREE, str(problem)[:500])
        bare = hurried(draft(self.settings.name, candidate, material), self.settings)
        ready, why = self._with_environment(bare, candidate, material.modules)
        if ready is None:
            return Entry(candidate.sha, NO_ENVIRONMENT, why[:500])
        lists = find_lists(self.wall, ready, material.modules, self.settings.repeats)
        if lists.why:
            return replace(self._entry(candidate, ready, lists), outcome=lists.why, detail=lists.detail[:500])
        return self._graded(candidate, ready, lists)

    def _entry(self, candidate: Candidate, ready: Task, lists: Lists) -> Entry:
        return Entry(
            candidate.sha,
            TASK,
            fail_to_pass=lists.fail_to_pass,
            pass_to_pass=lists.pass_to_pass,
            flaky=lists.flaky,
            ordered=lists.ordered,
            unloaded=lists.unloaded,
            python=ready.metadata.python,
            packages=ready.metadata.packages,
            plugins=ready.plugins,
        )

    def _graded(self, candidate: Candidate, ready: Task, lists: Lists) -> Entry:
        """With the strongest way of grading in which the reference passes all, and the start does not."""
        entry = self._entry(candidate, ready, lists)
        _, tried = settle(self.wall(0), with_lists(ready, entry))
        works: SuiteWay = next((one.way for one in tried if one.works), "")
        if works:
            return replace(entry, way=works)
        said = "; ".join(
            f"{one.way}: the reference passes {one.passed} of {one.total}, {_why(one)}" for one in tried
        )
        return replace(entry, outcome=NOT_GRADED, detail=said[:500])

    # -- environments ----------------------------------------------------------------------------------------------

    def _with_environment(
        self, bare: Task, candidate: Candidate, modules: Sequence[str]
    ) -> tuple[Task | None, str]:
        """The task with the environment in which most of its tests are collected; or why there is none."""
        if not self.settings.environment:
            return with_environment(bare, None), ""
        files = {**bare.start, **bare.suite}
        chosen, why = self._found(files, candidate, "", "")
        if chosen is None:
            return None, why
        best: tuple[int, Task] | None = None
        for pin, python in VARIANTS:
            if python and (self.settings.python or python not in self.pythons or (best and best[0])):
                continue
            plain = not pin and not python
            environment = chosen if plain else self._found(files, candidate, pin, python)[0]
            if environment is None:
                continue
            ready = with_environment(bare, environment)
            after = ready.reference.over(ready.start)
            ids, notes = collect_suite(self.wall(0), ready, after, paths=modules)
            if best is None or len(ids) > best[0]:
                best = len(ids), ready
            if (ids and not notes) or any("SyntaxError" in reason for reason in notes.values()):
                break
        assert best is not None
        return best[1], ""

    def _found(
        self, files: Mapping[str, bytes], candidate: Candidate, pin: str, python: str
    ) -> tuple[Environment | None, str]:
        extra = (*self.settings.extra, *named_in_filters(files), *([pin] if pin else []))
        # one environment serves a year: packages as of its middle, and of its end where these don't do
        date = min(f"{candidate.commit_date[:4]}-12-31", datetime.date.today().isoformat())
        found = environments.find(files, date=date, python=python or self.settings.python, extra=extra)
        if found.environment is None:
            return None, found.reason
        try:
            environments.build(found.environment)
        except BuildError as error:
            if error.kind in ("uv", "network"):
                raise
            return None, str(error)
        return found.environment, ""


def _why(one: Tried) -> str:
    return one.reason or "and the start ends in another way than before"


def with_environment(task: Task, environment: Environment | None) -> Task:
    """The task with an environment, the plugins of pytest in it, and what building its package would make."""
    start = as_built(task)
    if environment is None:
        return replace(task, start=start)
    metadata = replace(task.metadata, python=environment.python, packages=environment.packages)
    plugins = environments.plugins_of(environment)
    return replace(task, start=start, metadata=metadata, plugins=plugins)


def as_built(task: Task) -> Files:
    """The task's start with the files that building its package would make."""
    generated = environments.generated_files({**task.start, **task.suite})
    return generated.over(task.start) if generated else task.start


def named_in_filters(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Packages whose warnings the configuration of pytest names: it does not start where they can't be imported, though
    they may be tools that nothing imports (``ignore::coverage.exceptions.CoverageWarning``)."""
    text = b"\n".join(
        files.get(name, b"") for name in ("pyproject.toml", "setup.cfg", "tox.ini", "pytest.ini")
    )
    found = re.findall(
        rb"""(?:ignore|error|default|always|once|module):[^:\n]*:([A-Za-z_]\w*)\.[\w.]+""", text
    )
    return tuple(sorted({name.decode() for name in found} & _TOOLS))


def with_lists(task: Task, entry: Entry) -> Task:
    """The task with its tests, in the order of their files."""
    ids = in_order((*entry.fail_to_pass, *entry.pass_to_pass), {**task.start, **task.suite})
    return replace(task, hidden=tuple(map(Test, ids)), pass_to_pass=entry.pass_to_pass)


def hurried(task: Task, settings: Settings) -> Task:
    """The task with less time: what takes longer is no test to train with."""
    limits = replace(
        task.limits, test_s=settings.test_s, grade_s=settings.run_s, load_s=min(60.0, settings.run_s)
    )
    return replace(task, limits=limits)
