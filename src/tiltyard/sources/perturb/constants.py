"""Another constant in a task: the same in prompt, reference and tests, whose expectations are computed anew.

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
from collections.abc import Iterator
from dataclasses import replace

from tiltyard.cells.protocol import Wall
from tiltyard.parsing import parse_source
from tiltyard.referee import Referee
from tiltyard.sources.perturb import prose
from tiltyard.sources.perturb.expected import expected_anew, printed_anew
from tiltyard.sources.perturb.fresh import another_word
from tiltyard.sources.perturb.model import CantError, Change
from tiltyard.sources.perturb.parts import Key, Parts, put_together, split_call, taken_apart
from tiltyard.sources.perturb.swaps import NumberSwap, Swap, WordSwap
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
_TRIES = 4
_IN_QUOTES = re.compile(r"(['\"])([^'\"\n]{2,40})\1")
_PHRASE = re.compile(r"[A-Za-z]{2,20}( [A-Za-z]{2,20}){0,2}")


def other_constants(wall: Wall, task: Task, rng: random.Random) -> Change:
    """The task with one of its numbers changed. Raises CantError: there is none, or what was made does not agree."""
    if task.grading == "pytest":
        raise CantError("expectations in a suite are not computed anew")
    parts = taken_apart(task)
    found = [*_numbers(task, parts, rng), *_texts(task, parts, rng)]
    if not found:
        raise CantError("no constant is in prompt and reference, and the task's own")
    rng.shuffle(found)
    reason = ""
    for swap in found[:_TRIES]:
        try:
            made = _changed(wall, task, parts, swap)
        except CantError as error:
            reason = reason or str(error)
            continue
        before = Referee(wall).grade(made, task.reference.over(task.start))
        if before.reward is None or before.reward >= 1.0:
            reason = reason or "no test notices the constant"
            continue
        return Change(made, f"{swap.old} → {swap.new}")
    raise CantError(reason)


def _numbers(task: Task, parts: Parts, rng: random.Random) -> Iterator[Swap]:
    """Numbers that the prompt's prose says once and the reference has once."""
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
        yield NumberSwap(number, _other(number, parts, task, rng))


def _texts(task: Task, parts: Parts, rng: random.Random) -> Iterator[Swap]:
    """Words in quotes or as code in the prompt that the reference has as texts of its own."""
    said: set[str] = set()
    for piece in prose.pieces(task.prompt, frozenset()):
        part = task.prompt[piece.start : piece.end]
        said.update(word for _, word in _IN_QUOTES.findall(part))
        if piece.kind in (prose.CODE, prose.DATA) and not piece.fenced:
            said.add(part.strip())
    coded = {
        node.value
        for key, text in parts.code.items()
        if key[0] == "reference"
        for node in ast.walk(parse_source(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    identifiers = {word for text in parts.code.values() for word in _names_in(split_call(text)[0])}
    every = "\n".join((task.prompt, *parts.code.values(), *parts.data)).lower()
    for word in sorted(said & coded):
        if not _PHRASE.fullmatch(word) or word in identifiers:
            continue
        other = another_word(word, rng)
        if other and other.lower() not in every:
            yield WordSwap(word, other)


def _names_in(text: str) -> set[str]:
    """Names of the code, which may also be looked up by their text."""
    found: set[str] = set()
    for node in ast.walk(parse_source(text)):
        for name in ("id", "attr", "arg", "name"):
            value = getattr(node, name, None)
            if isinstance(value, str):
                found.add(value)
    return found


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


def _changed(wall: Wall, task: Task, parts: Parts, swap: Swap) -> Task:
    split = {key: split_call(text) for key, text in parts.code.items()}
    heads: dict[tuple[bool, str], str] = {}
    code: dict[Key, str] = {}
    for key, (head, call) in split.items():
        tests = key[0] in ("visible", "hidden", "prelude")
        if swap.old in head:
            if (tests, head) not in heads:
                heads[tests, head] = swap.in_tests(head) if tests else swap.in_code(head)
            code[key] = heads[tests, head] + call
    made = put_together(
        task, code, prompt=swap.in_prompt(task.prompt), tests=lambda kind, test: _given(test, swap)
    )
    if task.grading == "stdio":
        return printed_anew(wall, task, made)
    return expected_anew(wall, task, made)


def _given(test: Test, swap: Swap) -> Test:
    """The test of a program with what goes in."""
    args = tuple(map(swap.in_data, test.args))
    return replace(test, stdin=swap.in_data(test.stdin), stdout=swap.in_data(test.stdout), args=args)
