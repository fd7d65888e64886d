"""One pass over a file of Python: what binds a name, how it is used, which texts there are. Parsed, never executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tiltyard.parsing import parse_expression
from tiltyard.sources.perturb.external import STDLIB

_DYNAMIC = frozenset(
    "getattr setattr delattr hasattr attrgetter methodcaller __dict__ vars locals globals eval exec dir __import__ "
    "import_module inspect pickle __name__ __qualname__ __getattr__ __setattr__ __getattribute__ __doc__ pprint "
    "asdict astuple fields _asdict _fields __annotations__ get_type_hints __slots__ namedtuple make_dataclass "
    "signature doctest getmembers __match_args__ patch monkeypatch argparse".split()
)
"""What may look a name up by its text, or show it."""
_LISTS = frozenset({"__all__", "__slots__", "__match_args__"})
_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef)

FUNCTION, CLASS, METHOD, FIELD, CLASSVAR, PARAM, VARIABLE, ATTRIBUTE, MODULE = (
    "function", "class", "method", "field", "class variable", "parameter", "variable", "attribute", "module",
)  # fmt: skip


@dataclass
class Names:
    """``bound``: what binds a name, by name. ``uses`` as a plain name, ``attributes`` after a dot, ``keywords`` the
    functions that are given it by keyword. ``stays``: names that must not be changed, with the reason."""

    bound: dict[str, set[str]] = field(default_factory=dict)
    uses: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    keywords: dict[str, set[tuple[str, bool]]] = field(default_factory=dict)
    stays: dict[str, str] = field(default_factory=dict)
    stays_attribute: dict[str, str] = field(default_factory=dict)
    module_objects: bool = False
    """Modules of the task are used as objects: what they hold is reached as an attribute, too."""
    every: set[str] = field(default_factory=set)
    """Every word of the task's code, texts included: no new name may be one of them."""
    relevant: set[str] = field(default_factory=set)
    """Names in what the reference changes and in the tests."""

    def linked(self, name: str) -> bool:
        """Whether a plain name and an attribute of this name are the same thing."""
        kinds = self.bound.get(name, set())
        if kinds & {METHOD, FIELD, CLASSVAR}:
            return True
        return (
            self.module_objects
            and bool(kinds & {FUNCTION, CLASS, MODULE, VARIABLE})
            and name in self.attributes
        )


