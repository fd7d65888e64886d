"""The task: what one episode is about. Data only, immutable, checked when made, with a content digest.

A task never reads a file, runs code or knows where it came from; the importers in ``tiltyard.pool`` make tasks.
The digest changes with anything that can change a reward, and with nothing else (not with the author's notes).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cached_property
from typing import Any, Literal

from tiltyard.errors import Problem, TaskError

MAIN = "solution.py"
MAX_PATH_PART = 255
MAX_PATH = 1024

RewardRule = Literal["fraction", "all"]
Grading = Literal["calls", "stdio", "pytest"]
GRADINGS: tuple[str, ...] = ("calls", "stdio", "pytest")
SuiteWay = Literal["", "remote", "in-process"]
SUITE_WAYS: tuple[str, ...] = ("remote", "in-process")
"""The ways of ``pytest`` grading, strongest first."""
REWARD_RULES: tuple[str, ...] = ("fraction", "all")
MATCHES: tuple[str, ...] = ("exact", "lines", "tokens", "numbers")


def path_problem(path: object) -> str | None:
    """Say what is wrong with a workspace path, or None. Paths are relative, POSIX, without ``.`` or ``..``."""
    if not isinstance(path, str):
        return f"a path of type {type(path).__name__}; expected text"
    if not path:
        return "an empty path"
    if len(path.encode("utf-8", "surrogatepass")) > MAX_PATH:
        return f"a path of more than {MAX_PATH} bytes"
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return "a path that is not valid Unicode text"
    if "\0" in path:
        return "a path with a NUL character"
    if path.startswith("/"):
        return "an absolute path"
    parts = path.split("/")
    if any(p in ("", ".", "..") for p in parts):
        return "a path with an empty, '.' or '..' part"
    if any(len(p.encode()) > MAX_PATH_PART for p in parts):
        return f"a path with a name of more than {MAX_PATH_PART} bytes"
    return None


def instant_problem(instant: object) -> str | None:
    """Say what is wrong with an instant at which a clock is to stand, or None."""
    if not isinstance(instant, str):
        return f"an instant of type {type(instant).__name__}"
    try:
        found = datetime.fromisoformat(instant)
    except ValueError:
        return repr(instant)
    if found.tzinfo is not None or not 1970 < found.year < 2262 or len(instant) < 19:
        return repr(instant)
    return None


class Files(Mapping[str, bytes]):
    """An immutable, hashable, picklable mapping from workspace path to bytes, sorted by path.

    As a layer it also takes paths away: ``removed`` are those that are not there any more when it is laid ``over``
    others. ``image`` is the digest of the image that holds exactly these files, "" if there is none."""

    __slots__ = ("_items", "removed")
    _items: dict[str, bytes]
    removed: frozenset[str]
    image = ""

    def __init__(
        self,
        items: Mapping[str, bytes | str] | Iterable[tuple[str, bytes | str]] = (),
        removed: Iterable[str] = (),
    ) -> None:
        pairs = dict(items)
        data: dict[str, bytes] = {}
        for path in sorted(pairs):
            value = pairs[path]
            data[path] = value.encode() if isinstance(value, str) else bytes(value)
        object.__setattr__(self, "_items", data)
        object.__setattr__(self, "removed", frozenset(removed).difference(data))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Files can't be changed")

    def __getitem__(self, path: str) -> bytes:
        return self._items[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash((tuple(self._items.items()), self.removed))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Files):
            if self.removed != other.removed:
                return False
            if self.image or other.image:
                return self.image == other.image or self.digests == other.digests
            return self._items == other._items
        return NotImplemented

    def __repr__(self) -> str:
        gone = f", removed={sorted(self.removed)}" if self.removed else ""
        return f"Files({{{', '.join(f'{p!r}: {len(b)} bytes' for p, b in self._items.items())}}}{gone})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Files, (dict(self._items), tuple(sorted(self.removed))))

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of each file's content, by path."""
        return {path: hashlib.sha256(data).hexdigest() for path, data in self._items.items()}

    def over(self, other: Mapping[str, bytes]) -> Files:
        """These files laid over ``other``: a path in both comes from self, one that self takes away is gone."""
        if not self and not self.removed and isinstance(other, Files):
            return other
        kept = {p: b for p, b in other.items() if p not in self.removed} if self.removed else other
        return Files({**kept, **self._items})


