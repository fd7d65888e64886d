"""Every name in a task's code: who binds it, how it is used, and why it must stay as it is.

A name that the task itself binds can become another one everywhere at once, in all its files and tests, and the program
stays the same, unless something looks it up that is not code of the task, or looks it up by its text. Here the first
are found (attributes of Python's own objects, arguments of functions of others, names that a base class of others
expects) and the second (texts, data, ``getattr`` and the like), and such names stay. Source is parsed, never executed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from tiltyard.parsing import parse_source
from tiltyard.sources.perturb.external import BUILTINS, FIXTURES, HOOKS, STDLIB, attributes, exported
from tiltyard.sources.perturb.parts import Key, Parts, split_call, words
from tiltyard.sources.perturb.walk import (
    ATTRIBUTE,
    CLASS,
    CLASSVAR,
    FIELD,
    FUNCTION,
    METHOD,
    MODULE,
    PARAM,
    Found,
    Names,
    Walk,
)
from tiltyard.task import Task

_PLACES = frozenset("conftest setup tests test testing docs src noxfile tasks".split())
_CUSTOMS = frozenset({"_", "self", "cls", "args", "kwargs", "TYPE_CHECKING"})
_ENUMS = re.compile(r"(Enum|Flag|TypedDict|Structure|Union)$")
_QUOTED_USE = re.compile(r"(?P<before>[.'\"`%{:]?)(?P<word>[^\W\d]\w*)(?P<after>[.('\"`=}!]?)")


def modules_of(paths: Iterable[str]) -> frozenset[str]:
    """Every folder and every file of Python, as names that an import could begin with."""
    found: set[str] = set()
    for path in paths:
        if path.endswith(".py"):
            *folders, name = path[:-3].split("/")
            found.update([*folders, name])
    return frozenset(name for name in found if name.isidentifier() and not name.startswith("__"))


def survey(task: Task, parts: Parts) -> Names:
    """All names of a task, and which of them must stay."""
    modules = modules_of([*task.start, *task.reference, *task.suite])
    found = Found(modules)
    names = found.names
    for name in modules:
        names.bound.setdefault(name, set()).add(MODULE)
    seen: set[str] = set()
    for key, whole in parts.code.items():
        text, call = split_call(whole)
        names.uses |= words(call)
        if text in seen:
            continue
        seen.add(text)
        names.every |= words(text)
        Walk(found).visit(parse_source(text))
        if key[0] in ("reference", "visible", "hidden", "prelude", "gold"):
            names.relevant |= words(text)
    for text in parts.data:
        names.every |= words(text)
    names.every |= words(task.prompt)
    _judge(found, task, parts)
    return names


def _judge(found: Found, task: Task, parts: Parts) -> None:
    names = found.names
    taken, unknown = attributes(found.libraries)
    for star in found.stars:
        exports = exported(star)
        if exports is None:
            _keep(names, names.bound, f"may come from {star}, of which all is imported")
        else:
            _keep(names, exports, f"a name of {star}")
    _keep(names, BUILTINS, "a name of Python")
    _keep(names, found.outside, "an import of others")
    _keep(names, (n for n in names.bound if n.startswith("__")), "a name with two underscores")
    hooks = (n for n, kinds in names.bound.items() if n.startswith(HOOKS) and kinds != {MODULE})
    _keep(names, hooks, "called by what it is called")
    _keep(names, _PLACES, "a file or folder that tools look for")
    _keep(names, (n for n in names.bound if unicodedata.normalize("NFKC", n) != n), "written in several ways")
    _keep(names, (n for n in names.bound if n in _CUSTOMS), "a custom of Python")
    _keep(
        names,
        {w for why in parts.broken for w in words(_text_of(task, why))},
        "in a file that does not parse",
    )
    if task.grading == "pytest":
        _keep(names, FIXTURES, "a fixture of pytest")
        said = {word for test in task.hidden for word in words(test.id.partition("::")[2])}
        _keep(names, said, "stands in the id of a test")
    for name in taken:
        names.stays_attribute.setdefault(name, "an attribute of Python's own")
    if unknown:
        plain = {n for n in names.bound if not _is_long(n)}
        for name in plain:
            names.stays_attribute.setdefault(
                name, f"may be an attribute of something of {sorted(unknown)[0]}"
            )
    _by_class(found)
    _by_text(found, parts)
    _by_keyword(found)


def _is_long(name: str) -> bool:
    """Made of several words: hardly the name of anything else."""
    core = name.strip("_")
    return "_" in core or any(c.isupper() for c in core[1:])


def _keep(names: Names, which: Iterable[str], why: str) -> None:
    for name in which:
        names.stays.setdefault(name, why)


def _by_class(found: Found) -> None:
    """What a class has that derives from one of others may be what that one expects."""
    ours = {name for name, _, _ in found.classes}
    for name, bases, members in found.classes:
        for base in bases:
            last = base.rpartition(".")[2]
            if _ENUMS.search(last):
                _keep(found.names, members, f"a member of {name}, whose base is {base}")
            elif last not in ours and last not in BUILTINS and base.partition(".")[0] not in _stdlib(found):
                _keep(found.names, members, f"may be expected by {base}, the base of {name}")


def _stdlib(found: Found) -> set[str]:
    """Names that lead to things of the standard library, whose attributes are known."""
    roots = {module.partition(".")[0] for module in found.libraries}
    return found.outside if roots <= STDLIB | {"pytest"} else roots & STDLIB


def _by_text(found: Found, parts: Parts) -> None:
    """A text that is a name may be how it is looked up; where anything is looked up so, a word of any text may be."""
    names = found.names
    exact: set[str] = set()
    every: set[str] = set()
    ends: list[str] = []
    for text in set(found.texts):
        if text.isidentifier():
            exact.add(text)
            if text.endswith("_") or text.startswith("_"):
                ends.append(text)
        for use in _QUOTED_USE.finditer(text):
            every.add(use["word"])
            if use["before"] or use["after"]:
                exact.add(use["word"])
    data = {word for text in parts.data for word in words(text)}
    if found.dynamic:
        every |= data
        for end in ends:
            _keep(
                names, (n for n in names.bound if n.startswith(end) or n.endswith(end)), "may be put together"
            )
        _keep(names, every, "stands in a text, and names are looked up by text")
    if found.spread:
        _keep(names, data & names.bound.keys(), "stands in a file, and arguments are given by name")
    _keep(names, (n for n in data if MODULE in names.bound.get(n, ())), "a module that a file names")
    _keep(names, exact, "stands in a text of the code")
    # a class shows its name in what it prints, and in the texts of tests
    _keep(names, (n for n in every if CLASS in names.bound.get(n, ())), "a class that a text names")


def _by_keyword(found: Found) -> None:
    """A name that is given by keyword to a function of others belongs to that function."""
    names = found.names
    for word, callees in names.keywords.items():
        for callee, plain in sorted(callees):
            kinds = names.bound.get(callee, set())
            known = kinds & {FUNCTION, CLASS, METHOD}
            outside = (plain and (callee in found.outside or callee in BUILTINS)) or (
                not plain and callee in names.stays_attribute
            )
            if not known or outside:
                names.stays.setdefault(word, f"given by keyword to {callee or 'something'}")
                break


def changeable(names: Names) -> dict[str, frozenset[str]]:
    """The names that can be changed, with the roles in which they can: "name", "attribute", "keyword"."""
    out: dict[str, frozenset[str]] = {}
    for name, kinds in sorted(names.bound.items()):
        if name in names.stays:
            continue
        plain = bool(kinds - {ATTRIBUTE})
        attribute = bool(kinds & {ATTRIBUTE, METHOD, FIELD, CLASSVAR}) or names.linked(name)
        fixed = name in names.stays_attribute
        if fixed and (names.linked(name) or not plain):
            continue
        roles = set()
        if plain:
            roles.add("name")
            if kinds & {PARAM, FIELD} or name in names.keywords:
                roles.add("keyword")
        if attribute and not fixed:
            roles.add("attribute")
        out[name] = frozenset(roles)
    return out


def _text_of(task: Task, key: Key) -> str:
    return getattr(task, key[0])[key[1]].decode("utf-8", "replace")  # type: ignore[no-any-return]
