"""Changing names in Python source, with everything else as it stood: formatting, comments, the texts that are data."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tiltyard.check.rename import libcst
from tiltyard.sources.perturb.prose import Renames, changed

_LISTS = frozenset({"__all__", "__slots__", "__match_args__"})
_LISTED = re.compile(r"(?m)(?<=[ \t*])(?<!\w[ \t])[^\W\d]\w*(?=[ \t]*(?:\([^()\n]*\))?[ \t]*:(?:[ \t]|$))")
_TEXT = re.compile(r"(?P<head>[rRuU]?)(?P<quote>'''|\"\"\"|'|\")(?P<body>.*)(?P=quote)", re.DOTALL)


def renamed(source: str, new: Renames, *, docstrings: bool = True) -> str:
    """The source with its names changed, in docstrings and comments too. Raises what libcst raises for what it can't
    parse."""
    cst = libcst()
    made: str = cst.parse_module(source).visit(_renamer(cst, new, docstrings)).code
    return made


def prose_of(new: Renames) -> Callable[[str], str]:
    """The function that changes a docstring or a comment."""
    return lambda text: changed(text, new)


def _renamer(cst: Any, new: Renames, docstrings: bool) -> Any:
    class Renamer(cst.CSTTransformer):  # type: ignore[misc]
        """Roles are found on the way down, names changed on the way up."""

        def __init__(self) -> None:
            super().__init__()
            self.roles: dict[int, str] = {}
            self.annotations = 0
            self.listed = 0
            self.documents: set[int] = set()

        def visit_Attribute(self, node: Any) -> None:
            self.roles.setdefault(id(node.attr), "attribute")

        def visit_Arg(self, node: Any) -> None:
            if node.keyword is not None:
                self.roles[id(node.keyword)] = "keyword"

        def visit_Import(self, node: Any) -> None:
            for alias in node.names:
                self._dotted(alias.name)

        def visit_ImportFrom(self, node: Any) -> None:
            if node.module is not None:
                self._dotted(node.module)

        def _dotted(self, node: Any) -> None:
            """The parts of a module's name are plain names, though they stand after dots."""
            while isinstance(node, cst.Attribute):
                self.roles[id(node.attr)] = "module"
                node = node.value

        def visit_Annotation(self, node: Any) -> None:
            self.annotations += not _has_literal(cst, node)

        def leave_Annotation(self, original_node: Any, updated_node: Any) -> Any:
            self.annotations -= not _has_literal(cst, original_node)
            return updated_node

        def visit_Assign(self, node: Any) -> None:
            self.listed += _is_list(cst, node)

        def leave_Assign(self, original_node: Any, updated_node: Any) -> Any:
            self.listed -= _is_list(cst, original_node)
            return updated_node

        def visit_Module(self, node: Any) -> None:
            self._document(node.body)

        def visit_FunctionDef(self, node: Any) -> None:
            self._document(getattr(node.body, "body", ()))

        def visit_ClassDef(self, node: Any) -> None:
            self._document(getattr(node.body, "body", ()))

        def _document(self, body: Any) -> None:
            match [*body[:1]]:
                case [cst.SimpleStatementLine(body=[cst.Expr(value=value), *_])]:
                    if isinstance(value, cst.ConcatenatedString):
                        self.documents.update((id(value.left), id(value.right)))
                    self.documents.add(id(value))

        def leave_Name(self, original_node: Any, updated_node: Any) -> Any:
            role = self.roles.pop(id(original_node), "name")
            table = {"attribute": new.attributes, "keyword": new.keywords}.get(role, new.names)
            name = table.get(original_node.value)
            return updated_node if name is None else updated_node.with_changes(value=name)

        def leave_SimpleString(self, original_node: Any, updated_node: Any) -> Any:
            value = original_node.value
            if id(original_node) in self.documents:
                found = _TEXT.fullmatch(value)
                if found is None or not docstrings:
                    return updated_node
                body = changed(found["body"], new)
                return updated_node.with_changes(
                    value=f"{found['head']}{found['quote']}{body}{found['quote']}"
                )
            if self.listed and (old := original_node.raw_value) in new.every:
                return updated_node.with_changes(value=value.replace(old, new.every[old]))
            if self.annotations and (found := _TEXT.fullmatch(value)) is not None:
                body = _forward(found["body"], new)
                return updated_node.with_changes(
                    value=f"{found['head']}{found['quote']}{body}{found['quote']}"
                )
            return updated_node

        def leave_Comment(self, original_node: Any, updated_node: Any) -> Any:
            return updated_node.with_changes(value=changed(original_node.value, new))

    return Renamer()


def _arguments(text: str, new: Renames) -> str:
    """A docstring with the names of arguments where they are listed, each on a line of its own: ``x (int): how many``."""
    return _LISTED.sub(lambda found: new.names.get(found[0], found[0]), text)


def _forward(text: str, new: Renames) -> str:
    """An annotation that is a text."""

    def word(found: re.Match[str]) -> str:
        table = new.attributes if text[: found.start()].endswith(".") else new.names
        return table.get(found[0], found[0])

    return re.sub(r"[^\W\d]\w*", word, text)


def _has_literal(cst: Any, node: Any) -> bool:
    inner = [node]
    while inner:
        one = inner.pop()
        if isinstance(one, cst.Name) and one.value == "Literal":
            return True
        inner.extend(one.children)
    return False


def _is_list(cst: Any, node: Any) -> bool:
    return any(isinstance(t.target, cst.Name) and t.target.value in _LISTS for t in node.targets)
