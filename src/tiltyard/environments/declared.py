"""What a repository says that it needs, read from its files and never by running any of them.

pyproject.toml ([project], dependency groups, the tables of poetry, flit, pdm, uv and hatch), setup.cfg, setup.py (as a
syntax tree: literals, and names that are assigned literals), requirements files by their names, Pipfile, tox.ini.
What can't be read like this is left out and noted.
"""

from __future__ import annotations

import configparser
import contextlib
import posixpath
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from tiltyard.environments.model import normal
from tiltyard.environments.setup_py import setup_words

_TESTS = re.compile(r"tests?|testing|pytest|unit-?tests?|tests?-.*|.*-tests?|ci", re.I)
_DEV = re.compile(r"dev|develop|development|devel|all|complete|full|default|optional", re.I)
_TEST_FILE = re.compile(
    r"(?:.*/)?(?:requirements?[-_./](?:.*[-_])?tests?(?:ing)?(?:[-_].*)?|tests?(?:ing)?[-_]requirements?|tests?/requirements?|requirements?[-_]ci)\.(?:txt|in|pip)",
    re.I,
)
_DEV_FILE = re.compile(
    r"(?:.*/)?(?:requirements?[-_./]dev(?:el|elop|elopment)?|dev(?:el|elop|elopment)?[-_]requirements?)\.(?:txt|in|pip)",
    re.I,
)
_MAIN_FILE = re.compile(
    r"(?:requirements?|requires)\.(?:txt|in|pip)|requirements?/(?:base|main|install|common|core|default|prod|production)\.(?:txt|in)",
    re.I,
)
MAX_INCLUDES = 32


@dataclass
class Declared:
    """What was read. Requirements are texts; ``notes`` say what could not be used."""

    name: str = ""
    version: str = ""
    requires_python: str = ""
    runtime: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    development: list[str] = field(default_factory=list)
    extras: dict[str, list[str]] = field(default_factory=dict)
    entry_points: dict[str, list[str]] = field(default_factory=dict)
    """By group: lines like ``name = module:function``."""
    notes: list[str] = field(default_factory=list)

    def wanted(self) -> list[str]:
        """Requirements of the package and of its tests; where none are named for tests, those of its developers."""
        chosen = [*self.runtime, *(self.tests or self.development)]
        return list(dict.fromkeys(self._expanded(chosen)))

    def _expanded(self, texts: Iterable[str], depth: int = 0) -> Iterator[str]:
        """A package's own extras are what they list; the package itself is not installed."""
        for text in texts:
            found = requirement(text)
            if found is None:
                self.notes.append(f"left out, for it is no requirement: {text[:80]}")
            elif self.name and normal(found.name) == normal(self.name):
                for extra in found.extras:
                    inner = self.extras.get(normal(extra), [])
                    yield from self._expanded(inner, depth + 1) if depth < MAX_INCLUDES else ()
            else:
                yield text


def requirement(text: str) -> Requirement | None:
    """A requirement, or None if the text is none."""
    with contextlib.suppress(InvalidRequirement):
        return Requirement(text)
    return None


def read_declared(files: Mapping[str, bytes]) -> Declared:
    """Read what the files at the top of a repository declare. Never raises for what is in them."""
    found = Declared()
    for name, read in (
        ("pyproject.toml", _pyproject),
        ("setup.cfg", _setup_cfg),
        ("setup.py", _setup_py),
        ("Pipfile", _pipfile),
        ("tox.ini", _tox),
    ):
        if name in files:
            try:
                read(files[name].decode("utf-8", "replace"), files, found)
            except (
                ValueError,
                TypeError,
                AttributeError,
                KeyError,
                RecursionError,
                configparser.Error,
            ) as error:
                found.notes.append(f"{name} can't be read: {type(error).__name__}: {str(error)[:120]}")
    for path in sorted(files):
        if path.count("/") > 1 or not path.endswith((".txt", ".in", ".pip")):
            continue
        if path.endswith(".in") and f"{path[:-3]}.txt" in files:
            continue  # what it was made from; the .txt has the versions that worked
        if _TEST_FILE.fullmatch(path):
            found.tests += requirements_of(path, files, found.notes)
        elif _DEV_FILE.fullmatch(path):
            found.development += requirements_of(path, files, found.notes)
        elif _MAIN_FILE.fullmatch(path) and not found.runtime:
            found.runtime += requirements_of(path, files, found.notes)
    for extra, texts in found.extras.items():
        _to_group(found, extra, texts)
    return found


