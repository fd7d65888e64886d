"""Which tests leave nothing behind in the examiner, so that several may run one after the other in one fork of it.

Conservative: a test is plain if its code and the task's prelude use nothing but names of their own, the built-in
functions without side effects, the modules listed here and those of the task, and never assign to an attribute of a
module. Everything else gets a fork of its own. The solution's side is forked for every test in any case.
"""

from __future__ import annotations

import ast

_MODULES = frozenset(
    "__future__ abc array base64 bisect calendar cmath collections contextlib copy dataclasses datetime decimal enum "
    "fractions functools hashlib heapq io itertools json math numbers operator pprint random re statistics string "
    "textwrap time types typing unicodedata uuid zlib".split()
)
_IMPURE = frozenset(
    "__import__ breakpoint compile delattr eval exec exit globals input locals open quit setattr vars __builtins__ "
    "__loader__ __spec__".split()
)
_IMPURE_ATTRIBUTES = frozenset("getcontext setcontext modules register".split())


def is_plain(source: str, modules: frozenset[str]) -> bool:
    """Whether this code leaves nothing behind. ``modules``: the task's own, which are remote."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return False
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            if any(n not in modules and n.partition(".")[0] not in _MODULES for n in names):
                return False
            imported.update((a.asname or a.name).partition(".")[0] for a in node.names)
    return not any(_leaves_something(node, imported) for node in ast.walk(tree))


def _leaves_something(node: ast.AST, imported: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in _IMPURE or node.id in _IMPURE_ATTRIBUTES
    if isinstance(node, ast.Attribute):
        if node.attr in _IMPURE_ATTRIBUTES or (node.attr.startswith("__") and node.attr not in _HARMLESS):
            return True
        stored = not isinstance(node.ctx, ast.Load)
        return stored and isinstance(_base(node), ast.Name) and _base(node).id in imported  # type: ignore[attr-defined]
    if isinstance(node, ast.Subscript):
        stored = not isinstance(node.ctx, ast.Load)
        return stored and isinstance(_base(node), ast.Name) and _base(node).id in imported  # type: ignore[attr-defined]
    return isinstance(node, (ast.AsyncFunctionDef, ast.Await))


_HARMLESS = frozenset(
    "__name__ __class__ __doc__ __init__ __eq__ __lt__ __hash__ __len__ __iter__ __cause__ __dict__".split()
)


def _base(node: ast.AST) -> ast.AST:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node
