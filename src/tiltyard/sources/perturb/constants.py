"""Another number in a task: the same in prompt, reference and tests, whose expectations are computed anew.

A number counts as the task's own if the prompt's prose says it once and the reference has it once, so that there is no
doubt that the one is the other; not those that are facts of the world (the days of a week), nor those that have a neighbour in prompt or reference that may follow from them. The
changed reference is run in a cell to say what tests and examples come to now. Kept only if everything that can be checked
agrees: every test that compares with something that can't be computed anew passes as it is, every example of the prompt is
right, and the old reference fails.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tiltyard.cells.protocol import Wall
from tiltyard.check.rename import libcst
from tiltyard.parsing import parse_expression, parse_source
from tiltyard.referee import Referee
from tiltyard.sources.perturb import prose
from tiltyard.sources.perturb.model import CantError, Change
from tiltyard.sources.perturb.parts import Key, Parts, put_together, split_call, taken_apart
from tiltyard.sources.perturb.recompute import ask, outputs
from tiltyard.task import Task, Test

_WORLD = frozenset(
    {
        4,
        7,
        8,
        10,
        12,
        16,
        24,
        26,
        28,
        29,
        30,
        31,
        32,
        36,
        52,
        60,
        64,
        90,
        100,
        127,
        128,
        180,
        255,
        256,
        360,
        365,
        366,
        400,
        512,
    }
    | {1000, 1024, 3600, 3999, 4000, 86400, 65535, 65536, 10**6, 10**9}
)
_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
).split()
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w]|\.\d)")
_SPLIT = re.compile(
    r"\s*(?:==|=>|->|➞|→|⇒|=|#+|//|returns?|should return|gives?|is|:)?\s*(?:#\s*)?(?:=>|->|→)?\s*"
)
_TRIES = 4


def other_constants(wall: Wall, task: Task, rng: random.Random) -> Change:
    """The task with one of its numbers changed. Raises CantError: there is none, or what was made does not agree."""
    if task.grading == "pytest":
        raise CantError("expectations in a suite are not computed anew")
    parts = taken_apart(task)
    found = list(_candidates(task, parts))
    if not found:
        raise CantError("no number is in prompt and reference, and the task's own")
    rng.shuffle(found)
    reason = ""
    for old in found[:_TRIES]:
        new = _other(old, parts, task, rng)
        try:
            made = _changed(wall, task, parts, old, new)
        except CantError as error:
            reason = reason or str(error)
            continue
        before = Referee(wall).grade(made, task.reference.over(task.start))
        if before.reward is None or before.reward >= 1.0:
            reason = reason or "no test notices the number"
            continue
        return Change(made, f"{old} → {new}")
    raise CantError(reason)


def _candidates(task: Task, parts: Parts) -> Iterator[str]:
    """Numbers, as they are written."""
    said: list[str] = []
    for piece in prose.pieces(task.prompt, frozenset()):
        part = task.prompt[piece.start : piece.end]
        if piece.kind == prose.PROSE or (not piece.fenced and piece.kind != prose.QUOTED and "(" not in part):
            said += _NUMBER.findall(part)
        elif piece.fenced and piece.kind == prose.CODE:
            said += [n for text in _documents(part) for n in _NUMBER.findall(text)]
    spelled = {
        str(n) for n, word in enumerate(_WORDS) if re.search(rf"\b{word}\b", task.prompt, re.IGNORECASE)
    }
    coded = [n for key, text in parts.code.items() if key[0] == "reference" for n in _literals(text)]
    for number in sorted(set(said)):
        value = float(number)
        near = {value - 1, value + 1}
        others = {float(n) for n in (said if value < 10 else {*said, *coded})}
        if (
            coded.count(number) != 1
            or said.count(number) != 1
            or number in spelled
            or value in _WORLD
            or value <= 2
            or near & others
        ):
            continue
        yield number


def _documents(code: str) -> list[str]:
    """The docstrings of a piece of code, without their examples."""
    try:
        tree = parse_source(code)
    except (SyntaxError, ValueError):
        return []
    kinds = (ast.Module, ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)
    texts = [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, kinds)]
    return [re.split(r">>>|[Ee]xamples?\b", text)[0] for text in texts]


def _literals(text: str) -> list[str]:
    """The numbers of a program, as they would be written."""
    return [
        repr(node.value)
        for node in ast.walk(parse_source(text))
        if isinstance(node, ast.Constant) and type(node.value) in (int, float)
    ]


def _other(old: str, parts: Parts, task: Task, rng: random.Random) -> str:
    taken = {n for text in (*parts.code.values(), task.prompt, *parts.data) for n in _NUMBER.findall(text)}
    if "." in old:
        places = len(old.partition(".")[2])
        step = 10.0**-places
        choices = [f"{float(old) + n * step:.{places}f}" for n in (1, 2, 3, 4, -1, -2)]
        choices = [c for c in choices if float(c) > 0]
    else:
        value = int(old)
        choices = [str(value + n) for n in range(1, max(4, value // 3) + 1)][:200]
    fresh = [c for c in choices if c not in taken] or choices
    return rng.choice(fresh)


@dataclass(frozen=True)
class _Swap:
    """One number for another, in code and in prose."""

    old: str
    new: str

    def in_code(self, text: str) -> str:
        cst = libcst()
        swap = self

        class Numbers(cst.CSTTransformer):  # type: ignore[misc,name-defined]
            def leave_Integer(self, original_node: Any, updated_node: Any) -> Any:
                return (
                    updated_node.with_changes(value=swap.new)
                    if updated_node.value == swap.old
                    else updated_node
                )

            leave_Float = leave_Integer

            def leave_Comment(self, original_node: Any, updated_node: Any) -> Any:
                return updated_node.with_changes(value=swap.in_prose(updated_node.value))

            def leave_Expr(self, original_node: Any, updated_node: Any) -> Any:
                value = updated_node.value
                if not isinstance(value, cst.SimpleString):
                    return updated_node
                return updated_node.with_changes(value=value.with_changes(value=swap.in_prose(value.value)))

        try:
            made: str = cst.parse_module(text).visit(Numbers()).code
        except (cst.ParserSyntaxError, cst.CSTValidationError, RecursionError):
            raise CantError("code that libcst can't parse") from None
        return made

    def in_prose(self, text: str) -> str:
        return re.sub(rf"(?<![\w.]){re.escape(self.old)}(?![\w]|\.\d)", lambda _: self.new, text)

    def in_prompt(self, text: str) -> str:
        out = []
        for piece in prose.pieces(text, frozenset()):
            part = text[piece.start : piece.end]
            if piece.fenced and piece.kind == prose.CODE:
                try:
                    part = self.in_code(part)
                except CantError:
                    part = self.in_prose(part)
            elif piece.kind in (prose.PROSE, prose.CODE) or (piece.kind == prose.DATA and not piece.fenced):
                part = self.in_prose(part)
            out.append(part)
        return "".join(out)


def _changed(wall: Wall, task: Task, parts: Parts, old: str, new: str) -> Task:
    swap = _Swap(old, new)
    split = {key: split_call(text) for key, text in parts.code.items()}
    heads = {head: swap.in_code(head) for head in {head for head, _ in split.values()} if old in head}
    code = {key: heads[head] + call for key, (head, call) in split.items() if head in heads}
    made = put_together(task, code, prompt=swap.in_prompt(task.prompt))
    if task.grading == "stdio":
        return _printed_anew(wall, task, made)
    return _expected_anew(wall, task, made)


def _printed_anew(wall: Wall, task: Task, made: Task) -> Task:
    """The tests of a program with what the changed reference prints."""
    tests = [*task.visible, *task.hidden]
    found = outputs(wall, made, made.reference.over(made.start), tests)
    if any(one is None for one in found):
        raise CantError("the changed reference does not come to an end on every test")
    printed = {id(test): one for test, one in zip(tests, found, strict=True) if one is not None}
    prompt = made.prompt
    for test in tests:
        text, _ = printed[id(test)]
        if (
            text.strip() != test.stdout.strip()
            and len(test.stdout.strip()) > 3
            and test.stdout.strip() in prompt
        ):
            prompt = prompt.replace(test.stdout.strip(), text.strip())

    def anew(kind: str, test: Test) -> Test:
        text, rc = printed[id(test)]
        return replace(test, stdout=text, exit_code=rc if rc != (test.exit_code or 0) else test.exit_code)

    changed = replace(
        made,
        prompt=prompt,
        visible=tuple(anew("visible", t) for t in task.visible),
        hidden=tuple(anew("hidden", t) for t in task.hidden),
    )
    if "```" in task.prompt and changed.visible != task.visible and prompt == made.prompt:
        raise CantError("an example of the prompt would no longer be right")
    return changed


def _expected_anew(wall: Wall, task: Task, made: Task) -> Task:
    """The tests of functions with what the changed reference comes to, and the examples of the prompt."""
    checks = taken_apart(made).code.get(("prelude", ""), "")
    texts = [_Noted.of(test.code, "t") for test in (*made.visible, *made.hidden)]
    common = _Noted.of(checks, "p")
    prelude = put_together(made, {("prelude", ""): common.noting}).prelude if checks else made.prelude
    examples = sorted({e for text in _told(made) for e in _examples(text, task.entry)})
    blocks = [text for text in _blocks(made.prompt) if not any(e in text for e in examples)]
    items = [{"kind": "test", "code": text.noting} for text in texts]
    items += [{"kind": "expression", "code": e} for e in examples]
    items += [{"kind": "block", "code": b} for b in blocks]
    solutions = [made.reference.over(made.start), task.reference.over(task.start)]
    now, before = ask(wall, made, solutions, items, prelude)
    if not now or not before:
        raise CantError("the changed reference does not come to an end")
    code = _with_values(made, texts, common, now[: len(texts)])
    at, blocks_at = len(texts), len(texts) + len(examples)
    if before[blocks_at:] != now[blocks_at:]:
        raise CantError("an example of several lines would no longer be right")
    fix = _examples_anew(
        dict(zip(examples, zip(before[at:blocks_at], now[at:blocks_at], strict=True), strict=True))
    )
    shown = {key: text for key, text in taken_apart(made).code.items() if key[0] in ("start", "reference")}
    shown |= {key: text for key, text in code.items() if key[0] == "prelude"}
    return put_together(
        made, {**code, **{key: fix(text) for key, text in shown.items()}}, prompt=fix(made.prompt)
    )


@dataclass(frozen=True)
class _Noted:
    """Code of tests. ``noting`` is it with comparisons that note what they see; ``places`` says where in the code each
    expectation stands, in bytes."""

    code: str
    noting: str
    places: Mapping[str, tuple[int, int]]

    @classmethod
    def of(cls, code: str, mark: str) -> _Noted:
        tree = parse_source(code)
        starts = [0]
        for line in code.encode().split(b"\n"):
            starts.append(starts[-1] + len(line) + 1)
        places: dict[str, tuple[int, int]] = {}

        class Note(ast.NodeTransformer):
            def visit_Assert(self, node: ast.Assert) -> ast.stmt:
                match node.test:
                    case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
                        seen, literal = (left, right) if _is_literal(right) else (right, left)
                        if not _is_literal(literal) or _is_literal(seen):
                            return node
                        label = f"{mark}{len(places)}"
                        places[label] = (
                            starts[literal.lineno - 1] + literal.col_offset,
                            starts[(literal.end_lineno or 1) - 1] + (literal.end_col_offset or 0),
                        )
                        call = ast.Call(ast.Name("_seen_value", ast.Load()), [ast.Constant(label), seen], [])
                        return ast.copy_location(ast.Expr(call), node)
                return node

        return cls(code, ast.unparse(ast.fix_missing_locations(Note().visit(tree))), places)

    @property
    def file(self) -> str:
        """What tests out of one file have in common: all but the call at the end."""
        return split_call(self.code)[0]

    def with_values(self, values: Mapping[str, str]) -> str:
        """The code with these expectations."""
        raw = self.code.encode()
        for label, (start, end) in sorted(self.places.items(), key=lambda item: item[1], reverse=True):
            if label in values and not _same(raw[start:end].decode(), values[label]):
                raw = raw[:start] + values[label].encode() + raw[end:]
        return raw.decode()


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _with_values(
    made: Task, texts: Sequence[_Noted], common: _Noted, answers: Sequence[dict[str, Any]]
) -> dict[Key, str]:
    """The code of every test, and the prelude, with the values that were seen."""
    shared: dict[str, dict[str, str]] = {}
    for text, answer in zip(texts, answers, strict=True):
        if "error" in answer:
            raise CantError(f"an expectation that can't be computed anew ({answer['error']})")
        for label, values in dict(answer.get("seen") or {}).items():
            if (
                not isinstance(values, list)
                or len({*map(str, values)}) != 1
                or not isinstance(values[0], str)
            ):
                raise CantError("a comparison that sees several values, or one that can't be written down")
            file = common.code if label in common.places else text.file
            if shared.setdefault(file, {}).setdefault(label, values[0]) != values[0]:
                raise CantError("a comparison that sees another value in another test")
    tests = [("visible", test.id) for test in made.visible] + [("hidden", test.id) for test in made.hidden]
    out = {key: text.with_values(shared.get(text.file, {})) for key, text in zip(tests, texts, strict=True)}
    return out | ({("prelude", ""): common.with_values(shared.get(common.code, {}))} if common.code else {})


def _same(written: str, value: str) -> bool:
    try:
        left, right = ast.literal_eval(written), ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return bool(left == right and type(left) is type(right))


def _told(task: Task) -> Iterator[str]:
    """Texts that a player reads with examples in them."""
    yield task.prompt
    for path, data in task.start.items():
        if path.endswith(".py"):
            yield data.decode("utf-8", "replace")


def _examples(text: str, entry: Sequence[str]) -> Iterator[str]:
    """Calls of the entry points, as they are written."""
    for name in entry:
        for found in re.finditer(rf"(?<![\w.]){re.escape(name)}\(", text):
            call = _balanced(text, found.start(), found.end())
            before = text[: found.start()].rstrip(" ")
            if call and not before.endswith(("def", "class")) and _evaluates(call):
                yield call


def _balanced(text: str, start: int, at: int) -> str:
    depth = 1
    for end in range(at, min(len(text), at + 600)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            return text[start : end + 1]
    return ""


def _evaluates(call: str) -> bool:
    """Whether a call has arguments that are all literals."""
    try:
        node = parse_expression(call).body
    except (SyntaxError, ValueError, RecursionError):
        return False
    return isinstance(node, ast.Call) and all(
        map(_is_literal, [*node.args, *(k.value for k in node.keywords)])
    )


def _blocks(prompt: str) -> list[str]:
    """Blocks of code in a prompt that may be run as they are."""
    return [
        prompt[p.start : p.end]
        for p in prose.pieces(prompt, frozenset())
        if p.fenced and p.kind == prose.CODE and ">>>" not in prompt[p.start : p.end]
    ]


def _examples_anew(values: Mapping[str, tuple[dict[str, Any], dict[str, Any]]]) -> Callable[[str], str]:
    """A function that puts the new result behind each example whose result is another one now. ``values``: what each
    came to before, and comes to now."""
    other = {call: both for call, both in values.items() if both[0] != both[1]}

    def fix(text: str) -> str:
        for call, (before, after) in other.items():
            was, now = before.get("value"), after.get("value")
            at = text.find(call)
            while at >= 0:
                gap = _SPLIT.match(text, at + len(call))
                start = gap.end() if gap else at + len(call)
                old = "" if was is None else _literal_at(text, start, was)
                if now is None or not old:
                    raise CantError("an example of the prompt would no longer be right")
                text = text[:start] + now + text[start + len(old) :]
                at = text.find(call, start + len(now))
        return text

    return fix


def _literal_at(text: str, start: int, value: str) -> str:
    """The longest literal of this value that begins here, on this line; "" for none."""
    line = text[start:].split("\n", 1)[0]
    written = (line[:end] for end in range(min(len(line), 4096), 0, -1))
    return next((one.rstrip() for one in written if _same(one, value)), "")