def requirements_of(
    path: str, files: Mapping[str, bytes], notes: list[str], seen: frozenset[str] = frozenset()
) -> list[str]:
    """The requirements in a requirements file and in those that it includes; options and addresses are left out."""
    if path in seen or path not in files or len(seen) > MAX_INCLUDES:
        return []
    out: list[str] = []
    text = re.sub(r"\\\r?\n", " ", files[path].decode("utf-8", "replace").removeprefix("\ufeff"))
    for line in text.splitlines():
        line = re.sub(r"(?:^|\s)#.*$", "", line).strip()
        include = re.match(r"(?:-r|--requirement)[\s=]*(\S+)", line)
        if include:
            inner = posixpath.normpath(posixpath.join(posixpath.dirname(path), include[1]))
            out += requirements_of(inner, files, notes, seen | {path})
        elif line and not line.startswith("-"):
            out += _plain(re.split(r"\s--?[a-z]", line)[0].strip(), path, notes)
        elif re.match(r"(?:-e|--editable)\s*(?!\.)\S", line):
            notes.append(f"{path}: left out, for it is no package of an index: {line[:80]}")
    return out


def _plain(text: str, where: str, notes: list[str]) -> list[str]:
    """A requirement of an index; one from an address becomes its name."""
    if text in (".", "./") or text.startswith((".[", "./", "../", "/", "file:")):
        return []
    found = requirement(text)
    if found is None or found.url:
        name = (
            found.name if found is not None else (re.search(r"#egg=([A-Za-z0-9._-]+)", text) or ["", ""])[1]
        )
        notes.append(
            f"{where}: {text[:80]!r} is no package of an index" + (f"; taken as {name!r}" if name else "")
        )
        return [name] if name else []
    return [text]


def _to_group(found: Declared, name: str, texts: Iterable[str]) -> None:
    if _TESTS.fullmatch(name):
        found.tests += texts
    elif _DEV.fullmatch(name):
        found.development += texts


def _lines(value: Any) -> list[str]:
    """Requirements as setuptools takes them: a list, or a text with one a line."""
    if isinstance(value, str):
        value = value.splitlines()
    if not isinstance(value, list | tuple):
        return []
    texts = [re.sub(r"(?:^|\s)#.*$", "", text).strip() for text in value if isinstance(text, str)]
    return [text for text in texts if text]


# -- pyproject.toml ------------------------------------------------------------------------------------------------


def _pyproject(text: str, files: Mapping[str, bytes], found: Declared) -> None:
    data = tomllib.loads(text)
    project, tool = _table(data.get("project")), _table(data.get("tool"))
    found.name = str(project.get("name") or found.name)
    found.version = str(project.get("version") or found.version)
    found.requires_python = str(project.get("requires-python") or found.requires_python)
    found.runtime += _lines(project.get("dependencies", []))
    for name, texts in _table(project.get("optional-dependencies")).items():
        found.extras.setdefault(normal(name), []).extend(_lines(texts))
    for group, table in _table(project.get("entry-points")).items():
        found.entry_points[group] = [f"{name} = {target}" for name, target in _table(table).items()]
    if scripts := _table(project.get("scripts")):
        found.entry_points["console_scripts"] = [f"{name} = {target}" for name, target in scripts.items()]
    groups = _table(data.get("dependency-groups"))
    for name in groups:
        _to_group(found, normal(name), _group(name, groups))
    _poetry(_table(tool.get("poetry")), found)
    _flit(_table(tool.get("flit")), found)
    for name, texts in _table(_table(tool.get("pdm")).get("dev-dependencies")).items():
        _to_group(found, normal(name), _lines(texts))
    found.development += _lines(_table(tool.get("uv")).get("dev-dependencies", []))
    for name, env in _table(_table(tool.get("hatch")).get("envs")).items():
        more = [
            *_lines(_table(env).get("dependencies", [])),
            *_lines(_table(env).get("extra-dependencies", [])),
        ]
        _to_group(found, normal(name), [text for text in more if "{" not in text])
    legacy = _table(tool.get("tox")).get("legacy_tox_ini")
    if isinstance(legacy, str):
        _tox(legacy, files, found)
    base = _table(_table(tool.get("tox")).get("env_run_base"))
    found.tests += [
        text for text in _lines(base.get("deps", [])) if "{" not in text and not text.startswith("-")
    ]


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _group(name: str, groups: Mapping[str, Any], seen: frozenset[str] = frozenset()) -> list[str]:
    out: list[str] = []
    for item in groups.get(name, []) if name not in seen else []:
        if isinstance(item, str):
            out.append(item)
        elif isinstance(item, dict) and isinstance(item.get("include-group"), str):
            wanted = normal(item["include-group"])
            for other in groups:
                if normal(other) == wanted:
                    out += _group(other, groups, seen | {name})
    return out


