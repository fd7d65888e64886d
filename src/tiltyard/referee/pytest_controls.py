"""Controls: test files in which one expectation of each test function is altered, and nothing else. Pure text.

The last comparison of a test with an expected value is the one: ``== 2.5`` becomes ``== 3.5``; where the value is a variable,
that is given another one, for whoever reads it in the test's frame. Where there is no comparison, an expected exception
is altered, then any other assertion, inverted; a test without an assertion gets one at its end that fails. Ids and
names stay as they are, so that a submission has little to tell a control from the real file by but the right answer
itself. Whether a control is one (the reference fails it) is found out by running it.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from functools import lru_cache

from tiltyard.parsing import parse_source
from tiltyard.referee.once import once_a_task
from tiltyard.referee.pytest_files import REMEMBERED, layout
from tiltyard.task import Files, Task

_EQUAL = frozenset(
    "assertEqual assertEquals assertAlmostEqual assertListEqual assertDictEqual assertTupleEqual assertSetEqual "
    "assertCountEqual assertMultiLineEqual assertSequenceEqual".split()
)
_RAISES = frozenset({"raises", "assertRaises", "assertRaisesRegex", "warns", "assertWarns"})
_OPPOSITE = {
    "assertTrue": "assertFalse", "assertIn": "assertNotIn", "assertIsNone": "assertIsNotNone", "assertIs": "assertIsNot",
    "assertIsInstance": "assertNotIsInstance", "assertGreater": "assertLessEqual", "assertLess": "assertGreaterEqual",
    "assertNotEqual": "assertEqual", "assertRegex": "assertNotRegex", "assertNotAlmostEqual": "assertAlmostEqual",
}  # fmt: skip
_OPPOSITE |= {there: here for here, there in _OPPOSITE.items() if there not in _OPPOSITE}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_OTHER_ERRORS = ("ZeroDivisionError", "LookupError")

Change = tuple[int, ast.AST, str, bool]
"""How much it says (more is better), a place, a text, and whether this stands before that place or instead of it."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_COMPOUND = (
    ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match, ast.FunctionDef,
    ast.AsyncFunctionDef, ast.ClassDef,
)  # fmt: skip


@once_a_task(REMEMBERED)
def altered(task: Task) -> Files:
    """The altered files of a task's suite, by path."""
    plan = layout(task)
    return Files({path: alter(plan.tests[path]) for path in plan.ids if path in plan.tests})