@dataclass(frozen=True, slots=True)
class Limits:
    """A cap on everything that a player controls. Times in seconds, sizes in bytes; ``chars`` counts code points."""

    steps: int = 12
    tokens: int = 200_000
    """Tokens of all actions and observations together, estimated as one for four characters."""
    episode_s: float = 900.0
    run_s: float = 10.0
    """Wall-clock of one ``run_tests``."""
    load_s: float = 10.0
    """Wall-clock for importing the solution, once a grading."""
    test_s: float = 5.0
    """Wall-clock of one hidden test, measured outside the solution's process."""
    grade_s: float = 120.0
    """Wall-clock of one whole grading."""
    cpu_s: float = 60.0
    memory_bytes: int = 1 << 30
    processes: int = 64
    open_files: int = 256
    file_bytes: int = 16 << 20
    disk_bytes: int = 64 << 20
    disk_files: int = 4096
    output_bytes: int = 256 << 10
    """What is kept of one stream of one run; the rest is read and dropped."""
    message_bytes: int = 16 << 20
    """One message between the solution's cell and the examiner."""
    observation_chars: int = 8000


@dataclass(frozen=True, slots=True)
class Test:
    """One check. For ``calls`` it is ``code``; for ``stdio`` it is what goes in and what must come out; for ``pytest``
    it is its ``id`` alone, a node id (``tests/test_core.py::test_mean[1-2]``).

    ``code`` is Python, executed in the examiner with the task's entry names bound to the solution's; it passes if
    it raises nothing. ``match`` says how stdout is compared: ``exact`` bytes, ``lines`` (trailing white space and
    final newlines ignored), ``tokens`` (split at white space), ``numbers`` (tokens, numbers within ``tolerance``).
    ``exit_code`` None accepts only 0.
    """

    __test__ = False

    id: str
    code: str = ""
    stdin: str = ""
    stdout: str = ""
    args: tuple[str, ...] = ()
    exit_code: int | None = None
    match: str = "lines"
    tolerance: float = 0.0
    time_s: float | None = None
    """Wall-clock for this test alone; None: ``Limits.test_s``."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """Everything you'll want later: where a task is from and when, how hard, under which licence, built on what."""

    source: str = ""
    created: str = ""
    """ISO date or a prefix of one: 2026, 2026-10, 2026-10-31."""
    difficulty: str | float | None = None
    license: str = ""
    tags: tuple[str, ...] = ()
    image: str = ""
    """Digest of the container image that the task needs, or ""."""
    python: str = ""
    """Version of the interpreter that the task needs, or ""."""
    packages: tuple[str, ...] = ()
    """Pinned requirements that the task's code and tests need, beyond the standard library."""
    extra: tuple[tuple[str, str], ...] = ()


_DESCRIPTIVE = frozenset({"source", "created", "difficulty", "license", "tags", "extra"})
_OF_SUITES = frozenset({"suite", "pass_to_pass", "way", "pythonpath", "plugins"})
_REMOVED = "/removed"
"""No path begins like this."""
_LATER = _OF_SUITES | {"shell", "clock"}