def _poetry(table: dict[str, Any], found: Declared) -> None:
    found.name = str(table.get("name") or found.name)
    found.version = str(table.get("version") or found.version)
    main = _table(table.get("dependencies"))
    if isinstance(main.get("python"), str) and not found.requires_python:
        found.requires_python = _caret(main["python"])
    for name, spec in main.items():
        if name.lower() != "python" and not _table(spec).get("optional"):
            found.runtime += _of_poetry(name, spec)
    groups = {"dev": table.get("dev-dependencies")}
    groups |= {name: _table(group).get("dependencies") for name, group in _table(table.get("group")).items()}
    for group, specs in groups.items():
        texts = [text for name, spec in _table(specs).items() for text in _of_poetry(name, spec)]
        _to_group(found, normal(group), texts)
    optional = {normal(n): s for n, s in main.items()}
    for extra, names in _table(table.get("extras")).items():
        texts = [text for name in _lines(names) for text in _of_poetry(name, optional.get(normal(name), "*"))]
        found.extras.setdefault(normal(extra), []).extend(texts)
    plugins = {
        **_table(table.get("plugins")),
        **({"console_scripts": table["scripts"]} if "scripts" in table else {}),
    }
    for group, entries in plugins.items():
        found.entry_points[group] = [
            f"{name} = {target}" for name, target in _table(entries).items() if isinstance(target, str)
        ]


def _of_poetry(name: str, spec: Any) -> list[str]:
    if isinstance(spec, list):  # one for each Python; any will do for a start
        spec = next((s for s in spec if isinstance(s, dict) and "version" in s), "*")
    if isinstance(spec, dict):
        extras = ",".join(_lines(spec.get("extras", [])))
        marker = spec.get("markers", "")
        text = f"{name}[{extras}]" if extras else name
        text += _caret(str(spec.get("version", "*")))
        return [f"{text}; {marker}" if marker else text]
    return [name + _caret(str(spec))]


def _caret(text: str) -> str:
    """Poetry's way to say which versions, as everybody's."""
    out: list[str] = []
    for part in re.split(r"\s*,\s*", text.partition("||")[0].strip()):
        match = re.match(r"([\^~])\s*(\d+(?:\.\d+)*)$", part)
        if part in ("", "*"):
            continue
        if match is None:
            out.append(part if re.match(r"[<>=!~]", part) else f"=={part}")
            continue
        numbers = [int(n) for n in match[2].split(".")]
        if match[1] == "~":
            at = 0 if len(numbers) == 1 else 1
        else:
            at = next((i for i, n in enumerate(numbers) if n), len(numbers) - 1)
        upper = [*numbers[:at], numbers[at] + 1]
        out.append(f">={match[2]},<{'.'.join(map(str, upper))}")
    return ",".join(out)


def _flit(table: dict[str, Any], found: Declared) -> None:
    metadata = _table(table.get("metadata"))
    found.name = found.name or str(metadata.get("dist-name") or metadata.get("module") or "")
    found.requires_python = found.requires_python or str(metadata.get("requires-python") or "")
    found.runtime += _lines(metadata.get("requires", []))
    found.development += _lines(metadata.get("dev-requires", []))
    for extra, texts in _table(metadata.get("requires-extra")).items():
        found.extras.setdefault(normal(extra), []).extend(_lines(texts))


