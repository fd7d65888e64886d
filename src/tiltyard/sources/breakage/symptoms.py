"""What is wrong, as somebody sees it who uses the code: a call, what comes out, and what should.

Made of what a failing test calls (``observing``) on the working code and on the broken one: the first call that ends
differently, with the calls before it that made what it needs. Nothing of the test's own source is in it, and neither
file nor line of the change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tiltyard.parsing import parse_source

MAX_LINES, MAX_MAKERS = 8, 6
MAX_CALL = 400
MAX_VALUE = 300
MAX_STREAM = 1500
_DUNDER: Mapping[str, str] = {
    "__getitem__": "{on}[{a}]", "__setitem__": "{on}[{a}] = {b}", "__delitem__": "del {on}[{a}]",
    "__contains__": "{a} in {on}", "__len__": "len({on})", "__iter__": "iter({on})", "__next__": "next({on})",
    "__eq__": "{on} == {a}", "__ne__": "{on} != {a}", "__lt__": "{on} < {a}", "__le__": "{on} <= {a}",
    "__gt__": "{on} > {a}", "__ge__": "{on} >= {a}", "__add__": "{on} + {a}", "__radd__": "{a} + {on}",
    "__sub__": "{on} - {a}", "__rsub__": "{a} - {on}", "__mul__": "{on} * {a}", "__rmul__": "{a} * {on}",
    "__truediv__": "{on} / {a}", "__floordiv__": "{on} // {a}", "__mod__": "{on} % {a}", "__pow__": "{on} ** {a}",
    "__and__": "{on} & {a}", "__or__": "{on} | {a}", "__xor__": "{on} ^ {a}", "__neg__": "-{on}",
    "__invert__": "~{on}", "__bool__": "bool({on})", "__str__": "str({on})", "__repr__": "repr({on})",
    "__hash__": "hash({on})", "__enter__": "{on}.__enter__()", "__reversed__": "reversed({on})",
    "__iadd__": "{on} += {a}", "__ior__": "{on} |= {a}", "__iand__": "{on} &= {a}", "__isub__": "{on} -= {a}",
    "__int__": "int({on})", "__float__": "float({on})", "__bytes__": "bytes({on})", "__abs__": "abs({on})",
}  # fmt: skip
_ODD = re.compile(r"<lambda>|<locals>|<\w+(?: \w+)* (?:object|function)|<[A-Za-z_.]+ ")
_WORD = re.compile(r"[A-Za-z_]\w*")
_MADE = re.compile(r"([a-z_]\w*) = ")
_UNBOUND = re.compile(r"(UnboundLocalError|NameError): .*", re.DOTALL)
"""Their messages name variables of the code that was changed."""
Call = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Symptom:
    """``lines`` of code, the last of them the one that goes wrong; ``got`` and ``wanted`` say what it does."""

    lines: tuple[str, ...]
    got: str
    wanted: str
    program: bool = False
    """``lines`` are a command and what it reads; ``got`` and ``wanted`` what it prints."""

    @property
    def size(self) -> int:
        return sum(map(len, self.lines)) + len(self.got) + len(self.wanted)

    @property
    def odd(self) -> bool:
        """Nobody can type it in: there is an object in it that has no words."""
        text = "\n".join(self.lines)
        return bool(_ODD.search(text)) or not (self.program or _is_source(text))

    @property
    def rank(self) -> tuple[bool, int, str]:
        """Those that can be typed in come first, then short ones."""
        return self.odd, self.size, "\n".join(self.lines)


def symptom_of(working: Sequence[Call], again: Sequence[Call], broken: Sequence[Call]) -> Symptom | None:
    """The first call of a test that ends in another way on the broken code. ``again``: the working code once more,
    under another hash seed; what differs between those two says nothing. None: no call tells."""
    for n, (right, wrong) in enumerate(zip(working, broken, strict=False)):
        if any(right.get(key) != wrong.get(key) for key in ("fn", "as", "args", "on")):
            if n < len(again) and _same(right, again[n]) and right.get("fn") == wrong.get("fn"):
                return None  # what was made before differs in a way that no call showed
            continue
        if _same(right, wrong):
            continue
        if n >= len(again) or not _same(right, again[n]):
            continue
        return _symptom(working[:n], right, wrong)
    return None


def _is_source(text: str) -> bool:
    try:
        parse_source(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _same(one: Call, two: Call) -> bool:
    return all(one.get(key) == two.get(key) for key in ("out", "text", "after"))


def _symptom(before: Sequence[Call], right: Call, wrong: Call) -> Symptom | None:
    if right.get("foreign") or wrong.get("foreign"):
        return None  # a method of a class that only the test knows, or a path that is nowhere else
    last = written({**right, "name": None})
    got, wanted = _difference(right, wrong)
    if last is None or not got or len(last) > MAX_CALL:
        return None
    context = _context(before, right)
    return None if context is None else _renamed(Symptom((*context, last), got, wanted))


def _renamed(symptom: Symptom) -> Symptom:
    """Names without the numbers that they have because of calls that are not shown."""
    taken: dict[str, str] = {}
    for line in symptom.lines:
        if (match := _MADE.match(line)) is not None and match[1] not in taken:
            base = match[1].rstrip("0123456789")
            same = sum(name.rstrip("0123456789") == base for name in taken)
            taken[match[1]] = f"{base}{same + 1}" if same else base

    def renamed(text: str) -> str:
        return _WORD.sub(lambda word: taken.get(word[0], word[0]), text)

    return Symptom(tuple(map(renamed, symptom.lines)), renamed(symptom.got), renamed(symptom.wanted))


def _context(before: Sequence[Call], call: Call) -> list[str] | None:
    """The calls that made what ``call`` uses and changed it, in their order; where they are many, the last of them. None:
    something that is used was made in no call that was seen, or it takes too many to make it."""
    needed = _names_in(call)
    kept: list[Call] = []
    for one in reversed(before):
        changes = bool(one["after"]) or (one["as"] == "method" and not one.get("shows"))
        if one.get("name") in needed or (
            one["known"] and one["on"] in needed and changes and one["out"] != "raise"
        ):
            kept.append(one)
            needed |= _names_in(one)
    kept.reverse()
    makers = [one for one in kept if one.get("name") in needed]
    if not needed <= {one["name"] for one in makers} or len(makers) > MAX_MAKERS:
        return None
    left_out = len(kept) - MAX_LINES
    others = [n for n, one in enumerate(kept) if one.get("name") not in needed]
    dropped = {*others[:left_out]} if left_out > 0 else set[int]()
    texts = [written(one) for n, one in enumerate(kept) if n not in dropped]
    if any(text is None or len(text) > MAX_CALL for text in texts):
        return None
    if dropped:
        first = min(dropped)
        texts.insert(first, f"# … {len(dropped)} more calls like these …")
    return [text for text in texts if text is not None]


def _names_in(call: Call) -> set[str]:
    """The names of objects that a call uses: its own object's, and those in its arguments."""
    return {*call["uses"]} | ({call["on"]} if call["known"] else set())