@lru_cache(maxsize=REMEMBERED)  # many tasks of one repository have the same test files
def alter(source: bytes) -> bytes:
    """A test file with an altered expectation in each test function. What does not parse stays as it is."""
    try:
        tree = parse_source(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    lines = source.split(b"\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    changes: list[tuple[int, int, bytes]] = []
    for function in _tests(tree):
        best: Change | None = None
        for change in _changes(function):
            if best is None or change[0] >= best[0]:
                best = change
        if best is None:
            changes.append(_at_end(function, starts))
        else:
            _, node, text, before = best
            first = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
            last = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
            changes.append((first, first if before else last, text.encode()))
    out = source
    for first, last, data in sorted(changes, reverse=True):
        out = out[:first] + data + out[last:]
    try:
        with warnings.catch_warnings():  # of the tests' own style
            warnings.simplefilter("ignore")
            compile(out, "altered", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return source
    return out


def _tests(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    todo: list[ast.stmt] = [*tree.body]
    while todo:
        node = todo.pop()
        if isinstance(node, _FUNCTIONS):
            if node.name.startswith("test"):
                yield node
        else:
            todo += [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.stmt)]


def _at_end(function: ast.FunctionDef | ast.AsyncFunctionDef, starts: list[int]) -> tuple[int, int, bytes]:
    last = function.body[-1]
    place = starts[(last.end_lineno or last.lineno) - 1] + (last.end_col_offset or 0)
    first = function.body[0]
    same_line = first.lineno == function.lineno
    text = "; assert False" if same_line else f"\n{' ' * first.col_offset}assert False"
    return place, place, text.encode()


def _changes(function: _Function) -> Iterator[Change]:
    """All that could be altered in a test, in the order of its lines."""
    found = []
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            found.append((node.lineno, node.col_offset, _of_assert(function, node)))
        elif isinstance(node, ast.Call):
            change = _of_call(function, node)
            if change is not None:
                found.append((node.lineno, node.col_offset, change))
    yield from (change for _, _, change in sorted(found, key=lambda item: item[:2]))


def _of_assert(function: _Function, node: ast.Assert) -> Change:
    test = node.test
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Eq, ast.Is)):
        return _other_side(function, _expected(test.left, test.comparators[0]))
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return 1, test, f"({ast.unparse(test.operand)})", False
    return 1, test, f"(not ({ast.unparse(test)}))", False


def _other_side(function: _Function, side: ast.expr) -> Change:
    """Another expectation. Where it is a variable, this gets another value: who reads it from the test's frame, and
    returns it, must find the altered one."""
    inner = (
        side.args[0]
        if isinstance(side, ast.Call) and _name(side.func).endswith("approx") and side.args
        else side
    )
    if isinstance(inner, ast.Name):
        binding = None
        for node in ast.walk(function):
            if getattr(node, "lineno", inner.lineno) >= inner.lineno or isinstance(node, ast.arg):
                continue
            if isinstance(node, ast.Assign) and [_name(target) for target in node.targets] == [inner.id]:
                binding = node if binding is None or node.lineno > binding.lineno else binding
        if isinstance(binding, ast.Assign):
            return 3, binding.value, other_value(binding.value), False
        for loop in ast.walk(function):
            if isinstance(loop, (ast.For, ast.AsyncFor)) and inner.id in _names(loop.target):
                return _rebound(inner.id, loop.body[0])
        if inner.id in {arg.arg for arg in (*function.args.args, *function.args.kwonlyargs)}:
            return _rebound(inner.id, function.body[0])
    return 3, side, other_value(side), False


def _rebound(name: str, before: ast.stmt) -> Change:
    end = f"\n{' ' * before.col_offset}" if isinstance(before, _COMPOUND) else "; "
    return 3, before, f"{name} = ({name}, 0){end}", True


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _of_call(function: _Function, node: ast.Call) -> Change | None:
    called = node.func
    name = (
        called.attr
        if isinstance(called, ast.Attribute)
        else called.id
        if isinstance(called, ast.Name)
        else ""
    )
    if name in _EQUAL and len(node.args) >= 2:
        return _other_side(function, _expected(node.args[0], node.args[1]))
    if name in _RAISES and node.args:
        said = ast.unparse(node.args[0])
        return 2, node.args[0], next(other for other in _OTHER_ERRORS if other not in said), False
    if name in _OPPOSITE and isinstance(called, ast.Attribute):
        return 1, called, f"{ast.unparse(called.value)}.{_OPPOSITE[name]}", False
    return None


def _expected(left: ast.expr, right: ast.expr) -> ast.expr:
    """Which side of a comparison is the expectation: a literal, else what calls nothing, else the right one."""
    for plain in (_is_literal, _calls_nothing):
        if plain(right):
            return right
        if plain(left):
            return left
    return right


def _is_literal(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and _name(node.func).endswith("approx") and node.args:
        return _is_literal(node.args[0])
    kinds = (ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.UnaryOp, ast.USub, ast.UAdd, ast.Load)
    return all(isinstance(part, kinds) for part in ast.walk(node))


def _calls_nothing(node: ast.expr) -> bool:
    return not any(isinstance(part, (ast.Call, ast.Await)) for part in ast.walk(node))


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def other_value(node: ast.expr) -> str:
    """Python for a value that differs from what ``node`` says, of the same kind where it can be told."""
    if isinstance(node, ast.Constant):
        return repr(_other(node.value))
    if isinstance(node, ast.Call) and _name(node.func).endswith("approx") and node.args:
        rest = [ast.unparse(arg) for arg in node.args[1:]]
        rest += [f"{keyword.arg}={ast.unparse(keyword.value)}" for keyword in node.keywords if keyword.arg]
        return f"{ast.unparse(node.func)}({', '.join([other_value(node.args[0]), *rest])})"
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.operand, ast.Constant)
        and not isinstance(node.op, ast.Not)
    ):
        sign = "-" if isinstance(node.op, ast.USub) else ""
        return f"{sign}{_other(node.operand.value)!r}"
    if (
        isinstance(node, (ast.List, ast.Tuple, ast.Set))
        and node.elts
        and not isinstance(node.elts[-1], ast.Starred)
    ):
        inner = ", ".join([*(ast.unparse(e) for e in node.elts[:-1]), other_value(node.elts[-1])])
        ends = {"List": "[]", "Tuple": "()", "Set": "{}"}[type(node).__name__]
        comma = "," if isinstance(node, ast.Tuple) and len(node.elts) == 1 else ""
        return f"{ends[0]}{inner}{comma}{ends[1]}"
    if isinstance(node, ast.Dict) and node.keys and node.keys[-1] is not None:
        pairs = [
            f"{ast.unparse(k)}: {ast.unparse(v)}" if k is not None else f"**{ast.unparse(v)}"
            for k, v in zip(node.keys[:-1], node.values[:-1], strict=True)
        ]
        pairs.append(f"{ast.unparse(node.keys[-1])}: {other_value(node.values[-1])}")
        return f"{{{', '.join(pairs)}}}"
    if isinstance(node, ast.List):
        return "[0]"
    if isinstance(node, ast.Dict):
        return "{0: 0}"
    if isinstance(node, ast.Tuple):
        return "(0,)"
    return f"({ast.unparse(node)}, 0)"


def _other(value: object) -> object:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 2 + 1.5 if value == value and abs(value) < 1e300 else 1.5
    if isinstance(value, complex):
        return value + 1
    if isinstance(value, str):
        return value[:-1] + ("b" if value[-1:] == "a" else "a")
    if isinstance(value, bytes):
        return value[:-1] + (b"b" if value[-1:] == b"a" else b"a")
    return 0 if value is None else None
