"""Files that a build makes and a repository's history lacks: the package's version, and its metadata.

A repository that is never installed still asks for both: ``from ._version import version`` (setuptools_scm, hatch-vcs,
pdm), ``importlib.metadata.version("name")``, entry points of its own. What is made here lies among the files of the
workspace, where the package is imported from; it names no machine and no time, and the same input gives the same bytes.
"""

from __future__ import annotations

import ast
import contextlib
import posixpath
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from tiltyard.environments.declared import Declared, read_declared
from tiltyard.environments.setup_py import parse_quietly, setup_words
from tiltyard.parsing import alone
from tiltyard.task import Files, path_problem

UNKNOWN = "0.0.0"
_MODULES = frozenset(
    "_version version _scm_version _generated_version _version_generated __version__ _version_info _commit".split()
)
"""Names of modules that builds make, and that a package imports though its history does not have them."""
_ORDINARY = frozenset("version __version__ version_tuple __version_tuple__ commit_id __commit_id__".split())


def generated_files(files: Mapping[str, bytes], version: str = "") -> Files:
    """What building the package would add to these files and running its tests from there needs: a version module
    where one is configured or imported and is not there, and ``NAME-VERSION.dist-info`` beside the package, with its
    entry points. ``version`` "": the one that the files declare, else ``UNKNOWN``. Paths in ``files`` are never
    among what is returned."""
    said = read_declared(files)
    number = _clean(version) or version_of(files, said) or UNKNOWN
    out: dict[str, bytes] = {}
    for path, names in {**dict(_imported(files)), **{p: set() for p in _configured(files)}}.items():
        if path not in files and path_problem(path) is None:
            out[path] = _module(number, names) if path.endswith(".py") else f"{number}\n".encode()
    name = said.name.strip()
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        folder = f"{re.sub(r'[-_.]+', '_', name)}-{number}.dist-info"
        home = _import_root(files, name)
        folder = f"{home}/{folder}" if home else folder
        if not any(path.partition(".dist-info/")[0] == folder.removesuffix(".dist-info") for path in files):
            out[f"{folder}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n".encode()
            if said.entry_points:
                out[f"{folder}/entry_points.txt"] = _entry_points(said)
    return Files(out)


def version_of(files: Mapping[str, bytes], said: Declared | None = None) -> str:
    """The version that the files declare: in their configuration, or as ``__version__`` of the package; "" if none."""
    said = said or read_declared(files)
    if number := _clean(said.version):
        return number
    roots = [
        path for path in files if path.endswith((".py",)) and path.count("/") <= 2 and not _is_test(path)
    ]
    named = said.name.replace("-", "_").lower()
    for path in sorted(
        roots, key=lambda p: (named not in p.lower(), not p.endswith("__init__.py"), p.count("/"), p)
    ):
        match = re.search(
            rb"^__version__\s*(?::\s*[\w\[\]\.]+\s*)?=\s*['\"]([^'\"\n]+)['\"]", files[path][: 1 << 18], re.M
        )
        if match and (number := _clean(match[1].decode("utf-8", "replace"))):
            return number
    return ""


def _is_test(path: str) -> bool:
    return bool({"test", "tests", "docs"} & {*path.split("/")})


def _clean(version: str) -> str:
    """A version that may stand in a path and in metadata."""
    text = version.strip().removeprefix("v")
    return text if re.fullmatch(r"[0-9][A-Za-z0-9.!+_-]{0,60}", text) else ""


def _configured(files: Mapping[str, bytes]) -> Iterator[str]:
    """Files that the build is configured to write the version to."""
    data: dict[str, Any] = {}
    with contextlib.suppress(tomllib.TOMLDecodeError, KeyError, UnicodeDecodeError):
        data = tomllib.loads(files["pyproject.toml"].decode())
    for where in (
        ("tool", "setuptools_scm", "write_to"),
        ("tool", "setuptools_scm", "version_file"),
        ("tool", "hatch", "build", "hooks", "vcs", "version-file"),
        ("tool", "hatch", "build", "hooks", "vcs", "_path"),
        ("tool", "pdm", "version", "write_to"),
        ("tool", "setuptools-git-versioning", "version_file"),
    ):
        found: Any = data
        for key in where:
            found = found.get(key) if isinstance(found, dict) else None
        if isinstance(found, str):
            yield posixpath.normpath(found)
            if where[1] == "pdm":  # relative to where packages lie
                yield (
                    posixpath.normpath(f"src/{found}")
                    if any(p.startswith("src/") for p in files)
                    else posixpath.normpath(found)
                )
    if "setup.py" in files:
        scm = setup_words(files["setup.py"].decode("utf-8", "replace")).get("use_scm_version")
        for key in ("write_to", "version_file"):
            if isinstance(scm, dict) and isinstance(scm.get(key), str):
                yield posixpath.normpath(scm[key])


def _imported(files: Mapping[str, bytes]) -> Iterator[tuple[str, set[str]]]:
    """Version modules that the package imports from itself and that are not there, with the names that are taken."""
    wanted: dict[str, set[str]] = {}
    for path, data in files.items():
        if not path.endswith(".py") or b"version" not in data or len(data) > 1 << 20 or _is_test(path):
            continue
        try:
            tree = alone(parse_quietly, data)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                for target, names in _targets(path, node, files):
                    wanted.setdefault(target, set()).update(names)
    yield from wanted.items()


def _targets(path: str, node: ast.ImportFrom, files: Mapping[str, bytes]) -> Iterator[tuple[str, set[str]]]:
    names = {alias.name for alias in node.names if alias.name != "*"}
    parts = (node.module or "").split(".") if node.module else []
    if node.level:
        folder = path.split("/")[: -node.level]
        bases = ["/".join(folder)]
    elif parts:
        bases = [root for root in ("", "src", "lib") if f"{root}/{parts[0]}/__init__.py".lstrip("/") in files]
    else:
        return
    for base in bases:
        at = "/".join(part for part in (base, *parts) if part)
        if parts and parts[-1] in _MODULES and not _is_there(at, files):
            yield f"{at}.py", names
        elif not parts or f"{at}/__init__.py" in files:
            # ``from . import _version``
            for name in names & {"_version", "_scm_version", "_generated_version"}:
                if not _is_there(f"{at}/{name}", files) and not _defines(f"{at}/__init__.py", name, files):
                    yield f"{at}/{name}.py", set()


def _is_there(module: str, files: Mapping[str, bytes]) -> bool:
    return any(f"{module}{end}" in files for end in (".py", "/__init__.py", ".pyx", ".pyi"))


def _defines(path: str, name: str, files: Mapping[str, bytes]) -> bool:
    return (
        re.search(rf"^(?:def\s+)?{re.escape(name)}\s*[(=]".encode(), files.get(path, b""), re.M) is not None
    )


def _module(version: str, names: set[str]) -> bytes:
    """A version module with the names that tools write, and those that are asked for."""
    numbers = tuple(int(part) if part.isdigit() else part for part in re.split(r"[.+!_-]", version) if part)
    lines = [
        f"__version__ = version = {version!r}",
        f"__version_tuple__ = version_tuple = {numbers!r}",
        "__commit_id__ = commit_id = None",
    ]
    for name in sorted(names - _ORDINARY):
        if name == "get_versions":  # versioneer's
            lines.append(
                f"def get_versions():\n    return {{'version': {version!r}, 'full-revisionid': None, 'dirty': False, 'error': None}}"
            )
        else:
            value = (
                repr(numbers)
                if re.search(r"info|tuple", name, re.I)
                else "None"
                if re.search(r"commit|revision|hash|sha", name, re.I)
                else repr(version)
            )
            lines.append(f"{name} = {value}")
    return "".join(f"{line}\n" for line in lines).encode()


def _import_root(files: Mapping[str, bytes], name: str) -> str:
    """The folder from which the package is imported: "" or "src"."""
    return (
        "src"
        if "src/__init__.py" not in files and any(p.startswith("src/") and p.endswith(".py") for p in files)
        else ""
    )


def _entry_points(said: Declared) -> bytes:
    parts = [
        f"[{group}]\n" + "".join(f"{line}\n" for line in lines)
        for group, lines in sorted(said.entry_points.items())
        if lines
    ]
    return "\n".join(parts).encode()
