"""Signs that an answer was known and not found: flags with their evidence, for a person to judge.

* ``equals_reference``: the written files are the reference's, comments and layout aside.
* ``near_reference``: nearly, and names that stand in the reference and in nothing that the player was shown are kept.
* ``written_blind``: solved, and a start file was written over before anything was looked at.

Short answers resemble each other without anyone having seen the other, so what is shorter than ``MIN_TOKENS`` is never
called equal or near. Only solved attempts are looked at, the first ``PER_TASK`` of each player at each task.
"""

from __future__ import annotations

import ast
import builtins
import io
import keyword
import token
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher
from typing import Any

from sqlalchemy import Connection, select

from tiltyard.parsing import parse_source
from tiltyard.records import schema
from tiltyard.report.gather import Scope, rows_of
from tiltyard.report.players import is_yardstick
from tiltyard.report.writing import Written, written
from tiltyard.task import Task

MIN_TOKENS = 40
MAX_TOKENS = 2000
MAX_CHARS = 200_000
"""Of one file that is read as Python: a player wrote it, and may have written anything."""
NEAR = 0.9
"""The ratio of difflib (2·M/T over tokens) from which an answer is near."""
KEPT = 0.8
"""The share of the reference's own names that a near answer keeps."""
MIN_NAMES = 3
PER_TASK = 8
LISTED = 100
"""Signs of each kind that are listed one by one; all of them are counted."""
_BUILT_IN = (str, bytes, list, dict, set, tuple, int, float, frozenset, type)
_COMMON = {
    *dir(builtins),
    *keyword.kwlist,
    *(name for kind in _BUILT_IN for name in dir(kind)),
    "self",
    "cls",
}
"""Names that everyone uses."""
ORDER = ("equals_reference", "near_reference", "written_blind")
_SKIPPED = {
    token.COMMENT,
    token.NL,
    token.NEWLINE,
    token.INDENT,
    token.DEDENT,
    token.ENCODING,
    token.ENDMARKER,
}


@dataclass(frozen=True, slots=True)
class Sign:
    """One flag on one episode, with what it rests on in words."""

    sign: str
    player: str
    task: str
    episode: str
    evidence: str


@dataclass(slots=True)
class Signs:
    """``looked_at`` of ``solved`` solved attempts; ``counts`` by player and sign; the first ``LISTED`` signs."""

    looked_at: int = 0
    solved: int = 0
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    listed: list[Sign] = field(default_factory=list)

    def add(self, sign: Sign) -> None:
        by_sign = self.counts.setdefault(sign.player, {})
        by_sign[sign.sign] = by_sign.get(sign.sign, 0) + 1
        if sum(other.sign == sign.sign for other in self.listed) < LISTED:
            self.listed.append(sign)

    def as_json(self) -> dict[str, Any]:
        return {
            "looked_at": self.looked_at,
            "solved": self.solved,
            "counts": self.counts,
            "listed": [asdict(sign) for sign in self.listed],
        }


def signs(connection: Connection, scope: Scope, tasks: Mapping[str, Task]) -> Signs:
    """Look through the solved attempts of players that are no yardsticks. ``tasks`` by digest."""
    found = Signs()
    table = schema.episodes.c
    wanted = select(table.id, table.player, table.task, table.task_digest).where(table.reward >= 1.0)
    order = (table.run.nulls_first(), table.number, table.id)
    chosen: list[Any] = []
    taken: dict[tuple[str, str], int] = {}
    for row in rows_of(connection, scope.of(wanted).order_by(*order)):
        if is_yardstick(row.player):
            continue
        found.solved += 1
        key = (row.player, row.task_digest)
        if row.task_digest in tasks and taken.get(key, 0) < PER_TASK:
            taken[key] = taken.get(key, 0) + 1
            chosen.append(row)
    answers: dict[str, Answer] = {}
    for start in range(0, len(chosen), 100):
        page = chosen[start : start + 100]
        actions = _actions(connection, [row.id for row in page])
        for row in page:
            task = tasks[row.task_digest]
            answer = answers.get(task.digest)
            if answer is None:
                answer = answers[task.digest] = Answer(task)
            found.looked_at += 1
            for sign, evidence in look(answer, written(task.start, actions.get(row.id, []))):
                found.add(Sign(sign, row.player, row.task, row.id, evidence))
    found.listed.sort(key=lambda sign: ORDER.index(sign.sign))  # stable: the weightier evidence first
    return found


