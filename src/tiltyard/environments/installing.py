"""What goes into a virtual environment: pinned packages from wheels, and nothing that runs by itself.

pytest and what it needs are put in first and looked at again at the end: fork servers load them outside every cell, so they
must be what their own distributions brought. Nothing of another package is executed here, unless it is built from
source.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tiltyard.environments.interpreters import Python
from tiltyard.environments.model import BuildError, Environment, normal
from tiltyard.environments.uv import run_uv

BUILD_S = 1800.0
PYTEST = frozenset(
    "pytest pluggy iniconfig packaging attrs py tomli toml exceptiongroup typing-extensions more-itertools wcwidth six "
    "atomicwrites importlib-metadata zipp pathlib2 funcsigs pygments colorama pyparsing".split()
)
"""pytest, and what its versions need."""
_STARTED_BY_ITSELF = ("sitecustomize.py", "usercustomize.py", "sitecustomize", "usercustomize")

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Installed:
    """``notes``: what is worth saying. ``trusted``: top-level names of pytest and what it needs; () if it is not there, or
    another package put files among theirs."""

    notes: tuple[str, ...] = ()
    trusted: tuple[str, ...] = ()


def install(
    venv: Path, environment: Environment, python: Python, progress: Progress, builds: bool, lock: int
) -> Installed:
    """Install the pins and nothing else into an empty environment. ``lock`` is a descriptor that children keep.
    BuildError: they can't be had."""
    job = _Job(venv, environment, progress, builds, lock)
    job.add(text for name, text in _by_name(environment) if name in PYTEST)
    before = _contents(venv)
    top = sorted({path.partition("/")[0].removesuffix(".py") for path in before})
    job.add(text for name, text in _by_name(environment) if name not in PYTEST)
    notes = [*job.notes, *_quieten(venv)]
    after = {
        path: sha for path, sha in _contents(venv).items() if path.partition("/")[0].partition(".")[0] in top
    }
    trusted = top if "pytest" in top else []
    if trusted and after != before:
        odd = sorted(path for path in {*after, *before} if after.get(path) != before.get(path))
        notes.append(
            f"another package put files among those of pytest, which fork servers will not load: {odd[0]}"
        )
        trusted = []
    _compile(venv, python, lock)
    return Installed(tuple(notes), tuple(trusted))


def _by_name(environment: Environment) -> list[tuple[str, str]]:
    return [
        (name, text) for text in environment.packages for name in [normal(re.split(r"[\s\[=;]", text)[0])]
    ]


def _contents(venv: Path) -> dict[str, str]:
    """Importable files of the installed packages, with their digests."""
    found: dict[str, str] = {}
    for folder in venv.glob("lib/python3*/site-packages"):
        for path in folder.rglob("*"):
            name = path.relative_to(folder).as_posix()
            top = name.partition("/")[0]
            if (
                path.is_file()
                and not top.endswith((".dist-info", ".pth"))
                and top not in ("_virtualenv.py", "__pycache__")
            ):
                found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


@dataclass
class _Job:
    venv: Path
    environment: Environment
    progress: Progress
    builds: bool
    lock: int

    def __post_init__(self) -> None:
        self.notes: list[str] = []

    def add(self, packages: Iterable[str]) -> None:
        """Install these; what has no wheel, from source."""
        texts, pins = list(packages), self.environment.pins
        if not texts:
            return
        wanted = self.venv / "requirements.txt"
        wanted.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        args = ["pip", "install", "--quiet", "--no-deps", "--python", str(self.venv / "bin" / "python")]
        args += ["--require-hashes"] if self.environment.locked else []
        from_source: list[str] = []
        while True:
            only = [
                "--only-binary",
                ":all:",
                *(word for name in from_source for word in ("--no-binary", name)),
            ]
            try:
                run_uv([*args, *only, "-r", str(wanted)], timeout_s=BUILD_S, keep=[self.lock])
                break
            except BuildError as error:
                more = [name for name in without_wheel(str(error), pins) if name not in from_source]
                if not more or not self.builds:
                    raise BuildError(error.kind, f"{self.environment} can't be installed: {error}") from None
                named = ", ".join(pins[name] for name in more)
                self.progress(f"no wheel of {named}: building from source, with your rights")
                from_source += more
        wanted.unlink()
        self.notes += [f"built from source: {pins[name]}" for name in from_source]


def without_wheel(said: str, pins: dict[str, str]) -> list[str]:
    """Of these pins, those that uv finds no wheel of, by its words."""
    named = re.findall(
        r"(?:because |and |that |, )?`?([A-Za-z0-9][A-Za-z0-9._-]*)(?:==[^\s`,]+)?`? has no (?:usable )?(?:wheels|binary distribution)|"
        r"no (?:usable )?(?:wheels|binary distribution)\S* (?:for|of) `?([A-Za-z0-9][A-Za-z0-9._-]*)|"
        r"[Bb]uilding source distributions for `?([A-Za-z0-9][A-Za-z0-9._-]*)`? is disabled",
        said,
    )
    names = [normal(next(part for part in parts if part)) for parts in named]
    return [name for name in dict.fromkeys(names) if name in pins]


def _quieten(venv: Path) -> list[str]:
    """Take out what runs by itself when an interpreter starts: that would be outside every cell, in the fork server."""
    notes: list[str] = []
    for folder in venv.glob("lib/python3*/site-packages"):
        for path in sorted(folder.glob("*.pth")):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            kept = [line for line in lines if not line.startswith(("import ", "import\t"))]
            if kept == lines:
                continue
            if path.name != "_virtualenv.pth":  # uv's own
                notes.append(f"does not run when the interpreter starts: {path.name}")
            path.unlink()
            if kept:
                path.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
        for name in _STARTED_BY_ITSELF:
            found = folder / name
            if found.exists():
                notes.append(f"was left out, for it runs when an interpreter starts: {name}")
                shutil.rmtree(found) if found.is_dir() else found.unlink()
        for compiled in folder.glob("__pycache__/*customize.*.pyc"):
            compiled.unlink()
    return notes


def _compile(venv: Path, python: Python, lock: int) -> None:
    """Bytecode, made once and not in each cell. By the base interpreter, which starts nothing of the packages; what does
    not compile (templates, Python 2) is left as it is."""
    for folder in venv.glob("lib/python3*/site-packages"):
        command = [python.path, "-I", "-S", "-m", "compileall", "-q", "-q", str(folder)]
        try:
            subprocess.run(
                command, capture_output=True, timeout=BUILD_S, check=False, cwd="/", env={}, pass_fds=[lock]
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise BuildError("other", f"{python.path} can't compile an environment: {error}") from None
