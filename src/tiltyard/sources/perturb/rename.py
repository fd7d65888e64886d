"""Other names for functions, classes, methods, variables, parameters and files, everywhere in a task at once."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Mapping

from tiltyard.check.rename import libcst
from tiltyard.parsing import parse_source
from tiltyard.sources.perturb import prose
from tiltyard.sources.perturb.apply import renamed
from tiltyard.sources.perturb.fresh import Namer
from tiltyard.sources.perturb.model import CantError, Change
from tiltyard.sources.perturb.names import changeable, survey
from tiltyard.sources.perturb.parts import Key, Parts, put_together, split_call, taken_apart, words
from tiltyard.sources.perturb.prose import Renames
from tiltyard.sources.perturb.walk import ATTRIBUTE, CLASS, FUNCTION, METHOD, MODULE, Names
from tiltyard.task import Task

MANY_FILES = 40
"""From here on a task is about a repository: only names that its reference and its prompt speak of are changed."""
MOST_NAMES = 60
_CALLABLE = {FUNCTION, CLASS, METHOD}
_GLUED = re.compile(r"\b\d+([A-Za-z])\b")
_DOCUMENTS = re.compile(r"\.(md|rst)$")


def rename(
    task: Task, rng: random.Random, *, files: bool = False, only: frozenset[str] = frozenset()
) -> Change:
    """The task with other names; with ``files`` the names of modules, else all others. ``only``: of these kinds alone
    (``names.FUNCTION`` and so on). Raises CantError: there is no name that can safely be another one."""
    parts = taken_apart(task)
    names = survey(task, parts)
    chosen = _chosen(task, parts, names, files, only)
    new = _named(task, parts, names, chosen, rng)
    if not new:
        raise CantError(_why_nothing(task, names, files))
    made = _with_names(task, parts, names, new, files)
    if left := _left(task, made, new):
        raise CantError(f"old names would be left: {', '.join(sorted(left)[:4])}")
    shown = ", ".join(f"{old} → {name}" for old, name in list(new.every.items())[:12])
    return Change(made, shown + (f" and {len(new.every) - 12} more" if len(new.every) > 12 else ""))


def _chosen(
    task: Task, parts: Parts, names: Names, files: bool, only: frozenset[str]
) -> dict[str, frozenset[str]]:
    """Names and the roles in which they are changed."""
    possible = changeable(names)
    fixed = _fixed_by_prompt(task)
    out: dict[str, frozenset[str]] = {}
    for name, roles in possible.items():
        kinds = names.bound[name]
        other = (MODULE in kinds) != files and not (kinds & _CALLABLE and MODULE in kinds)
        if name in fixed or other:
            continue
        if only and not kinds & only:
            continue
        out[name] = roles
    if len(parts.code) > MANY_FILES and task.grading == "pytest":
        out = _of_repository(task, names, out, files)
    return out


def _of_repository(
    task: Task, names: Names, chosen: Mapping[str, frozenset[str]], files: bool
) -> dict[str, frozenset[str]]:
    """Names that the fix and the issue speak of: the others are not what anyone remembers this task by."""
    said = words(task.prompt)
    if files:
        said |= {part for path in {*task.reference, *task.suite} for part in re.split(r"[/.]", path)}
    order = sorted(
        (name for name in chosen if name in said or name in names.relevant),
        key=lambda n: (n not in said, not names.bound[n] & _CALLABLE, n),
    )
    return {name: chosen[name] for name in sorted(order[:MOST_NAMES])}


def _fixed_by_prompt(task: Task) -> set[str]:
    """Names that stand in the prompt where they can't be told from data."""
    fixed = prose.in_data(task.prompt)
    if task.grading == "stdio":  # what stands there is what goes in and comes out
        for piece in prose.pieces(task.prompt, frozenset()):
            if piece.kind in (prose.CODE, prose.DATA) and not piece.fenced:
                fixed |= words(_without_paths(task, task.prompt[piece.start : piece.end]))
        return fixed - {task.main.removesuffix(".py")}
    fixed |= set(_GLUED.findall(task.prompt))  # 2x is not 2 and another name for x
    return fixed - words(_paths_in(task))


def _paths_in(task: Task) -> str:
    return " ".join(re.findall(r"[\w./-]+\.py\b", task.prompt))


def _without_paths(task: Task, text: str) -> str:
    return re.sub(r"[\w./-]+\.py\b", " ", text)


def _named(
    task: Task, parts: Parts, names: Names, chosen: Mapping[str, frozenset[str]], rng: random.Random
) -> Renames:
    places = {
        part for path in {*task.start, *task.reference, *task.suite} for part in re.split(r"[/.]", path)
    }
    namer = Namer(rng, names.every | places | prose.in_prose(task.prompt) | words(task.prompt))
    spoken = _spoken(task, parts)
    tables: dict[str, dict[str, str]] = {"name": {}, "attribute": {}, "keyword": {}}
    for old, roles in chosen.items():
        kinds = names.bound[old]
        kind = "class" if CLASS in kinds else "callable" if kinds & {FUNCTION, METHOD} else "value"
        if kinds == {MODULE}:
            kind = "module"
        keep = old in spoken and not prose.is_name_like(old)
        new = _one_name(namer, old, kind, keep)
        for role in roles:
            tables[role][old] = new
    return Renames(tables["name"], tables["attribute"], tables["keyword"])