def _actions(connection: Connection, ids: list[str]) -> dict[str, list[tuple[str, bool]]]:
    table = schema.steps.c
    wanted = select(table.episode, table.action, table.invalid).where(table.episode.in_(ids))
    found: dict[str, list[tuple[str, bool]]] = {}
    for row in rows_of(connection, wanted.order_by(table.episode, table.n)):
        found.setdefault(row.episode, []).append((row.action, row.invalid))
    return found


class Answer:
    """A task's reference, ready to be compared with: the files that differ from the start."""

    def __init__(self, task: Task) -> None:
        self.task = task
        texts = {
            path: data.decode("utf-8", "replace")
            for path, data in task.reference.items()
            if task.start.get(path) != data
        }
        self.tokens = {path: tokens_of(text) for path, text in texts.items()}
        shown = [task.prompt, *(data.decode("utf-8", "replace") for data in task.start.values())]
        shown += [part for test in task.visible for part in (test.code, test.stdin, test.stdout)]
        told = set().union(*(_words(text) for text in shown))
        names = set().union(*(names_of(text) for text in texts.values()))
        self.own_names = names - told - _COMMON


def look(answer: Answer, what: Written) -> Iterator[tuple[str, str]]:
    """The signs of one solved attempt, each with its evidence."""
    mine = [t for path in sorted(answer.tokens) for t in tokens_of(what.files.get(path, ""))]
    theirs = [t for path in sorted(answer.tokens) for t in answer.tokens[path]]
    if MIN_TOKENS <= len(theirs) <= MAX_TOKENS and len(mine) <= MAX_TOKENS and mine:
        names = set().union(*(names_of(text) for text in what.files.values()))
        kept = sorted(answer.own_names & names)
        share = len(kept) / len(answer.own_names) if answer.own_names else 0.0
        said = f"keeps {len(kept)} of the {len(answer.own_names)} names that stand only in the reference" + (
            f" ({', '.join(kept[:8])})" if kept else ""
        )
        if mine == theirs:
            yield "equals_reference", f"all {len(theirs)} tokens are the reference's; {said}"
        elif len(kept) >= MIN_NAMES and share >= KEPT:
            matcher = SequenceMatcher(None, mine, theirs, autojunk=False)
            # the quick ratio is an upper bound, and linear; the other takes seconds for what repeats itself
            ratio = matcher.ratio() if matcher.quick_ratio() >= NEAR else 0.0
            if ratio >= NEAR:
                yield "near_reference", f"{ratio:.0%} of the tokens are the reference's; {said}"
    over = sorted(path for path in what.files if answer.task.start.get(path, b"").strip())
    if what.first and not what.looked and over:
        yield (
            "written_blind",
            f"wrote {', '.join(over[:4])} at step {what.first} before looking at any file, and solved it",
        )


def tokens_of(text: str) -> list[str]:
    """Python's tokens without comments, layout and docstrings; where it is no Python, its words."""
    if len(text) > MAX_CHARS:
        return text.split()
    try:
        tree = parse_source(text)
        skipped = {
            (body[0].lineno, body[0].col_offset)
            for node in ast.walk(tree)
            if (body := getattr(node, "body", None)) and isinstance(body, list) and _is_text(body[0])
        }
        found = tokenize.generate_tokens(io.StringIO(text).readline)
        return [t.string for t in found if t.type not in _SKIPPED and t.start not in skipped]
    except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError):
        return text.split()


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def names_of(text: str) -> set[str]:
    """The names that Python code binds or uses; the words of what is no Python."""
    return {t for t in tokens_of(text) if t.isidentifier() and not keyword.iskeyword(t)}


def _words(text: str) -> set[str]:
    return {
        word
        for word in "".join(c if c.isalnum() or c == "_" else " " for c in text).split()
        if word.isidentifier()
    }
