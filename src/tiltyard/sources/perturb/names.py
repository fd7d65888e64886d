"""Every name in a task's code: who binds it, how it is used, and why it must stay as it is.

A name that the task itself binds can become another one everywhere at once, in all its files and tests, and the program
stays the same, unless something looks it up that is not code of the task, or looks it up by its text. Here the first
are found (attributes of Python's own objects, arguments of functions of others, names that a base class of others
expects) and the second (texts, data, ``getattr`` and the like), and such names stay. Source is parsed, never executed.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tiltyard.parsing import parse_expression, parse_source
from tiltyard.sources.perturb.external import BUILTINS, FIXTURES, HOOKS, STDLIB, attributes, exported
from tiltyard.sources.perturb.parts import Key, Parts, split_call, words
from tiltyard.task import Task

_DYNAMIC = frozenset(
    "getattr setattr delattr hasattr attrgetter methodcaller __dict__ vars locals globals eval exec dir __import__ "
    "import_module inspect pickle __name__ __qualname__ __getattr__ __setattr__ __getattribute__ __doc__ pprint "
    "asdict astuple fields _asdict _fields __annotations__ get_type_hints __slots__ namedtuple make_dataclass "
    "signature doctest getmembers __match_args__ patch monkeypatch argparse".split()
)
"""What may look a name up by its text, or show it."""
_LISTS = frozenset({"__all__", "__slots__", "__match_args__"})
_PLACES = frozenset("conftest setup tests test testing docs src noxfile tasks".split())
_ENUMS = re.compile(r"(Enum|Flag|TypedDict|Structure|Union)$")
_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef)
_QUOTED_USE = re.compile(r"(?P<before>[.'\"`%{:]?)(?P<word>[^\W\d]\w*)(?P<after>[.('\"`=}!]?)")

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


class _Walk(ast.NodeVisitor):
    """One file."""

    def __init__(self, found: _Found) -> None:
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


class _Found:
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
    found = _Found(modules)
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
        _Walk(found).visit(parse_source(text))
        if key[0] in ("reference", "visible", "hidden", "prelude", "gold"):
            names.relevant |= words(text)
    for text in parts.data:
        names.every |= words(text)
    names.every |= words(task.prompt)
    _judge(found, task, parts)
    return names


def _judge(found: _Found, task: Task, parts: Parts) -> None:
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
    _keep(
        names, (n for n in names.bound if n in ("_", "self", "cls", "args", "kwargs")), "a custom of Python"
    )
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


def _by_class(found: _Found) -> None:
    """What a class has that derives from one of others may be what that one expects."""
    ours = {name for name, _, _ in found.classes}
    for name, bases, members in found.classes:
        for base in bases:
            last = base.rpartition(".")[2]
            if _ENUMS.search(last):
                _keep(found.names, members, f"a member of {name}, whose base is {base}")
            elif last not in ours and last not in BUILTINS and base.partition(".")[0] not in _stdlib(found):
                _keep(found.names, members, f"may be expected by {base}, the base of {name}")


def _stdlib(found: _Found) -> set[str]:
    """Names that lead to things of the standard library, whose attributes are known."""
    roots = {module.partition(".")[0] for module in found.libraries}
    return found.outside if roots <= STDLIB | {"pytest"} else roots & STDLIB


def _by_text(found: _Found, parts: Parts) -> None:
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


def _by_keyword(found: _Found) -> None:
    """A name that is given by keyword to a function of others belongs to that function."""
    names = found.names
    for word, callees in names.keywords.items():
        for callee, plain in callees:
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
