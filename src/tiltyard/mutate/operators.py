"""The mutation operators. Each looks at one libcst node and says which bytes it would replace by what.

``changes(module)`` yields every change of every operator; nothing is filtered here but what is never worth changing
(docstrings, annotations, decorators, imports, texts of exceptions). A change may not compile, or mean the same as
another one: ``find`` sees to that. Imports libcst: import this module only where it is installed.
"""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper


@dataclass(frozen=True, slots=True)
class Change:
    """The bytes ``start`` to ``end`` become ``text``; see ``model.Mutation``."""

    start: int
    end: int
    text: str
    operator: str
    scope: str


Found = Iterator[tuple[str, int, int, str]]
"""(operator, start, end, text)."""

_BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_TURNED = {
    "<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "==", "is": "is not", "is not": "is", "in": "not in",
    "not in": "in",
}  # fmt: skip
_ARITHMETIC = {
    "+": "-", "-": "+", "*": "+", "/": "//", "//": "/", "%": "//", "**": "*", "&": "|", "|": "&", "^": "&", "<<": ">>",
    ">>": "<<",
}  # fmt: skip
_RELATED = {
    "min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor", "sorted": "list",
    "strip": "lstrip", "lstrip": "rstrip", "rstrip": "lstrip", "find": "rfind", "rfind": "find", "index": "rindex",
    "startswith": "endswith", "endswith": "startswith", "upper": "lower", "lower": "upper", "casefold": "lower",
    "split": "rsplit", "rsplit": "split", "partition": "rpartition", "rpartition": "partition", "keys": "values",
    "bisect_left": "bisect_right", "bisect_right": "bisect_left", "bisect": "bisect_left", "insort": "insort_left",
    "popleft": "pop", "appendleft": "append", "union": "intersection", "intersection": "union", "isdigit": "isalnum",
    "isalpha": "isalnum", "setdefault": "get", "removeprefix": "removesuffix", "ljust": "rjust", "rjust": "ljust",
    "extend": "append", "discard": "remove",
}  # fmt: skip
_DROPPED = frozenset({"abs", "reversed", "round", "str", "int", "float"})
_COPIES = frozenset({"list", "dict", "set", "tuple", "deepcopy"})
_RAISED = {
    "ValueError": "TypeError",
    "TypeError": "ValueError",
    "KeyError": "IndexError",
    "IndexError": "KeyError",
}
_CONSTANT_NAMES = frozenset({"__all__", "__slots__"})


def changes(module: cst.Module) -> Iterator[Change]:
    """Every change of every operator, in no particular order."""
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
    finder = _Finder(module)
    wrapper.visit(finder)
    yield from finder.found