def written(call: Call) -> str | None:
    """A call as source."""
    args, on, name = list(call["args"]), call["on"], call["fn"]
    match call["as"]:
        case "property":
            text = f"{on}.{name}"
        case "method" if name in _DUNDER and len(args) <= 2:
            pattern = _DUNDER[name]
            if ("{a}" in pattern) > (len(args) > 0) or ("{b}" in pattern) > (len(args) > 1):
                return None
            text = pattern.format(on=on, a=args[0] if args else "", b=args[1] if len(args) > 1 else "")
        case "method" if name == "__call__":
            text = f"{on}({', '.join(args)})"
        case "method":
            text = f"{on}.{name}({', '.join(args)})"
        case _:
            text = f"{name}({', '.join(args)})"
    return f"{call['name']} = {text}" if call.get("name") else text


def _difference(right: Call, wrong: Call) -> tuple[str, str]:
    """What the call does, and what it should do; ("", "") where that can't be said in a few words."""
    if (right["out"], right["text"]) != (wrong["out"], wrong["text"]):
        if "open" in (right["out"], wrong["out"]):
            return "", ""
        a, b = _windows(wrong["text"], right["text"])
        return _verb(wrong["out"], "s", a), _verb(right["out"], "", b)
    for key in sorted({*right["after"], *wrong["after"]}):
        what = "the object" if key == "-1" else f"the argument `{_short(right['args'][int(key)])}`"
        a, b = wrong["after"].get(key, ""), right["after"].get(key, "")
        if a != b:
            x, y = _windows(a, b)
            return (
                f"makes of {what} `{x}`" if a else f"leaves {what} as it was",
                f"make of it `{y}`" if b else "leave it as it was",
            )
    return "", ""


def _verb(out: str, ending: str, text: str) -> str:
    if out == "yield":
        return f"give{ending} `{text}`, one by one"
    text = _UNBOUND.sub(r"\1", text) if out == "raise" else text
    fence = "``" if "`" in text else "`"
    return f"{'raise' if out == 'raise' else 'return'}{ending} {fence}{text}{fence}"


def _windows(a: str, b: str) -> tuple[str, str]:
    """Two long texts, around the first place where they differ."""
    if max(len(a), len(b)) <= MAX_VALUE:
        return a, b
    same = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    start = max(0, same - MAX_VALUE // 3)
    return _window(a, start), _window(b, start)


def _window(text: str, start: int) -> str:
    end = start + MAX_VALUE
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def of_program(stdin: str, args: Sequence[str], got: str, wanted: str) -> Symptom | None:
    """A run of a program that prints the wrong thing; None if it is too long to be shown."""
    if max(len(stdin), len(got), len(wanted)) > MAX_STREAM or got == wanted:
        return None
    return Symptom((" ".join(args), stdin), got, wanted, program=True)


def tells(symptom: Symptom, forbidden: Sequence[str]) -> bool:
    """Whether a symptom has one of these words or paths in it: names of tests, of private functions, of files."""
    text = "\n".join((*symptom.lines, symptom.got, symptom.wanted))
    words = {*_WORD.findall(text)}
    return any(word in words or ("/" in word and word in text) for word in forbidden)