class Walk(ast.NodeVisitor):
    """One file."""

    def __init__(self, found: Found) -> None:
        self.found = found
        self.inside: list[str] = []
        """"class" and "function", from outermost to innermost."""

    def bind(self, name: str, kind: str) -> None:
        self.found.names.bound.setdefault(name, set()).add(kind)

    @property
    def _in_class(self) -> bool:
        return bool(self.inside) and self.inside[-1] == "class"

    def _body(self, body: Sequence[ast.stmt], what: str) -> None:
        self.inside.append(what)
        for number, node in enumerate(body):
            if number == 0 and _is_text(node):
                continue  # a docstring, which is prose
            self.visit(node)
        self.inside.pop()

    def visit_Module(self, node: ast.Module) -> None:
        for number, one in enumerate(node.body):
            if not (number == 0 and _is_text(one)):
                self.visit(one)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.bind(node.name, METHOD if self._in_class else FUNCTION)
        for one in node.decorator_list:
            self.visit(one)
        self.visit(node.args)
        if node.returns is not None:
            self._annotation(node.returns)
        self._body(node.body, "function")

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.bind(node.name, CLASS)
        if self._in_class:
            self.bind(node.name, CLASSVAR)
        bases = [_dotted(base) for base in node.bases]
        for base in node.bases:
            self.visit(base)
        for word in node.keywords:
            if word.arg != "metaclass":
                self.found.names.stays.setdefault(word.arg or "", "given to a class")
            self.visit(word.value)
        for one in node.decorator_list:
            self.visit(one)
        members = {n.name for n in node.body if isinstance(n, (*_DEFS, ast.ClassDef))} | set(
            _assigned(node.body)
        )
        self.found.classes.append((node.name, tuple(bases), frozenset(members)))
        self._body(node.body, "class")

    def visit_arg(self, node: ast.arg) -> None:
        self.bind(node.arg, PARAM)
        if node.annotation is not None:
            self._annotation(node.annotation)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.found.names.uses.add(node.id)
            if node.id in _DYNAMIC:
                self.found.dynamic.add(node.id)
        else:
            self.bind(node.id, CLASSVAR if self._in_class else VARIABLE)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if self._in_class and isinstance(node.target, ast.Name):
            self.bind(node.target.id, FIELD)
        else:
            self.visit(node.target)
        self._annotation(node.annotation)
        if node.value is not None:
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self.visit(target)
        if any(isinstance(t, ast.Name) and t.id in _LISTS for t in node.targets) and _texts_only(node.value):
            return  # names, that are changed with the others
        self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        match node.test:
            case ast.Compare(left=ast.Name(id="__name__"), comparators=[ast.Constant(value="__main__")]):
                for one in (*node.body, *node.orelse):
                    self.visit(one)
            case _:
                self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.found.names.attributes.add(node.attr)
        if not isinstance(node.ctx, ast.Load):
            self.bind(node.attr, ATTRIBUTE)
        if node.attr in _DYNAMIC:
            self.found.dynamic.add(node.attr)
        self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        callee = _last(node.func)
        for word in node.keywords:
            if word.arg is None:
                self.found.spread = True
            else:
                plain = isinstance(node.func, ast.Name)
                self.found.names.keywords.setdefault(word.arg, set()).add((callee, plain))
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.found.imported(alias.name, whole=True)
            if alias.asname:
                self.bind(alias.asname, VARIABLE)
            if alias.name.partition(".")[0] in _DYNAMIC:
                self.found.dynamic.add(alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        ours = node.level > 0 or self.found.is_ours(module)
        if not ours:
            self.found.imported(module, whole=False)
        for alias in node.names:
            if alias.name == "*":
                if not ours:
                    self.found.stars.add(module)
                continue
            if ours:
                self.found.names.uses.add(alias.name)
                if alias.name in self.found.modules:
                    self.found.names.module_objects = True
            else:
                self.found.outside.add(alias.name)
                if alias.name in _DYNAMIC:
                    self.found.dynamic.add(alias.name)
            if alias.asname:
                self.bind(alias.asname, VARIABLE)
        if ours and module:
            self.found.names.uses.update(module.split("."))

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.bind(node.name, VARIABLE)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            self.bind(node.name, VARIABLE)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self.bind(node.name, VARIABLE)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.bind(node.rest, VARIABLE)
        self.generic_visit(node)

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        for name in node.kwd_attrs:
            self.found.names.stays.setdefault(name, "stands in a pattern")
        self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        for before, after in zip(node.values, node.values[1:], strict=False):
            match before, after:
                case ast.Constant(value=str(text)), ast.FormattedValue(value=value) if text.rstrip().endswith(
                    "="
                ):
                    # f"{x=}" shows the name; the parser keeps nothing else of it
                    for inner in ast.walk(value):
                        for name in (getattr(inner, "id", None), getattr(inner, "attr", None)):
                            if name and re.search(rf"\b{re.escape(name)}\b", text):
                                self.found.names.stays.setdefault(name, "shown by an f-string")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.found.texts.append(node.value)

    def _annotation(self, node: ast.expr) -> None:
        """Texts in annotations are code, but for those of ``Literal``."""
        if "Literal" in {_last(n) for n in ast.walk(node) if isinstance(n, (ast.Name, ast.Attribute))}:
            self.visit(node)
            return
        for inner in ast.walk(node):
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                try:
                    self.visit(parse_expression(inner.value))
                except (SyntaxError, ValueError, RecursionError):
                    self.found.texts.append(inner.value)
            elif isinstance(inner, ast.Name):
                self.found.names.uses.add(inner.id)
            elif isinstance(inner, ast.Attribute):
                self.found.names.attributes.add(inner.attr)


class Found:
    """All files together, before it is judged."""

    def __init__(self, modules: frozenset[str]) -> None:
        self.names = Names()
        self.modules = modules
        self.texts: list[str] = []
        self.dynamic: set[str] = set()
        self.outside: set[str] = set()
        """Names that imports bind to things of others."""
        self.libraries: set[str] = set()
        self.stars: set[str] = set()
        self.classes: list[tuple[str, tuple[str, ...], frozenset[str]]] = []
        self.spread = False
        """Some call has ``**arguments``."""

    def is_ours(self, module: str) -> bool:
        root = module.partition(".")[0]
        return root in self.modules and root not in STDLIB

    def imported(self, module: str, *, whole: bool) -> None:
        parts = module.split(".")
        if self.is_ours(module):
            self.names.uses.update(parts)
            self.names.module_objects |= whole
            return
        self.libraries.add(module)
        self.outside.update(parts)


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _texts_only(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    return isinstance(node, (ast.List, ast.Tuple, ast.Set)) and all(map(_texts_only, node.elts))


def _last(node: ast.expr | ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def _assigned(body: Sequence[ast.stmt]) -> Iterator[str]:
    for node in body:
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        yield from (t.id for t in targets if isinstance(t, ast.Name))