class _Finder(cst.CSTVisitor):
    """Walks the module, knowing in which function it is and what it must leave alone."""

    METADATA_DEPENDENCIES = (ByteSpanPositionProvider,)

    def __init__(self, module: cst.Module) -> None:
        super().__init__()
        self.module = module
        self.data = module.bytes  # which libcst makes anew each time
        self.found: list[Change] = []
        self._scope: list[str] = []
        self._functions: list[cst.FunctionDef] = []
        self._raising = 0
        self._default = 0
        self._labels: set[int] = set()
        """Names that name no variable: attributes and keywords."""
        self._kinds: list[dict[str, str]] = []
        """For each function around: what kind of value its variables hold, as far as the source says."""
        self._targets: set[int] = set()
        """Names that are assigned to."""

    # -- what the operators ask ------------------------------------------------------------------------------------

    def code(self, node: cst.CSTNode) -> str:
        """The node's source, with its own parentheses."""
        if isinstance(node, cst.BaseExpression):
            start, end = self.full(node)
            return self.data[start:end].decode()
        return self.module.code_for_node(node)

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Where it stands, without its own parentheses."""
        where = self.get_metadata(ByteSpanPositionProvider, node)
        return where.start, where.start + where.length

    def full(self, node: cst.BaseExpression) -> tuple[int, int]:
        """Where it stands, with its own parentheses."""
        start, end = self.span(node)
        return (
            self.span(node.lpar[0])[0] if node.lpar else start,
            self.span(node.rpar[-1])[1] if node.rpar else end,
        )

    def parameters(self) -> list[str]:
        """The names of the parameters of the function around."""
        if not self._functions:
            return []
        at = self._functions[-1].params
        return [p.name.value for p in (*at.posonly_params, *at.params, *at.kwonly_params)]

    def alike(self, node: cst.Name) -> list[str]:
        """The other variables of the function that hold the same kind of value, in the order of their names."""
        if not self._kinds or id(node) in self._targets or id(node) in self._labels:
            return []
        kinds = self._kinds[-1]
        kind = kinds.get(node.value)
        return sorted(name for name in kinds if kind and kinds[name] == kind and name != node.value)

    # -- walking -----------------------------------------------------------------------------------------------------

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, (cst.Annotation, cst.Decorator, cst.Import, cst.ImportFrom)) or _is_main_guard(
            node
        ):
            return False
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            self._scope.append(node.name.value)
        if isinstance(node, cst.FunctionDef):
            self._functions.append(node)
            self._kinds.append(_kinds_of(self, node))
        if isinstance(
            node, (cst.AssignTarget, cst.AugAssign, cst.For, cst.CompFor, cst.NamedExpr, cst.AsName)
        ):
            self._targets |= _names_in(node.name if isinstance(node, cst.AsName) else node.target)
        if isinstance(node, cst.Attribute):
            self._labels.add(id(node.attr))
        if isinstance(node, cst.Arg) and node.keyword is not None:
            self._labels.add(id(node.keyword))
        self._raising += isinstance(node, cst.Raise)
        self._default += isinstance(node, cst.Param)
        if _is_docstring(node) or _is_fixed_name(node):
            return False
        texts = isinstance(node, (cst.SimpleString, cst.ConcatenatedString, cst.FormattedStringText))
        if not (self._raising and texts):
            for operator in _OPERATORS.get(type(node), ()):
                for name, start, end, text in operator(self, node):
                    name = (
                        "default" if self._default and name in ("constant", "boolean", "arithmetic") else name
                    )
                    self.found.append(Change(start, end, text, name, ".".join(self._scope)))
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        node = original_node
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            self._scope.pop()
        if isinstance(node, cst.FunctionDef):
            self._functions.pop()
            self._kinds.pop()
        self._raising -= isinstance(node, cst.Raise)
        self._default -= isinstance(node, cst.Param)


def _is_main_guard(node: cst.CSTNode) -> bool:
    return (
        isinstance(node, cst.If)
        and isinstance(node.test, cst.Comparison)
        and _named(node.test.left) == "__name__"
    )


def _is_docstring(node: cst.CSTNode) -> bool:
    match node:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString())]):
            return True
    return False


def _is_fixed_name(node: cst.CSTNode) -> bool:
    match node:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
            return name in _CONSTANT_NAMES
    return False


def _named(node: cst.BaseExpression) -> str:
    return node.value if isinstance(node, cst.Name) else ""


# ---------------------------------------------------------------------------------------------------- the operators


def _comparison(f: _Finder, node: cst.Comparison) -> Found:
    for target in node.comparisons:
        at = f.span(target.operator)
        token = " ".join(f.code(target.operator).split())
        if token in _BOUNDARY:
            yield "boundary", *at, _BOUNDARY[token]
        if token in _TURNED:
            yield "comparison", *at, _TURNED[token]


def _binary(f: _Finder, node: cst.BinaryOperation) -> Found:
    token = f.code(node.operator).strip()
    text = isinstance(node.left, (cst.SimpleString, cst.ConcatenatedString, cst.FormattedString))
    if token in _ARITHMETIC and not (token == "%" and text):
        yield "arithmetic", *f.span(node.operator), _ARITHMETIC[token]


def _augmented(f: _Finder, node: cst.AugAssign) -> Found:
    token = f.code(node.operator).strip().removesuffix("=")
    if token in _ARITHMETIC:
        yield "arithmetic", *f.span(node.operator), f"{_ARITHMETIC[token]}="


def _unary(f: _Finder, node: cst.UnaryOperation) -> Found:
    inner = f"({f.code(node.expression)})"
    if isinstance(node.operator, cst.Not):
        yield "boolean", *f.span(node), inner
    else:
        yield "arithmetic", *f.span(node), inner


def _integer(f: _Finder, node: cst.Integer) -> Found:
    value = node.evaluated_value
    yield "constant", *f.span(node), str(value + 1)
    if value > 0:
        yield "constant", *f.span(node), str(value - 1)


def _float(f: _Finder, node: cst.Float) -> Found:
    value = float(node.evaluated_value)
    yield "constant", *f.span(node), f"({value!r} + 1.0)" if abs(value) < 1e15 else f"({value!r} / 2)"


def _string(f: _Finder, node: cst.SimpleString) -> Found:
    value = node.evaluated_value
    if isinstance(value, str):
        yield "constant", *f.span(node), repr(value[:-1] if value else "x")
        yield "constant", *f.span(node), repr(value + "x" if value else " ")
    else:
        yield "constant", *f.span(node), repr(value[:-1] if value else b"x")


def _text(f: _Finder, node: cst.FormattedStringText) -> Found:
    start, end = f.span(node)
    if node.value.strip():
        yield "constant", end, end, "x"
    elif node.value:
        yield "constant", start, end, ""


def _name(f: _Finder, node: cst.Name) -> Found:
    if node.value in ("True", "False"):
        yield "boolean", *f.span(node), "False" if node.value == "True" else "True"
        return
    others = f.parameters()
    if node.value in others and not f._default and len(others) > 1 and id(node) not in f._labels:
        after = others[(others.index(node.value) + 1) % len(others)]
        if "self" not in (after, node.value) and "cls" not in (after, node.value):
            yield "variable", *f.span(node), after
    if not f._default:
        for other in f.alike(node)[:2]:
            yield "local", *f.span(node), other


def _names_in(node: cst.CSTNode) -> set[int]:
    """The names that a target assigns to: not those in the subscripts and attributes of it."""
    if isinstance(node, cst.Name):
        return {id(node)}
    if isinstance(node, (cst.Tuple, cst.List, cst.Element, cst.StarredElement)):
        return set().union(*(_names_in(child) for child in node.children))
    return set()


_KINDS = {
    "len": "int", "int": "int", "sum": "int", "ord": "int", "range": "int", "str": "str", "repr": "str", "list": "list",
    "sorted": "list", "dict": "dict", "set": "set", "tuple": "tuple", "float": "float",
}  # fmt: skip
_LITERALS: dict[type, str] = {
    cst.Integer: "int", cst.Float: "float", cst.SimpleString: "str", cst.FormattedString: "str", cst.List: "list",
    cst.ListComp: "list", cst.Dict: "dict", cst.DictComp: "dict", cst.Set: "set", cst.SetComp: "set",
    cst.Comparison: "bool",
}  # fmt: skip


def _kinds_of(f: _Finder, function: cst.FunctionDef) -> dict[str, str]:
    """What kind of value each variable holds: as annotated, or by the first thing that is assigned to it."""
    kinds: dict[str, str] = {}
    at = function.params
    for p in (*at.posonly_params, *at.params, *at.kwonly_params):
        if p.annotation is not None:
            kinds[p.name.value] = " ".join(f.code(p.annotation.annotation).split())
    _gather(function.body, kinds)
    return kinds


def _gather(node: cst.CSTNode, kinds: dict[str, str]) -> None:
    if isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
        return
    match node:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value):
            if kind := _kind(value):
                kinds.setdefault(name, kind)
        case cst.For(target=cst.Name(value=name), iter=cst.Call(func=cst.Name(value="range"))):
            kinds.setdefault(name, "int")
    for child in node.children:
        _gather(child, kinds)


def _kind(value: cst.BaseExpression) -> str:
    match value:
        case cst.Call(func=cst.Name(value=name)):
            return _KINDS.get(name, "")
        case cst.BinaryOperation(left=left, operator=cst.Add() | cst.Subtract() | cst.FloorDivide()):
            return _kind(left)
    return _LITERALS.get(type(value), "")


def _boolean(f: _Finder, node: cst.BooleanOperation) -> Found:
    yield "boolean", *f.span(node.operator), "or" if isinstance(node.operator, cst.And) else "and"
    yield "boolean", *f.span(node), f.code(node.left)
    yield "boolean", *f.span(node), f.code(node.right)


def _if(f: _Finder, node: cst.If | cst.IfExp | cst.CompIf) -> Found:
    yield "condition", *f.full(node.test), f"(not ({f.code(node.test)}))"
    yield "condition", *f.full(node.test), "(True)"
    yield "condition", *f.full(node.test), "(False)"


def _guard(f: _Finder, node: cst.If) -> Found:
    """The whole statement gone, or its body alone: what is left looks as if nobody had thought of the case."""
    if node.orelse is not None or not isinstance(node.body, cst.IndentedBlock):
        return
    start, end = f.span(node)
    if not f.data[start:].startswith(b"if"):
        return  # an elif
    yield "guard", start, end, "pass"
    lines = f.data[slice(*f.span(node.body))].decode().split("\n")
    column = start - (f.data.rfind(b"\n", 0, start) + 1)
    inner = len(node.body.indent if node.body.indent is not None else f.module.default_indent)
    if all(not line.strip() or line.startswith(" " * (column + inner)) for line in lines[1:]):
        yield "guard", start, end, "\n".join([lines[0], *(line[inner:] for line in lines[1:])])


def _one_side(f: _Finder, node: cst.IfExp) -> Found:
    yield "guard", *f.span(node), f.code(node.body)
    yield "guard", *f.span(node), f.code(node.orelse)


def _filter(f: _Finder, node: cst.CompFor) -> Found:
    for test in node.ifs:
        start, end = f.span(test)
        while start and f.data[start - 1 : start] == b" ":
            start -= 1
        yield "guard", start, end, ""


def _while(f: _Finder, node: cst.While) -> Found:
    if _named(node.test) != "True":
        yield "condition", *f.full(node.test), "(False)"
        yield "condition", *f.full(node.test), f"(not ({f.code(node.test)}))"


def _line(f: _Finder, node: cst.SimpleStatementLine | cst.SimpleStatementSuite) -> Found:
    """A statement that has its line for itself, removed."""
    if len(node.body) != 1:
        return
    statement = node.body[0]
    at = f.span(statement)
    match statement:
        case cst.Expr(value=cst.Call() | cst.Await() | cst.Yield()):
            yield "statement", *at, "pass"
        case cst.AugAssign() | cst.Raise() | cst.Del() | cst.Assert():
            yield "statement", *at, "pass"
        case cst.Assign(targets=[cst.AssignTarget(target=target)]) if _is_change(f, target):
            yield "statement", *at, "pass"
        case cst.Return() if f._functions and _is_early(f._functions[-1], node):
            yield "statement", *at, "pass"
        case cst.Break():
            yield "loop", *at, "continue"
            yield "statement", *at, "pass"
        case cst.Continue():
            yield "loop", *at, "break"
            yield "statement", *at, "pass"


def _is_change(f: _Finder, target: cst.BaseExpression) -> bool:
    """Whether an assignment changes what was there, so that without it the name is bound all the same."""
    if isinstance(target, (cst.Attribute, cst.Subscript)):
        return True
    if not isinstance(target, cst.Name) or not f._functions:
        return False
    function = f._functions[-1]
    return target.value in f.parameters() or _bindings(function.body, target.value) > 1


def _bindings(node: cst.CSTNode, name: str) -> int:
    mine = (
        isinstance(node, cst.AssignTarget) and isinstance(node.target, cst.Name) and node.target.value == name
    )
    return int(mine) + sum(_bindings(child, name) for child in node.children)


def _is_early(function: cst.FunctionDef, line: cst.CSTNode) -> bool:
    return function.body is not line and function.body.body[-1] is not line


def _return(f: _Finder, node: cst.Return) -> Found:
    if node.value is not None and _named(node.value) != "None":
        yield "return", *f.full(node.value), "(None)"


def _raise(f: _Finder, node: cst.Raise) -> Found:
    named = node.exc.func if isinstance(node.exc, cst.Call) else node.exc
    if isinstance(named, cst.Name):
        own = not hasattr(builtins, named.value)
        yield "exception", *f.span(named), "Exception" if own else _RAISED.get(named.value, "RuntimeError")


def _handler(f: _Finder, node: cst.ExceptHandler) -> Found:
    if node.type is None:
        return
    if _named(node.type) not in ("Exception", "BaseException"):
        yield "exception", *f.full(node.type), "Exception"
    if isinstance(node.type, cst.Tuple):
        for element in node.type.elements:
            yield "exception", *f.full(node.type), f.code(element.value)
    if isinstance(node.body, cst.IndentedBlock) and len(node.body.body) == 1:
        yield "exception", *f.span(node.body), "raise"


def _call(f: _Finder, node: cst.Call) -> Found:
    named = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
    name = _named(named)
    plain = [a for a in node.args if a.keyword is None and not a.star]
    if name in _RELATED and not (name in ("min", "max", "index") and not node.args):
        yield "call", *f.span(named), _RELATED[name]
    if len(plain) == len(node.args) == 1 and isinstance(node.func, cst.Name):
        if name in _DROPPED:
            yield "call", *f.span(node), f"({f.code(plain[0].value)})"
        if name in _COPIES:
            yield "copy", *f.span(node), f"({f.code(plain[0].value)})"
    if name == "copy" and not node.args and isinstance(node.func, cst.Attribute):
        yield "copy", *f.span(node), f.code(node.func.value)
    yield from _arguments(f, node, plain)
    if name == "range" and len(plain) == len(node.args):
        yield from _range(f, plain)


def _arguments(f: _Finder, node: cst.Call, plain: Sequence[cst.Arg]) -> Found:
    for one, two in itertools.pairwise(plain):
        a, b = f.code(one.value), f.code(two.value)
        if a != b and node.args.index(one) + 1 == node.args.index(two):
            yield "argument", f.full(one.value)[0], f.full(two.value)[1], f"{b}, {a}"
    for n, argument in enumerate(node.args):
        if argument.keyword is not None:
            start, end = f.span(argument)
            if n + 1 < len(node.args):
                end = f.span(node.args[n + 1])[0]
            elif n:
                start = f.span(node.args[n - 1])[1]
            yield "argument", start, end, ""


def _range(f: _Finder, plain: Sequence[cst.Arg]) -> Found:
    bounds = [f.code(a.value) for a in plain]
    if len(bounds) == 1:
        at = f.full(plain[0].value)
        yield "loop", *at, f"1, {bounds[0]}"
        stop = 0
    elif len(bounds) in (2, 3):
        yield "loop", *f.full(plain[0].value), f"{bounds[0]} + 1"
        stop = 1
    else:
        return
    yield "loop", *f.full(plain[stop].value), f"{bounds[stop]} - 1"
    yield "loop", *f.full(plain[stop].value), f"{bounds[stop]} + 1"


def _slice(f: _Finder, node: cst.Slice) -> Found:
    for bound in (node.lower, node.upper):
        if bound is not None:
            yield "slice", *f.full(bound), f"{f.code(bound)} + 1"
            yield "slice", *f.full(bound), f"{f.code(bound)} - 1"
            yield "slice", *f.full(bound), ""


def _subscript(f: _Finder, node: cst.Subscript) -> Found:
    match node.slice:
        case [cst.SubscriptElement(slice=cst.Slice(lower=None, upper=None, step=None))]:
            yield "copy", *f.span(node), f.code(node.value)


def _block(f: _Finder, node: cst.IndentedBlock | cst.Module) -> Found:
    """Two neighbouring simple statements in the other order."""
    for one, two in itertools.pairwise(node.body):
        match one, two:
            case cst.SimpleStatementLine(body=[a]), cst.SimpleStatementLine(body=[b]):
                fixed = (cst.Import, cst.ImportFrom, cst.Return, cst.Raise)
                if not (isinstance(a, fixed) or isinstance(b, fixed) or _is_docstring(one)):
                    (start, a_end), (b_start, end) = f.span(a), f.span(b)
                    between = f.data[a_end:b_start].decode()
                    yield "moved", start, end, f"{f.code(b)}{between}{f.code(a)}"


def _function(f: _Finder, node: cst.FunctionDef) -> Found:
    if not isinstance(node.body, cst.IndentedBlock):
        return
    start, end = f.span(node.body)
    if _is_docstring(node.body.body[0]) and len(node.body.body) > 1:
        start = f.span(node.body.body[1])[0]
    if f.data[start:end].strip() != b"pass":
        yield "body", start, end, "pass"


_OPERATORS: dict[type, tuple[Callable[..., Found], ...]] = {
    cst.Comparison: (_comparison,), cst.BinaryOperation: (_binary,), cst.AugAssign: (_augmented,),
    cst.UnaryOperation: (_unary,), cst.Integer: (_integer,), cst.Float: (_float,), cst.SimpleString: (_string,),
    cst.FormattedStringText: (_text,), cst.Name: (_name,), cst.BooleanOperation: (_boolean,), cst.If: (_if, _guard),
    cst.IfExp: (_if, _one_side), cst.CompIf: (_if,), cst.CompFor: (_filter,), cst.While: (_while,), cst.SimpleStatementLine: (_line,),
    cst.SimpleStatementSuite: (_line,), cst.Return: (_return,), cst.Raise: (_raise,), cst.ExceptHandler: (_handler,), cst.Call: (_call,),
    cst.Slice: (_slice,), cst.Subscript: (_subscript,), cst.IndentedBlock: (_block,), cst.FunctionDef: (_function,),
}  # fmt: skip
