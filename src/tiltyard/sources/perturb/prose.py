"""Texts for people with code in them: prompts, docstrings, comments. Names in them are changed where they are code.

Code is what is marked as such (fences, backticks, lines of a doctest, a call of one of the task's own functions) and is
Python. What is marked and is no Python is data, in which nothing is changed. In the rest, the prose, only what can't be
an ordinary word is changed: names of several words, and names of one or two letters. What stands in quotes stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tiltyard.parsing import parse_source

CODE, DATA, PROSE, QUOTED = "code", "data", "prose", "quoted"
_PIECES = re.compile(
    r"(?P<fence>^[ \t]*(?P<ticks>```+|~~~+)[ \t]*(?P<lang>[\w+-]*)[^\n]*\n(?P<body>.*?)^[ \t]*(?P=ticks)[ \t]*$)"
    r"|(?P<span>(?P<tick>`+)(?P<inner>[^`\n]+)(?P=tick))"
    r"|(?P<doctest>^[ \t]*(?:>>>|\.\.\.)[ \t][^\n]*$)"
    r"|(?P<field>^[ \t]*:(?:param|parameter|arg|argument|ivar|var|type)\s+[^:\n]+:)"
    r"|(?P<call>(?<![\w.\"'`])[^\W\d][\w.]*\([^()\n]*\))"
    r"|(?P<quoted>\"[^\"\n]{1,120}\")",
    re.MULTILINE | re.DOTALL,
)
_TOKEN = re.compile(
    r"(?P<text>[rbfuRBFU]{0,2}(?:'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"))"
    r"|(?P<comment>\#[^\n]*)|(?P<word>[^\W\d]\w*)",
    re.DOTALL,
)
_SHORT_WORDS = frozenset(
    "a i is as at an am be by do go he if in it me my no of oh ok on or so to up us we hi vs eg ie id pi ai ml cm mm kg "
    "km ms px e g d t st nd rd th re ve ll".split()
)
_PROSE_WORD = re.compile(r"(?<![\w'’\\./@-])[^\W\d]\w*(?!['’\w])")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a text. ``fenced``: a block of lines; ``start`` and ``end`` are those of what may be changed."""

    kind: str
    start: int
    end: int
    fenced: bool = False


def is_name_like(word: str) -> bool:
    """Whether a word in prose can only be a name: of several words, or of one or two letters that are none."""
    core = word.strip("_")
    if "_" in word or any(c.isdigit() for c in core):
        return True
    if any(c.isupper() for c in core[1:]) and not core.isupper():
        return True
    return len(core) <= 2 and core.islower() and core not in _SHORT_WORDS


def pieces(text: str, callables: Mapping[str, object] | frozenset[str]) -> Iterator[Piece]:
    """The whole text, piece by piece, in order."""
    at = 0
    for found in _PIECES.finditer(text):
        kind, group, fenced = PROSE, found.lastgroup or "", False
        if found["fence"] is not None:
            group, fenced = "body", True
            kind = _kind_of_fence(found["lang"], found["body"])
        elif found["span"] is not None:
            group, kind = "inner", CODE if is_code(found["inner"]) else DATA
        elif found["doctest"] is not None:
            group, kind = "doctest", CODE
        elif found["field"] is not None:
            group, kind = "field", CODE
        elif found["call"] is not None:
            group = "call"
            callee = found["call"].partition("(")[0].rpartition(".")[2]
            if callee not in callables or not is_code(found["call"]):
                continue  # an ordinary word before a remark in brackets
            kind = CODE
        elif found["quoted"] is not None:
            group, kind = "quoted", QUOTED
        start, end = found.span(group)
        if start > at:
            yield Piece(PROSE, at, start)
        yield Piece(kind, start, end, fenced)
        at = end
    if at < len(text):
        yield Piece(PROSE, at, len(text))


def _kind_of_fence(language: str, body: str) -> str:
    if language.lower() in ("python", "py", "python3", "pycon") or (not language and _parses(body)):
        return CODE
    return CODE if not language and ">>>" in body else DATA


def is_code(text: str) -> bool:
    """Whether a span is Python, or the head of a definition."""
    text = text.replace("…", "...").strip()
    if not text or len(text) > 2000:
        return False
    return any(
        map(
            _parses,
            (text, f"def {text}: pass", f"{text}: pass", f"{text}\n    pass", f"@{text}\nclass X: pass"),
        )
    )


def _parses(text: str) -> bool:
    try:
        parse_source(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


@dataclass(frozen=True)
class Renames:
    """New names by the role that the old one has there. A name has the same new one in every role."""

    names: Mapping[str, str]
    attributes: Mapping[str, str]
    keywords: Mapping[str, str]

    @property
    def every(self) -> dict[str, str]:
        return {**self.keywords, **self.attributes, **self.names}

    def __bool__(self) -> bool:
        return bool(self.names or self.attributes or self.keywords)


def in_code(text: str, new: Renames, comment: Callable[[str], str] = lambda text: text) -> str:
    """A stretch of code that need not be a whole program, with its names changed; texts in it stay."""
    dotted_only = {old: name for old, name in new.attributes.items() if old not in new.names}

    def change(found: re.Match[str]) -> str:
        if found["comment"] is not None:
            return comment(found["comment"])
        word = found["word"]
        if word is None:
            return found[0]
        before, after = text[: found.start()].rstrip(" "), text[found.end() :].lstrip(" ")
        if before.endswith(".") and not before.endswith(".."):
            return new.attributes.get(word, word)
        if after.startswith("=") and not after.startswith("==") and _open_bracket(before):
            return new.keywords.get(word, new.names.get(word, word))
        return new.names.get(word, dotted_only.get(word, word))

    return _TOKEN.sub(change, text)


def _open_bracket(text: str) -> bool:
    return text.count("(") > text.count(")")


def changed(text: str, new: Renames, fence: Callable[[str], str | None] = lambda body: None) -> str:
    """The text with its names changed. ``fence`` may change a whole block of code; None leaves it to the words."""
    if not new:
        return text
    prose = {old: name for old, name in new.every.items() if is_name_like(old)}
    out = []
    for piece in pieces(text, frozenset(new.every)):
        part = text[piece.start : piece.end]
        if piece.kind == CODE:
            whole = fence(part) if piece.fenced else None
            part = in_code(part, new, lambda c: _in_prose(c, prose)) if whole is None else whole
        elif piece.kind == PROSE:
            part = _in_prose(part, prose)
        out.append(part)
    return "".join(out)


def _in_prose(text: str, prose: Mapping[str, str]) -> str:
    return _PROSE_WORD.sub(lambda found: prose.get(found[0], found[0]), text)


def in_data(text: str) -> set[str]:
    """The words of a prompt that stand where nothing can be changed, because it is no Python."""
    found: set[str] = set()
    for piece in pieces(text, frozenset()):
        if piece.kind == DATA:
            found.update(re.findall(r"[^\W\d]\w*", text[piece.start : piece.end]))
    return found


def in_prose(text: str) -> set[str]:
    """The words of a prompt that stand in its prose."""
    found: set[str] = set()
    for piece in pieces(text, frozenset()):
        if piece.kind in (PROSE, QUOTED):
            found.update(re.findall(r"[^\W\d]\w*", text[piece.start : piece.end]))
    return found
