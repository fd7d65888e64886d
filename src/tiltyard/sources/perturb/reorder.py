"""Definitions in another order: top-level functions and classes, and the methods of a class, where none needs another.

Only definitions that stand next to each other change places, and only where nothing that runs when they are defined
(decorators, defaults, annotations, bases, the body of a class) reads a name that another of them binds. The order
follows from the seed and the names, so that a prompt that shows the code, the start and the reference agree.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Sequence
from typing import Any

from tiltyard.check.rename import libcst
from tiltyard.parsing import parse_source
from tiltyard.sources.perturb import prose
from tiltyard.sources.perturb.model import CantError, Change
from tiltyard.sources.perturb.parts import Key, put_together, taken_apart
from tiltyard.task import Task

_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_ORDERED = frozenset(
    "inspect getsource __dict__ vars dir getmembers __subclasses__ co_firstlineno Enum auto".split()
)
"""Who reads code by its place, or members in their order."""


def reorder(task: Task, seed: str) -> Change:
    """The task with its definitions in another order. Raises CantError: no two of them can change places where a player
    sees it."""
    parts = taken_apart(task)
    code: dict[Key, str] = {}
    moved: set[str] = set()
    for key, text in parts.code.items():
        if (
            key[0] not in ("start", "reference")
            or "def " not in text
            or (key[0] == "reference" and _is_new(task, key[1]))
        ):
            continue
        new, names = reordered(text, seed)
        if names:
            code[key] = new
            moved |= set(names)
    if not any(key[0] == "start" for key in code):
        raise CantError("no two definitions of the start can change places")
    prompt = task.prompt if task.grading == "stdio" else _prompt(task.prompt, seed)
    made = put_together(task, code, prompt=prompt)
    return Change(made, f"{len(moved)} definitions: {', '.join(sorted(moved)[:8])}")


def _is_new(task: Task, path: str) -> bool:
    """A file that no player sees need not change."""
    return path not in task.start


def _prompt(text: str, seed: str) -> str:
    """Blocks of code in the prompt, in the same order."""
    out = []
    for piece in prose.pieces(text, frozenset()):
        part = text[piece.start : piece.end]
        if piece.fenced and piece.kind == prose.CODE:
            try:
                part = reordered(part, seed)[0]
            except CantError:
                pass
        out.append(part)
    return "".join(out)


def reordered(source: str, seed: str) -> tuple[str, tuple[str, ...]]:
    """The source, and the names of what has another place now. CantError: libcst can't parse it."""
    cst = libcst()
    try:
        tree = parse_source(source)
    except (SyntaxError, ValueError) as error:
        raise CantError(f"code that does not parse ({getattr(error, 'msg', error)})") from None
    if _reads_order(tree):
        return source, ()
    try:
        module = cst.parse_module(source)
    except (cst.ParserSyntaxError, RecursionError) as error:
        raise CantError(f"code that libcst can't parse ({type(error).__name__})") from None
    lazy = any(isinstance(n, ast.ImportFrom) and n.module == "__future__" for n in tree.body)
    moved: list[str] = []

    class Order(cst.CSTTransformer):  # type: ignore[misc,name-defined]
        def leave_Module(self, original_node: Any, updated_node: Any) -> Any:
            return updated_node.with_changes(body=self.body(original_node.body, updated_node.body, tree.body))

        def body(self, old: Sequence[Any], new: Sequence[Any], known: Sequence[ast.stmt]) -> list[Any]:
            statements = list(known)
            if len(old) != len(statements):
                return list(new)  # a line with several statements: not worth the trouble
            order = _order(statements, seed, lazy)
            moved.extend(_name(statements[i]) for n, i in enumerate(order) if n != i)
            return _relaid(new, order)

        def leave_ClassDef(self, original_node: Any, updated_node: Any) -> Any:
            body = getattr(original_node.body, "body", ())
            known = classes.get(original_node.name.value)
            if (
                known is None
                or not hasattr(updated_node.body, "body")
                or not isinstance(updated_node.body, cst.IndentedBlock)
            ):
                return updated_node
            made = self.body(body, updated_node.body.body, known.body)
            return updated_node.with_changes(body=updated_node.body.with_changes(body=made))

    every = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
    classes = {n.name: n for n in every if sum(m.name == n.name for m in every) == 1}
    made: str = module.visit(Order()).code
    return made, tuple(dict.fromkeys(moved))


def _relaid(nodes: Sequence[Any], order: Sequence[int]) -> list[Any]:
    """The nodes in this order; the empty lines above each place stay there, comments go with their definition."""
    made = []
    for place, which in enumerate(order):
        node = nodes[which]
        if place != which:
            own = [line for line in node.leading_lines if line.comment is not None]
            above = [line for line in nodes[place].leading_lines if line.comment is None]
            node = node.with_changes(leading_lines=[*above, *own])
        made.append(node)
    return made


def _order(body: Sequence[ast.stmt], seed: str, lazy: bool) -> list[int]:
    """The new place of each statement: runs of definitions, each shuffled where it may be."""
    order: list[int] = []
    run: list[int] = []
    for n, node in enumerate([*body, None]):
        if isinstance(node, _DEFS):
            run.append(n)
            continue
        order += _shuffled(body, run, seed, lazy)
        run = []
        if node is not None:
            order.append(n)
    return order


def _shuffled(body: Sequence[ast.stmt], run: list[int], seed: str, lazy: bool) -> list[int]:
    names = [_name(body[n]) for n in run]
    reads = {n: _reads(body[n], lazy) for n in run}
    loose = [
        n
        for n, name in zip(run, names, strict=True)
        if names.count(name) == 1 and not reads[n] & {*names} and not any(name in reads[m] for m in run)
    ]
    if len(loose) < 2:
        return run
    mixed = sorted(loose, key=lambda n: hashlib.sha256(f"{seed} {_name(body[n])}".encode()).digest())
    if mixed == loose:  # at least one must move
        mixed = mixed[1:] + mixed[:1]
    places = iter(mixed)
    return [next(places) if n in loose else n for n in run]


def _name(node: ast.stmt) -> str:
    return node.name if isinstance(node, _DEFS) else ""


def _reads(node: ast.stmt, lazy: bool) -> set[str]:
    """The names that are looked up when this is defined."""
    found: list[ast.AST] = [*getattr(node, "decorator_list", ())]
    if isinstance(node, ast.ClassDef):
        found += [*node.bases, *node.keywords]
        for inner in node.body:
            if isinstance(inner, _DEFS):
                found += [ast.Name(name, ast.Load()) for name in _reads(inner, lazy)]
            else:
                found.append(inner)
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        arguments = node.args
        found += [d for d in (*arguments.defaults, *arguments.kw_defaults) if d is not None]
        if not lazy:
            every = (
                *arguments.posonlyargs,
                *arguments.args,
                *arguments.kwonlyargs,
                arguments.vararg,
                arguments.kwarg,
            )
            found += [a.annotation for a in every if a is not None and a.annotation is not None]
            found += [node.returns] if node.returns is not None else []
    return {inner.id for one in found for inner in ast.walk(one) if isinstance(inner, ast.Name)}


def _reads_order(tree: ast.Module) -> bool:
    return any(
        getattr(node, "id", None) in _ORDERED or getattr(node, "attr", None) in _ORDERED
        for node in ast.walk(tree)
    )