# -- setup.cfg, setup.py, Pipfile, tox.ini -----------------------------------------------------------------------------


def _parser(text: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    return parser


def _setup_cfg(text: str, files: Mapping[str, bytes], found: Declared) -> None:
    parser = _parser(text)

    def get(section: str, key: str) -> str:
        return parser.get(section, key, fallback=None) or ""

    found.name = found.name or get("metadata", "name")
    version = get("metadata", "version")
    found.version = found.version or ("" if version.startswith(("attr:", "file:")) else version)
    found.requires_python = found.requires_python or (
        get("options", "python_requires") or get("options", "requires_python")
    )
    for key, into in (("install_requires", found.runtime), ("tests_require", found.tests)):
        value = get("options", key)
        if value.startswith("file:"):
            for path in value.removeprefix("file:").split(","):
                into += requirements_of(path.strip(), files, found.notes)
        else:
            into += _lines(value)
    if parser.has_section("options.extras_require"):
        for extra, value in parser.items("options.extras_require"):
            found.extras.setdefault(normal(extra), []).extend(_lines(value or ""))
    if parser.has_section("options.entry_points"):
        for group, value in parser.items("options.entry_points"):
            found.entry_points[group] = _lines(value or "")
    if parser.has_section("tox:tox"):
        _tox(text, files, found)


def _setup_py(text: str, files: Mapping[str, bytes], found: Declared) -> None:
    words = setup_words(text)
    found.name = found.name or str(words.get("name") or "")
    found.version = found.version or str(words.get("version") or "")
    found.requires_python = found.requires_python or str(words.get("python_requires") or "")
    found.runtime += _lines(words.get("install_requires", []))
    found.tests += _lines(words.get("tests_require", []))
    for extra, texts in _table(words.get("extras_require")).items():
        found.extras.setdefault(normal(str(extra).partition(":")[0] or "runtime"), []).extend(_lines(texts))
    points = words.get("entry_points")
    if isinstance(points, str):
        parser = _parser(points)
        points = {s: [f"{k} = {v}" for k, v in parser.items(s) if v] for s in parser.sections()}
    for group, value in _table(points).items():
        found.entry_points.setdefault(str(group), []).extend(_lines(value))


def _pipfile(text: str, files: Mapping[str, bytes], found: Declared) -> None:
    data = tomllib.loads(text)
    for name, spec in _table(data.get("packages")).items():
        found.runtime += _of_poetry(name, spec) if not _table(spec).get("path") else []
    for name, spec in _table(data.get("dev-packages")).items():
        found.development += _of_poetry(name, spec) if not _table(spec).get("path") else []


def _tox(text: str, files: Mapping[str, bytes], found: Declared) -> None:
    parser = _parser(text)
    if not parser.has_section("testenv"):
        return
    for line in _tox_lines(parser, "testenv", "deps"):
        include = re.match(r"(?:-r|--requirement)[\s=]*(\S+)", line)
        if include:
            path = posixpath.normpath(include[1].replace("{toxinidir}/", "").replace("{tox_root}/", ""))
            if not re.search(r"docs?/|lint|mypy", path):
                found.tests += requirements_of(path, files, found.notes)
        elif "{" not in line and not line.startswith("-") and not re.match(r"[\w,!.-]+\s*:\s", line):
            found.tests += _plain(line, "tox.ini", found.notes)
    for extra in re.split(r"[\s,]+", parser.get("testenv", "extras", fallback="") or ""):
        if extra and "{" not in extra and not _TESTS.fullmatch(normal(extra)):
            found.tests += found.extras.get(normal(extra), [])


def _tox_lines(parser: configparser.RawConfigParser, section: str, key: str, depth: int = 0) -> list[str]:
    out: list[str] = []
    for line in _lines(parser.get(section, key, fallback="") or ""):
        other = re.fullmatch(r"\{\[([^\]]+)\]([\w-]+)\}", line)
        if other is None:
            out.append(line)
        elif depth < MAX_INCLUDES:
            out += _tox_lines(parser, other[1], other[2], depth + 1)
    return out
