"""Bugs that a model writes: it is shown one function, and asked for the same with a mistake that a person could make.

Nothing that it answers is trusted: what does not parse, is not that function, or is the same program is left out here, and
what remains goes the way of every other break. The functions that are asked about are drawn by the seed.
"""

from __future__ import annotations

import ast
import asyncio
import random
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tiltyard.errors import ArenaError
from tiltyard.mutate import Mutation, apply, program
from tiltyard.parsing import parse_source
from tiltyard.players.model import Hopeless, ModelFailed, ModelPlayer, OverBudget
from tiltyard.players.model.text_protocol import blocks
from tiltyard.sources.breakage.draw import Change
from tiltyard.sources.breakage.ready import Ready
from tiltyard.sources.breakage.trial import MODEL
from tiltyard.workers import Progress

LINES = (4, 80)
"""Of a function that is asked about."""
SYSTEM = """\
You make exercises for people who learn to debug. You are shown one Python function that works. Write it again with one \
subtle mistake that an experienced programmer could make: a boundary, a case that is forgotten, a wrong order, state that is \
not reset, a wrong variable. It must still run, give right answers for most inputs, and look as if nobody had touched it: \
keep names, comments and formatting, and say nothing of the mistake in the code. Answer with the whole function in one \
block of code, and nothing else."""


@dataclass(frozen=True)
class Function:
    """A function that tests reach: the bytes ``start`` to ``end`` of a file, whole lines, indented as they stand."""

    subject: int
    path: str
    name: str
    scope: str
    start: int
    end: int
    line: int
    text: str
    tests: frozenset[int]


def functions_of(ready: Sequence[Ready]) -> list[Function]:
    """Every function of a fitting size that tests reach."""
    found: list[Function] = []
    for number, one in enumerate(ready):
        for path, lines in sorted(one.reach.items()):
            source = one.task.start[path].decode()
            every = (_reached(f, lines) for f in _functions(number, path, source))
            found += [f for f in every if f.tests]
    return found


def _functions(number: int, path: str, source: str) -> list[Function]:
    out: list[Function] = []
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def walk(node: ast.AST, scope: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                end = child.end_lineno or child.lineno
                first, last = starts[child.lineno - 1], starts[end]
                text = b"".join(lines[child.lineno - 1 : end]).decode()
                if LINES[0] <= end - child.lineno + 1 <= LINES[1] and child.name[:2] != "__":
                    name = ".".join((*scope, child.name))
                    out.append(
                        Function(number, path, child.name, name, first, last, child.lineno, text, frozenset())
                    )
            elif isinstance(child, ast.ClassDef):
                walk(child, (*scope, child.name))

    walk(parse_source(source), ())
    return out


def _reached(function: Function, lines: object) -> Function:
    assert isinstance(lines, dict)
    last = function.line + function.text.count("\n")
    body = [lines[n] for n in range(function.line + 1, last + 1) if n in lines]
    return replace(function, tests=frozenset[int]().union(*body))


@dataclass
class ModelBugs:
    """Asks ``player`` for bugs, ``concurrency`` at a time. ``say`` is told what could not be asked."""

    player: ModelPlayer
    seed: int = 0
    concurrency: int = 8
    say: Callable[[str], None] = lambda text: None
    progress: Progress | None = None

    def __call__(self, ready: Sequence[Ready], most: int) -> list[tuple[int, Change]]:
        """(number of the subject, change) for up to ``most`` functions, each asked about once. ArenaError: the model can't be
        asked at all (a wrong key, no such model)."""
        every = functions_of(ready)
        random.Random(f"{self.seed} bugs").shuffle(every)
        chosen = every[:most]
        answers = asyncio.run(self._ask(chosen))
        found: list[tuple[int, Change]] = []
        for function, answer in zip(chosen, answers, strict=True):
            source = ready[function.subject].task.start[function.path].decode()
            change = change_of(function, answer, source)
            if change is not None:
                found.append((function.subject, change))
        if len(found) < len(chosen):
            self.say(
                f"{len(chosen) - len(found)} of {len(chosen)} answers of the model are no changed function"
            )
        return found

    async def _ask(self, functions: Sequence[Function]) -> list[str]:
        gate = asyncio.Semaphore(self.concurrency)
        if self.progress is not None:
            self.progress.begin(len(functions))
        spent = False

        async def one(function: Function) -> str:
            nonlocal spent
            async with gate:
                text = "" if spent else await self._answer(function)
                if text is None:
                    spent, text = True, ""
                if self.progress is not None:
                    self.progress.advance(_Asked("answered" if text else "not answered"))
                return text

        try:
            return list(await asyncio.gather(*(one(f) for f in functions)))
        finally:
            await self.player.close()
            if self.progress is not None:
                self.progress.end()

    async def _answer(self, function: Function) -> str | None:
        """What the model says, "" if it could not be asked, None if the budget is spent."""
        text = f"{function.path}\n\n```python\n{textwrap.dedent(function.text)}```"
        try:
            answer = await self.player.ask([{"role": "user", "content": text}])
        except Hopeless as error:
            raise ArenaError(f"{self.player.name} can't be asked for bugs: {error}") from None
        except OverBudget as error:
            self.say(str(error))
            return None
        except ModelFailed as error:
            self.say(f"{function.scope}: {error}")
            return ""
        return answer.reply.text if answer.reply is not None else ""


@dataclass(frozen=True, slots=True)
class _Asked:
    outcome: str


def change_of(function: Function, answer: str, source: str) -> Change | None:
    """The change that an answer makes, or None for one that is no changed version of this function alone."""
    bodies = [block.body for block in blocks(answer) if block.body.strip()]
    if not bodies:
        return None
    text = textwrap.dedent(bodies[-1]).strip("\n")
    try:
        tree = parse_source(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    match tree.body:
        case [
            ast.FunctionDef(name=name, decorator_list=[]) | ast.AsyncFunctionDef(name=name, decorator_list=[])
        ]:
            if name != function.name:
                return None
        case _:
            return None
    indent = function.text[: len(function.text) - len(function.text.lstrip())]
    laid = textwrap.indent(text, indent) + "\n"
    mutation = Mutation(
        function.start, function.end, laid, MODEL, function.line, function.scope, function.text
    )
    made = program(apply(source, [mutation]))
    if made is None or made == program(source):
        return None
    return Change(function.path, mutation, function.tests)