def _one_name(namer: Namer, old: str, kind: str, keep: bool) -> str:
    if kind == "module" and old.startswith("test_") and old != "test_":
        return "test_" + namer.name(old.removeprefix("test_"), kind, keep_words=True)
    if kind == "module" and old.endswith(("_test", "_tests")) and not old.startswith("_"):
        stem, _, mark = old.rpartition("_")
        return f"{namer.name(stem, kind, keep_words=True)}_{mark}"
    return namer.name(old, kind, keep_words=keep)


def _spoken(task: Task, parts: Parts) -> set[str]:
    """The words of the prose that a player reads: of the prompt, and of docstrings in the start."""
    found = prose.in_prose(task.prompt)
    if len(parts.code) > MANY_FILES:
        return found
    for (folder, _), text in parts.code.items():
        if folder == "start":
            for node in ast.walk(parse_source(text)):
                if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                    found |= words(ast.get_docstring(node, clean=False) or "")
    return found


def _with_names(task: Task, parts: Parts, names: Names, new: Renames, files: bool) -> Task:
    cst = libcst()
    every = new.every
    docstrings = not any("__doc__" in text for text in parts.code.values())
    known: dict[str, str] = {}
    code: dict[Key, str] = {}
    for key, whole in parts.code.items():
        if not every.keys() & words(whole):
            continue
        text, call = split_call(whole)
        if text not in known:
            try:
                known[text] = renamed(text, new, docstrings=docstrings)
            except (cst.ParserSyntaxError, cst.CSTValidationError, RecursionError) as error:
                raise CantError(
                    f"{'/'.join(key)} can't be parsed by libcst ({type(error).__name__})"
                ) from None
        code[key] = known[text] + prose.in_code(call, new)
    moved = {old: name for old, name in new.names.items() if MODULE in names.bound.get(old, ())}

    def path(old: str) -> str:
        if old.endswith(".py"):
            *folders, stem = old[:-3].split("/")
            return "/".join([*(moved.get(f, f) for f in folders), moved.get(stem, stem)]) + ".py"
        *folders, last = old.split("/")
        return "/".join([*(moved.get(f, f) for f in folders), last if "." in last else moved.get(last, last)])

    def fence(body: str) -> str | None:
        try:
            return renamed(body, new)
        except Exception:  # no whole program: its words are changed one by one
            return None

    def document(where: str, text: str) -> str:
        return prose.changed(text, new, fence) if _DOCUMENTS.search(where) else text

    prompt = task.prompt if task.grading == "stdio" else prose.changed(task.prompt, new, fence)
    if moved:
        prompt = _moved(task, prompt, path)
    return put_together(task, code, prompt=prompt, names=new.names, paths=path, other=document)


def _moved(task: Task, prompt: str, path: Callable[[str], str]) -> str:
    """The prompt with the new places of files."""
    for old in sorted({task.main, *task.start, *task.reference, *task.suite}, key=len, reverse=True):
        new = path(old)
        if new == old:
            continue
        prompt = _instead(prompt, old, new)
        short, short_new = old.rpartition("/")[2], new.rpartition("/")[2]
        if short not in (short_new, "__init__.py"):
            prompt = _instead(prompt, short, short_new)
    return prompt


def _instead(text: str, old: str, new: str) -> str:
    return re.sub(rf"(?<![\w./-]){re.escape(old)}(?![\w-])", lambda _: new, text)


def _left(task: Task, made: Task, new: Renames) -> set[str]:
    """Old names that the code still binds, or that the prompt still says where it could have been changed."""
    bound = survey(made, taken_apart(made)).bound
    found = {old for old in new.names if bound.get(old, set()) - {MODULE, ATTRIBUTE}}
    found |= {old for old in new.attributes if bound.get(old)}
    if task.grading != "stdio" and prose.changed(made.prompt, new) != made.prompt:
        found |= new.every.keys() & words(made.prompt)
    return found


def _why_nothing(task: Task, names: Names, files: bool) -> str:
    if files:
        own = [n for n, kinds in names.bound.items() if MODULE in kinds]
        reasons = sorted({names.stays.get(name, "stands in the prompt as data") for name in own})
        return "no file can have another name" + (f": {reasons[0]}" if reasons else "")
    reasons = sorted({names.stays.get(n) or names.stays_attribute.get(n, "") for n in task.entry} - {""})
    return "no name can safely be another one" + (f": {reasons[0]}" if reasons else "")