@dataclass(frozen=True)
class Task:
    """What one episode is about.

    ``start`` is what the player finds; ``protected`` are the start files that it can't write. ``visible`` tests can
    be run by the player, ``hidden`` ones decide the reward and exist only in the examiner. ``reference`` is laid over
    ``start`` to solve the task. ``entry`` are the names that tests use: they are looked up in ``main`` (a path), and
    are bound in the examiner. ``prelude`` is trusted Python that runs in the examiner before each test (helpers,
    oracles). Raises :class:`TaskError` with every problem if something is malformed.

    With ``grading`` "pytest" the tests are files: ``suite`` are the trusted ones, laid over ``start`` where they run
    and never seen by the player. ``hidden`` are the node ids that count; () means all that are collected, and a
    referee finds them out with the reference. Those of ``pass_to_pass`` pass at the start too. ``way`` says how the
    tests are run ("": a referee finds that out), ``pythonpath`` from which folders the package is imported ((): the
    workspace, and ``src`` if it holds a package), ``plugins`` which installed pytest plugins the suite needs.

    ``clock``: an instant in UTC (``2026-01-31T12:00:00``) at which the clock stands for the code and its tests; "": it goes.

    ``shell``: the player has the tool ``bash``. What commands print (times, sizes of folders) is in its observations,
    so two episodes with the same actions can differ there.
    """

    id: str
    prompt: str
    start: Files
    hidden: tuple[Test, ...]
    reference: Files
    visible: tuple[Test, ...] = ()
    protected: frozenset[str] = frozenset()
    entry: tuple[str, ...] = ()
    main: str = MAIN
    prelude: str = ""
    grading: Grading = "calls"
    reward: RewardRule = "fraction"
    limits: Limits = field(default_factory=Limits)
    metadata: Metadata = field(default_factory=Metadata)
    suite: Files = field(default_factory=Files)
    pass_to_pass: tuple[str, ...] = ()
    way: SuiteWay = ""
    pythonpath: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    shell: bool = False
    clock: str = ""

    def __post_init__(self) -> None:
        problems = list(_problems(self))
        if problems:
            raise TaskError(problems)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over everything that can change a reward, as 64 hex digits."""
        return hashlib.sha256(json.dumps(_canonical(self), sort_keys=True).encode()).hexdigest()

    @property
    def fail_to_pass(self) -> tuple[str, ...]:
        """Ids of the hidden tests that a solution must make pass: all but ``pass_to_pass``."""
        kept = set(self.pass_to_pass)
        return tuple(test.id for test in self.hidden if test.id not in kept)

    @property
    def modules(self) -> tuple[str, ...]:
        """Dotted names of the Python modules that the trusted files (start and reference) make importable."""
        names: set[str] = set()
        for path in {*self.start, *self.reference}:
            if path.endswith(".py"):
                parts = path[:-3].split("/")
                if parts[-1] == "__init__":
                    parts.pop()
                if parts and all(p.isidentifier() for p in parts):
                    names.update(".".join(parts[:n]) for n in range(1, len(parts) + 1))
        return tuple(sorted(names))

    def __getitem__(self, key: str) -> Any:
        """``task["id"]``: the fields by name, as the plain dict of the lesson has them."""
        if key == "meta":
            key = "metadata"
        if key not in {f.name for f in fields(self)}:
            raise KeyError(key)
        return getattr(self, key)


def _canonical(task: Task) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for f in fields(task):
        value = getattr(task, f.name)
        if f.name in _LATER and not value:
            continue  # what a task does not use leaves its digest as it was before there was such a field
        if isinstance(value, Files):
            value = value.digests | ({_REMOVED: sorted(value.removed)} if value.removed else {})
        elif isinstance(value, frozenset):
            value = sorted(value)
        elif isinstance(value, Limits):
            value = {x.name: getattr(value, x.name) for x in fields(value)}
        elif isinstance(value, Metadata):
            value = {x.name: getattr(value, x.name) for x in fields(value) if x.name not in _DESCRIPTIVE}
        elif f.name in ("visible", "hidden"):
            value = [{x.name: getattr(t, x.name) for x in fields(t)} for t in value]
        out[f.name] = value
    return out


def _problems(task: Task) -> Iterator[Problem]:
    where = f"task {task.id!r}" if isinstance(task.id, str) and task.id else "a task without an id"

    def bad(name: str, found: str, expected: str) -> Problem:
        return Problem(where, name, found, expected)

    # ids stand in tables, in lists of one id a line and in addresses: white space at an end would get lost there
    if not isinstance(task.id, str) or not task.id.isprintable() or task.id.strip() != task.id or not task.id:
        yield bad("id", repr(task.id), "a non-empty text of one line, printable, without spaces at its ends")
    if not isinstance(task.prompt, str) or not task.prompt.strip():
        yield bad("prompt", "nothing", "what the player is asked to do")
    if task.grading not in GRADINGS:
        yield bad("grading", repr(task.grading), f"one of {', '.join(GRADINGS)}")
    if task.reward not in REWARD_RULES:
        yield bad("reward", repr(task.reward), f"one of {', '.join(REWARD_RULES)}")
    if not task.hidden and not (task.grading == "pytest" and task.suite):
        yield bad("hidden", "no hidden test", "at least one, for nothing else decides the reward")
    yield from _suite_problems(task, bad)
    if not task.reference and not task.reference.removed:
        yield bad("reference", "no reference file", "at least one file that solves the task")
    for name in ("start", "reference", "suite"):
        paths = set(getattr(task, name))
        for path in sorted(paths):
            if (what := path_problem(path)) is not None:
                yield bad(name, f"{what} ({path!r})", "a relative path like 'solution.py' or 'pkg/core.py'")
            parents = {path.rsplit("/", n)[0] for n in range(1, path.count("/") + 1)}
            if parents & paths:
                yield bad(name, f"{sorted(parents & paths)[0]!r} as a file and as a folder", "one of the two")
    for path in sorted(task.protected - set(task.start)):
        yield bad("protected", f"{path!r}, which is not a start file", "paths of start files")
    for path in sorted(task.protected & set(task.reference)):
        if task.reference[path] != task.start.get(path):
            yield bad("reference", f"{path!r}, which is protected", "a reference that a player could hand in")
    if task.clock and (why := instant_problem(task.clock)) is not None:
        yield bad("clock", why, "an instant in UTC like '2026-01-31T12:00:00'")
    known = {*task.start, *task.reference}
    if task.grading != "pytest" and (path_problem(task.main) is not None or task.main not in known):
        yield bad("main", repr(task.main), "the path of a start or reference file")
    for name in task.entry:
        if not name.isidentifier():
            yield bad("entry", repr(name), "Python identifiers")
    for kind in ("visible", "hidden"):
        seen: set[str] = set()
        for n, test in enumerate(getattr(task, kind)):
            at = f"{kind}[{n}]"
            if test.id in seen:
                yield bad(f"{at}.id", f"{test.id!r} twice", "ids that differ")
            seen.add(test.id)
            if task.grading == "calls" and not test.code.strip():
                yield bad(f"{at}.code", "no code", "Python that raises if the solution is wrong")
            if task.grading == "calls" and (why := _no_python(test.code, at)) is not None:
                yield bad(f"{at}.code", f"code that does not compile ({why})", "Python")
            if task.grading == "stdio" and test.match not in MATCHES:
                yield bad(f"{at}.match", repr(test.match), f"one of {', '.join(MATCHES)}")
            if test.time_s is not None and not 0 < test.time_s < float("inf"):
                yield bad(f"{at}.time_s", repr(test.time_s), "a finite number of seconds above 0")
    if task.prelude and (why := _no_python(task.prelude, "prelude")) is not None:
        yield bad("prelude", f"code that does not compile ({why})", "Python")
    for name, text in _texts(task):
        if not _is_unicode(text):
            yield bad(name, "text with lone surrogates", "valid Unicode text")
    for f in fields(task.limits):
        value = getattr(task.limits, f.name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
            yield bad(f"limits.{f.name}", repr(value), "a finite number above 0")


def _suite_problems(task: Task, bad: Callable[[str, str, str], Problem]) -> Iterator[Problem]:
    """What is wrong with the fields of ``pytest`` grading."""
    for name in sorted(_OF_SUITES):
        if getattr(task, name) and task.grading != "pytest":
            yield bad(name, "something", f"nothing, for grading is {task.grading!r} and not 'pytest'")
    if task.grading != "pytest":
        return
    if task.way not in ("", *SUITE_WAYS):
        yield bad("way", repr(task.way), f"one of {', '.join(SUITE_WAYS)}, or nothing, to find it out")
    if task.prelude or task.entry:
        yield bad(
            "prelude" if task.prelude else "entry", "something", "nothing: pytest files import what they use"
        )
    for path in sorted(set(task.suite) & set(task.reference)):
        yield bad(
            "reference", f"{path!r}, which is also a file of the suite", "a reference that changes no test"
        )
    for kind, files in (("hidden", {*task.start, *task.suite}), ("visible", {*task.start})):
        for test in getattr(task, kind):
            if test.id.partition("::")[0] not in files:
                expected = (
                    "a node id whose file is part of the suite or the start"
                    if kind == "hidden"
                    else ("a start file, or a node id in one: visible tests lie in the workspace")
                )
                yield bad(f"{kind}", f"{test.id!r}", expected)
    for test_id in sorted(set(task.pass_to_pass) - {test.id for test in task.hidden}):
        yield bad("pass_to_pass", f"{test_id!r}, which is no hidden test", "ids of hidden tests")
    for path in task.pythonpath:
        if path != "." and path_problem(path) is not None:
            yield bad("pythonpath", repr(path), "folders of the workspace, like 'src', or '.'")
    for plugin in task.plugins:
        if not all(part.isidentifier() for part in plugin.split(".")):
            yield bad("plugins", repr(plugin), "names of modules that can be imported, like 'pytest_mock'")


def _no_python(code: str, name: str) -> str | None:
    """Why ``code`` does not compile, or None."""
    try:
        compile(code, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return str(error)
    except (
        RecursionError,
        MemoryError,
        OverflowError,
    ):  # what the compiler says of code that is nested too deep
        return "it is nested too deep"
    return None


def _texts(task: Task) -> Iterator[tuple[str, str]]:
    """The texts that end up in observations, records and JSON; that of tests and files is checked on its own."""
    yield "prompt", task.prompt
    about = task.metadata
    for name in ("source", "license", "image", "python"):
        yield name, getattr(about, name)
    yield "difficulty", str(about.difficulty)
    for name in ("tags", "packages"):
        yield name, "".join(map(str, getattr(about, name)))
    yield "meta", "".join(str(part) for pair in about.extra for part in pair)
    for kind in ("visible", "hidden"):
        for n, test in enumerate(getattr(task, kind)):
            yield f"{kind}[{n}]", "".join(map(str, (test.id, test.stdin, test.stdout, *test.args)))


def _is_unicode(text: object) -> bool:
    try:
        str(text).encode()
    except UnicodeEncodeError:
        return False
    return True
