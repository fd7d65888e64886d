"""Source that means the same: local variables renamed, comments dropped. With libcst, which keeps everything else.

Renamed are the variables of functions and comprehensions that are bound by plain assignments, loops, ``with`` and the
like. What could be seen from outside, or bound in a way that is hard to follow, keeps its name: parameters (they may be
given by keyword), functions, classes and imports, ``global`` and ``nonlocal``, captures of ``match``, names in ``f"{x=}"``; and
all names of a module that looks its own locals up.
"""

from __future__ import annotations

import symtable
from typing import TYPE_CHECKING, Any

from tiltyard.errors import UsageError

if TYPE_CHECKING:
    import libcst as cst

_LOOKS_UP = frozenset({"locals", "vars", "eval", "exec", "dir", "globals"})


def libcst(who: str = "the probes need") -> Any:
    """The module libcst with its metadata. UsageError: it is not installed; ``who`` begins the message."""
    try:
        import libcst
        import libcst.metadata
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "libcst":
            raise
        raise UsageError(f"{who} libcst, which is not installed; pip install 'tiltyard[adequacy]'") from None
    return libcst


def without_comments(source: str) -> str:
    """The source with its comments gone; docstrings stay, for a program may read its own."""
    cst = libcst()

    class Drop(cst.CSTTransformer):  # type: ignore[misc,name-defined]
        def leave_Comment(self, original_node: Any, updated_node: Any) -> Any:
            return cst.RemoveFromParent()

    module = cst.parse_module(source)
    dropped: str = module.visit(Drop()).code
    return dropped


def rename_locals(source: str) -> str:
    """The source with its local variables renamed to ``local_1``, ``local_2``, …

    Python's own ``symtable`` says whether each name is still what it was; one that is not keeps its old name."""
    keep: set[str] = set()
    before = _globals(source)
    while True:
        renamed = _renamed(source, keep)
        lost = _globals(renamed) ^ before
        if not lost:
            return renamed
        if lost <= keep:
            return source
        keep |= lost


def _globals(source: str) -> set[str]:
    """The names that some function of the source looks up outside of all functions."""
    found: set[str] = set()
    tables = [symtable.symtable(source, "<source>", "exec")]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        if table.get_type() == "function":
            found.update(s.get_name() for s in table.get_symbols() if s.is_global() and s.is_referenced())
    return found


def _renamed(source: str, keep: set[str]) -> str:
    cst = libcst()
    meta = cst.metadata
    wrapper = meta.MetadataWrapper(cst.parse_module(source))
    module = wrapper.module
    every = _all_nodes(module)
    names = {node.value for node in every if isinstance(node, cst.Name)}
    if names & _LOOKS_UP:
        return source
    fixed = _fixed(cst, every) | keep
    new: dict[int, str] = {}
    scopes = {s for s in wrapper.resolve(meta.ScopeProvider).values() if s is not None}
    kinds = (meta.FunctionScope, meta.ComprehensionScope)
    number = 0
    for scope in _in_order([s for s in scopes if isinstance(s, kinds)], module, every):
        for name in sorted({a.name for a in scope.assignments}):
            found = [a for a in scope.assignments if a.name == name]
            nodes = _nodes(cst, found)
            if name in fixed or nodes is None:
                continue
            number += 1
            while f"local_{number}" in names:
                number += 1
            new.update({id(node): f"local_{number}" for node in nodes})

    class Rename(cst.CSTTransformer):  # type: ignore[misc,name-defined]
        def leave_Name(self, original_node: Any, updated_node: Any) -> Any:
            name = new.get(id(original_node))
            return updated_node if name is None else updated_node.with_changes(value=name)

    renamed: str = module.visit(Rename()).code
    return renamed


def _all_nodes(node: cst.CSTNode) -> list[Any]:
    out: list[Any] = [node]
    for child in node.children:
        out += _all_nodes(child)
    return out


def _in_order(scopes: list[Any], module: Any, every: list[Any]) -> list[Any]:
    """The scopes as they stand in the source: a set has no order of its own."""
    place = {id(node): n for n, node in enumerate(every)}
    return sorted(scopes, key=lambda scope: place.get(id(scope.node), 0))


def _fixed(cst: Any, every: list[Any]) -> set[str]:
    """Names that are bound or used in a way that is left alone."""
    fixed: set[str] = set()
    for node in every:
        if isinstance(node, (cst.Global, cst.Nonlocal)):
            fixed.update(item.name.value for item in node.names)
        elif isinstance(node, cst.NamedExpr):
            fixed.update(n.value for n in _all_nodes(node.target) if isinstance(n, cst.Name))
        elif isinstance(node, cst.Param):
            fixed.add(node.name.value)
        elif isinstance(node, (cst.MatchCase, cst.Annotation)):
            inside = node.pattern if isinstance(node, cst.MatchCase) else node
            fixed.update(n.value for n in _all_nodes(inside) if isinstance(n, cst.Name))
        elif isinstance(node, cst.FormattedStringExpression) and node.equal is not None:
            fixed.update(n.value for n in _all_nodes(node) if isinstance(n, cst.Name))
    return fixed


def _nodes(cst: Any, assignments: list[Any]) -> list[Any] | None:
    """Every node that names the variable; None if one of them is no plain name."""
    nodes: list[Any] = []
    for assignment in assignments:
        references = [access.node for access in getattr(assignment, "references", ())]
        for node in (getattr(assignment, "node", None), *references):
            if not isinstance(node, cst.Name):
                return None
            nodes.append(node)
    return nodes
