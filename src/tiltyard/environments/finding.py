"""The environment of a repository, from its files alone, as of a date.

What it declares for itself and its tests and what they import is resolved to pins by uv, with the packages that there
were then. A Python has packages made for it only some time after it was out, so no date before that is taken; dates
are rounded down to half years, so that one environment serves many commits. Where that can't be resolved (or does
not work, if somebody can tell), bounds are given up step by step, and notes say which. The repository itself, and
what only writes documentation or looks at style, is never among the packages.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from tiltyard.environments.building import home
from tiltyard.environments.declared import Declared, read_declared, requirement
from tiltyard.environments.imports import read_imports
from tiltyard.environments.interpreters import OLDEST, python_for, pythons
from tiltyard.environments.model import RUNNING, BuildError, Environment, Found, normal
from tiltyard.environments.names import NOT_FOR_TESTS
from tiltyard.environments.uv import run_uv
from tiltyard.errors import UsageError

RESOLVE_S = 300.0
_VERSION = 1
"""Of how requirements are resolved: to be raised when the same ones give other pins."""
_READY = {
    "3.9": "2021-04-01",
    "3.10": "2022-04-01",
    "3.11": "2023-04-01",
    "3.12": "2024-04-01",
    "3.13": "2025-04-01",
    "3.14": "2026-04-01",
}
"""From when on most packages had a release that works on a version of Python: half a year after it was out."""
_OLDEST_PYTEST = {"3.9": "pytest>=4.6", "3.10": "pytest>=6.2.5"}
"""What works on a version of Python, by the sessions in cells; from 3.11 on it is 7.0."""
_TRIES = 8
_RUNNING_FULL = ".".join(str(part) for part in sys.version_info[:3])

Check = Callable[[Environment], str]
"""Says why an environment is no good ("": it is)."""


@dataclass(frozen=True)
class Wanted:
    """What is to be resolved. ``guessed``: requirements that only imports told of, which an index may not know.
    ``date``: "" for the newest."""

    python: str
    requirements: tuple[str, ...]
    guessed: tuple[str, ...] = ()
    date: str = ""
    exact: str = ""
    notes: tuple[str, ...] = ()
    name: str = ""


def find(
    files: Mapping[str, bytes],
    *,
    date: str = "",
    python: str = "",
    extra: Sequence[str] = (),
    check: Check | None = None,
) -> Found:
    """The environment of the repository with these files.

    ``date`` (ISO, a time may follow): packages as of then; "" the newest. ``python``: a version like "3.11"; "" one that
    the repository allows, this one if it does. ``extra``: more requirements, which are never given up ("pytest<8").
    ``check`` is asked of each environment that is tried, the best first; what it says goes into the reason. Nothing
    of the repository is run, nothing is installed (but what ``check`` builds); uv asks the package index.
    Raises UsageError for a date or requirement that is none, and BuildError for what is no fault of the repository's
    (no uv, no network).
    """
    try:
        wanted = wanted_of(files, date=date, python=python, extra=extra)
    except BuildError as error:
        if error.kind in ("uv", "network"):
            raise
        return Found(None, str(error))
    reasons: list[str] = []
    seen: set[str] = set()
    for attempt in _attempts(wanted, tuple(extra), check is not None):
        try:
            environment, notes = resolve(attempt)
        except BuildError as error:
            if error.kind in ("uv", "network"):
                raise
            reasons.append(str(error))
            continue
        if environment.digest in seen:
            continue
        seen.add(environment.digest)
        why = check(environment) if check is not None else ""
        if not why:
            return Found(environment, "", (*attempt.notes, *notes, *_itself(wanted.name, environment)))
        reasons.append(why)
    return Found(None, reasons[0] if reasons else "nothing to resolve", tuple(reasons[1:]))


def wanted_of(
    files: Mapping[str, bytes], *, date: str = "", python: str = "", extra: Sequence[str] = ()
) -> Wanted:
    """What the repository needs, before it is resolved. BuildError (``python``): none here that it allows."""
    for text in extra:
        if requirement(text) is None:
            raise UsageError(f"found {text!r} among the extra requirements; expected one like 'pytest<8'")
    day = _day(date)
    said = read_declared(files)
    version = _python(said, python)
    requirements, guessed = _requirements(said, files, version)
    return Wanted(
        version,
        (*requirements, *extra),
        guessed,
        _era(day, version),
        _not_before(day, version),
        tuple(said.notes),
        said.name,
    )


def _itself(name: str, environment: Environment) -> tuple[str, ...]:
    """A note where the repository is one that its own tests' tools need."""
    if not name or normal(name) not in environment.pins:
        return ()
    return (
        f"{environment.pins[normal(name)]} is installed as well, for others need it: what pytest has loaded of it "
        "by itself is that, and not the repository",
    )


