"""What tests and examples expect, computed anew with a changed reference, in a cell.

Comparisons with a literal (``assert f(x) == 3``, wherever they stand) note what they see; the literal then becomes that.
Everything else is run as it is, and has to pass. CantError: something can't be computed anew, sees several values, or an
example of the prompt would no longer be right.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tiltyard.cells.protocol import Wall
from tiltyard.parsing import parse_expression, parse_source
from tiltyard.sources.perturb import prose
from tiltyard.sources.perturb.model import CantError
from tiltyard.sources.perturb.parts import Key, put_together, split_call, taken_apart
from tiltyard.sources.perturb.recompute import ask, outputs
from tiltyard.task import Task, Test

_SPLIT = re.compile(
    r"\s*(?:==|=>|->|➞|→|⇒|=|#+|//|returns?|should return|gives?|is|:)?\s*(?:#\s*)?(?:=>|->|→)?\s*"
)


def printed_anew(wall: Wall, task: Task, made: Task) -> Task:
    """The tests of a program with what the changed reference prints."""
    tests = [*made.visible, *made.hidden]
    found = outputs(wall, made, made.reference.over(made.start), tests)
    if any(one is None for one in found):
        raise CantError("the changed reference does not come to an end on every test")
    printed = {id(test): one for test, one in zip(tests, found, strict=True) if one is not None}
    if len({*printed.values()}) < len({(t.stdout, t.exit_code) for t in tests}):
        raise CantError("tests would tell less apart than before")
    prompt = made.prompt
    for old, test in zip((*task.visible, *task.hidden), tests, strict=True):
        text, shown = printed[id(test)][0].strip(), test.stdout.strip()
        if len(shown) > 3 and shown in prompt:
            prompt = prompt.replace(shown, text)
        elif len(shown) > 3 and old.stdout.strip() in task.prompt:
            raise CantError("an example of the prompt would no longer be right")

    def anew(test: Test) -> Test:
        text, rc = printed[id(test)]
        return replace(test, stdout=text, exit_code=rc if rc != (test.exit_code or 0) else test.exit_code)

    return replace(
        made,
        prompt=prompt,
        visible=tuple(map(anew, made.visible)),
        hidden=tuple(map(anew, made.hidden)),
    )


def expected_anew(wall: Wall, task: Task, made: Task) -> Task:
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

    def expectation(self, label: str) -> str:
        """What stands there now."""
        start, end = self.places[label]
        return self.code.encode()[start:end].decode()

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
    written = {file: set(table) for file, table in shared.items()}
    old = {
        _plain(text.expectation(label))
        for text in (*texts, common)
        for label in text.places
        if label in written.get(text.file, ())
    }
    if len({_plain(value) for table in shared.values() for value in table.values()}) < len(old):
        raise CantError("tests would tell less apart than before")
    tests = [("visible", test.id) for test in made.visible] + [("hidden", test.id) for test in made.hidden]
    out = {key: text.with_values(shared.get(text.file, {})) for key, text in zip(tests, texts, strict=True)}
    return out | ({("prelude", ""): common.with_values(shared.get(common.code, {}))} if common.code else {})


def _plain(text: str) -> str:
    """A literal, however it is written."""
    return repr(ast.literal_eval(text))


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
                if now is not None and (there := _literal_at(text, start, now)):
                    at = text.find(call, start + len(there))
                    continue
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