def _requirements(
    said: Declared, files: Mapping[str, bytes], version: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is declared and of use, and what only imports tell of."""
    found = read_imports(files)
    imported = {normal(name) for name in found.anywhere | found.package}
    out: dict[str, str] = {}
    names: set[str] = set()
    for text in said.wanted():
        one = requirement(text)
        if one is None:
            continue
        name = normal(one.name)
        if NOT_FOR_TESTS.fullmatch(name) and name not in imported:
            continue
        if one.marker is not None and not one.marker.evaluate(
            {"python_version": version, "python_full_version": f"{version}.0", "extra": ""}
        ):
            continue
        names.add(name)
        out[text] = text
    own = {normal(said.name)} if said.name else set()
    guessed = {normal(name): name for name in sorted(found.package | found.tests)}
    more = [name for key, name in guessed.items() if key not in names | own | {"pytest"}]
    return (*out, _oldest_pytest(version)), tuple(more)


def _oldest_pytest(version: str) -> str:
    return _OLDEST_PYTEST.get(version, "pytest>=7.0")


def _python(said: Declared, python: str) -> str:
    """The version to use: what was asked for, or one of this machine that the repository allows."""
    if python:
        version = Environment(python).version
        python_for(version)
        return version
    try:
        allowed = SpecifierSet(said.requires_python)
    except InvalidSpecifier:
        said.notes.append(f"no bound on Python: {said.requires_python[:80]!r}")
        return RUNNING
    if _RUNNING_FULL in allowed:
        return RUNNING
    here = {p.minor: ".".join(map(str, p.version)) for p in pythons()}
    fits = [minor for minor, full in here.items() if full in allowed]
    if not fits:
        raise BuildError(
            "python",
            f"needs Python {said.requires_python}; cells need {'.'.join(map(str, OLDEST))} or newer, and found here: "
            f"{', '.join(here) or 'none'}",
        )
    own = int(RUNNING.partition(".")[2])
    return min(fits, key=lambda minor: abs(int(minor.partition(".")[2]) - own))


# -- dates ---------------------------------------------------------------------------------------------------------


def _day(date: str) -> str:
    if not date:
        return ""
    try:
        return datetime.date.fromisoformat(date[:10]).isoformat()
    except ValueError:
        raise UsageError(f"found {date!r} as a date; expected one like 2019-02-09") from None


def _not_before(day: str, version: str) -> str:
    return max(day, _READY.get(version, "")) if day else ""


def _era(day: str, version: str) -> str:
    """The start of the half year, and not before there were packages for this Python."""
    if not day:
        return ""
    return _not_before(f"{day[:4]}-01-01" if day[5:7] < "07" else f"{day[:4]}-07-01", version)


# -- resolving -----------------------------------------------------------------------------------------------------


def _attempts(wanted: Wanted, extra: tuple[str, ...], checked: bool) -> Iterator[Wanted]:
    """What to try, the best first: as of the half year, as of the day, without bounds, the newest of all."""
    yield wanted
    if wanted.exact != wanted.date:
        yield replace(
            wanted,
            date=wanted.exact,
            notes=(*wanted.notes, f"as of {wanted.exact}, for the half year did not do"),
        )
    if checked:
        yield replace(
            wanted, requirements=(*wanted.requirements, "pytest<8"), notes=(*wanted.notes, "with pytest<8")
        )
    oldest = _oldest_pytest(wanted.python)
    loose = (
        *dict.fromkeys(
            _name_of(text) for text in wanted.requirements if text not in extra and text != oldest
        ),
        oldest,
        *extra,
    )
    note = "without the bounds on versions that the repository declares"
    if {*loose} != {*wanted.requirements}:
        yield replace(wanted, requirements=loose, notes=(*wanted.notes, note))
    if wanted.date:
        yield replace(
            wanted, requirements=loose, date="", notes=(*wanted.notes, note, "with the newest packages")
        )
        if checked:
            yield replace(
                wanted,
                requirements=(*loose, "pytest<8"),
                date="",
                notes=(*wanted.notes, note, "with the newest packages and pytest<8"),
            )


def _name_of(text: str) -> str:
    found = requirement(text)
    assert found is not None
    return found.name + (f"[{','.join(sorted(found.extras))}]" if found.extras else "")


_known: dict[str, tuple[tuple[str, ...], tuple[str, ...]] | BuildError] = {}
_lock = threading.Lock()


def _in_child() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_in_child)


def resolve(wanted: Wanted) -> tuple[Environment, tuple[str, ...]]:
    """The environment with these requirements, and what had to be left out. Remembered in this process, and for a date
    in the cache. BuildError: there is none."""
    said = [_VERSION, wanted.python, sorted({*wanted.requirements}), sorted(wanted.guessed), wanted.date]
    key = hashlib.sha256(json.dumps(said).encode()).hexdigest()
    file = home() / "resolved" / f"{key}.json"
    with _lock:
        found = _known.get(key)
    if found is None:
        found = (_read(file) if wanted.date else None) or _resolve(wanted)
        with _lock:
            _known[key] = found
        if wanted.date:
            _write(file, found)
    if isinstance(found, BuildError):
        raise BuildError(found.kind, str(found))
    pins, notes = found
    return Environment(wanted.python, pins), notes


def _resolve(wanted: Wanted) -> tuple[tuple[str, ...], tuple[str, ...]] | BuildError:
    """Pins and notes. A guess that the index does not know is dropped; wheels are wanted, and sources are second best."""
    guessed, notes, wheels = list(wanted.guessed), list[str](), True
    failure: BuildError | None = None
    for _ in range(_TRIES):
        try:
            return _compile(wanted, [*wanted.requirements, *guessed], wheels), tuple(notes)
        except BuildError as error:
            if error.kind in ("uv", "network"):
                raise
            failure = failure or error
            named = [
                name
                for name in guessed
                if re.search(rf"(?<![\w-]){re.escape(normal(name))}(?![\w-])", str(error).lower())
            ]
            if wheels and not named:
                wheels = False
                notes.append("not everything has a wheel")
            elif named or guessed:
                dropped = named or guessed
                guessed = [name for name in guessed if name not in dropped]
                notes.append(f"imported, and left out for it can't be had: {', '.join(dropped)}")
            else:
                return error
    assert failure is not None
    return failure


def _compile(wanted: Wanted, requirements: Iterable[str], wheels: bool) -> tuple[str, ...]:
    args = ["pip", "compile", "--quiet", "--no-header", "--no-annotate", "--strip-extras"]
    args += ["--python-version", wanted.python]
    args += ["--exclude-newer", f"{wanted.date}T00:00:00Z"] if wanted.date else []
    args += ["--only-binary", ":all:"] if wheels else []
    out = run_uv([*args, "-"], timeout_s=RESOLVE_S, stdin="".join(f"{text}\n" for text in requirements))
    pins = [line.strip() for line in out.splitlines()]
    return tuple(sorted(line for line in pins if line and not line.startswith(("#", "-"))))


def _read(file: Path) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    try:
        pins, notes = json.loads(file.read_bytes())
        return tuple(map(str, pins)), tuple(map(str, notes))
    except (OSError, ValueError, TypeError):
        return None


def _write(file: Path, found: tuple[tuple[str, ...], tuple[str, ...]] | BuildError) -> None:
    """Failures are not kept on the disk: an index may be asked again tomorrow."""
    if isinstance(found, BuildError):
        return
    partial = file.with_name(f".{file.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(found), encoding="utf-8")
        partial.rename(file)
    except OSError:
        partial.unlink(missing_ok=True)  # it is asked again next time
