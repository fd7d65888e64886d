"""Traces and texts a little different from those that the tests use."""

from __future__ import annotations

import ast
from typing import Any


def constants(sources: Any) -> Any:
    """The texts and numbers in a program, and the numbers beside them: what its conditions turn on."""
    pool: dict[Any, Any] = {int: {0, 1, -1, 2, 10}, str: {"", " ", "a", "0"}, float: {0.0, 0.5, -1.0}}
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            value = node.value if isinstance(node, ast.Constant) else None
            if type(value) is int and abs(value) < 10**9:
                pool[int].update((value - 1, value, value + 1))
            elif type(value) is float and value == value:
                pool[float].add(value)
            elif type(value) is str and len(value) < 40:
                pool[str].add(value)
    return pool


def collect(traces: Any, pool: Any) -> Any:
    """The texts and numbers that the tests use, to be tried elsewhere, added to ``pool``."""

    def look(frozen: Any) -> Any:
        kind = frozen[0]
        if kind == "v":
            if type(frozen[1]) in pool and frozen[1] == frozen[1] and len(pool[type(frozen[1])]) < 200:
                pool[type(frozen[1])].add(frozen[1])
        elif kind in ("l", "i"):
            for x in frozen[-1]:
                look(x)
        elif kind == "d":
            for k, v in frozen[2]:
                look(k)
                look(v)

    for trace in traces:
        for op in trace:
            for x in (*op[4], *op[5].values()):
                look(x)
    return {kind: sorted(values) for kind, values in pool.items()}


def vary_trace(trace: Any, rng: Any, pool: Any) -> Any:
    """A trace a little different: an argument changed, an operation left out, repeated or moved."""
    trace = list(trace)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.randrange(len(trace))
        roll = rng.random()
        if len(trace) > 1 and roll < 0.12:
            del trace[at]
        elif len(trace) > 1 and roll < 0.24:
            _, *rest = trace[at]
            trace.insert(rng.randrange(at, len(trace)) + 1, (max(op[0] for op in trace) + 1, *rest))
        elif len(trace) > 2 and roll < 0.3:
            other = rng.randrange(len(trace))
            trace[at], trace[other] = trace[other], trace[at]
        else:
            trace[at] = _vary_op(trace[at], rng, pool)
    return trace


def _vary_op(op: Any, rng: Any, pool: Any) -> Any:
    number, kind, receiver, name, args, kwargs = op
    places = [*range(len(args)), *kwargs]
    if not places:
        return op
    place = rng.choice(places)
    args, kwargs = list(args), dict(kwargs)
    if rng.random() < 0.12:  # leave it to its default, if it has one
        if isinstance(place, int):
            args.pop()
        else:
            del kwargs[place]
        return (number, kind, receiver, name, tuple(args), kwargs)
    holder = args if isinstance(place, int) else kwargs
    holder[place] = vary(holder[place], rng, pool)
    return (number, kind, receiver, name, tuple(args), kwargs)


def vary(frozen: Any, rng: Any, pool: Any) -> Any:
    kind = frozen[0]
    if kind == "v":
        return ("v", _vary_plain(frozen[1], rng, pool))
    if kind in ("l", "i") and isinstance(frozen[-1], list):
        return (*frozen[:-1], _vary_items(frozen[-1], rng, pool))
    if kind == "d":
        return ("d", frozen[1], _vary_pairs(frozen[2], rng, pool), frozen[3])
    return frozen


def _vary_items(items: Any, rng: Any, pool: Any) -> Any:
    items = list(items)
    roll = rng.random()
    at = rng.randrange(len(items)) if items else 0
    if not items or roll < 0.04:
        return []
    if roll < 0.55:
        items[at] = vary(items[at], rng, pool)
    elif roll < 0.67:
        del items[at]
    elif roll < 0.79:
        items.insert(rng.randrange(len(items) + 1), items[at])
    elif roll < 0.88:
        items.insert(at, vary(items[at], rng, pool))
    elif roll < 0.95:
        other = rng.randrange(len(items))
        items[at], items[other] = items[other], items[at]
    else:
        items.reverse()
    return items


def _vary_pairs(pairs: Any, rng: Any, pool: Any) -> Any:
    pairs = list(pairs)
    if not pairs:
        return pairs
    at = rng.randrange(len(pairs))
    roll = rng.random()
    if roll < 0.2:
        del pairs[at]
    elif roll < 0.8:
        pairs[at] = (pairs[at][0], vary(pairs[at][1], rng, pool))
    else:
        pairs[at] = (vary(pairs[at][0], rng, pool), pairs[at][1])
    return pairs


def _vary_plain(value: Any, rng: Any, pool: Any) -> Any:
    kind = type(value)
    if kind is bool:
        return not value
    if kind in pool and rng.random() < 0.25:
        return rng.choice(pool[kind])
    if kind is int:
        return rng.choice((value + 1, value - 1, -value, value * 2, value // 2, 0, value + 10))
    if kind is float:
        return rng.choice((value + 1, value - 0.5, -value, value / 2, 0.0, float(round(value))))
    if kind is str:
        return vary_text(value, rng, pool[str])
    if kind is bytes:
        return vary_text(value.decode("latin-1"), rng, [""]).encode("latin-1", "replace")
    return value


def vary_text(text: Any, rng: Any, others: Any) -> Any:
    at = rng.randrange(len(text) + 1)
    char = text[min(at, len(text) - 1)] if text else "a"
    return rng.choice(
        (
            text[:at] + text[at + 1 :], text[:at] + char + text[at:], text[:at] + rng.choice(" ,.-_09aZ\n\"'()[]") + text[at:],
            text[:at] + rng.choice(others) + text[at:], text[at:] + text[:at], text[:at], text[at:], text + text[-1:],
            text.swapcase(), text[:at] + chr(min(max(ord(char) + rng.choice((1, -1)), 32), 0x10FFF)) + text[at + 1 :],
        )
    )  # fmt: skip


def vary_input(text: Any, rng: Any, pool: Any) -> Any:
    lines = text.splitlines()
    roll = rng.random()
    if lines and roll < 0.75:
        at = rng.randrange(len(lines))
        if roll < 0.15:
            del lines[at]
        elif roll < 0.3:
            lines.insert(rng.randrange(len(lines) + 1), lines[at])
        elif roll < 0.4:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        else:
            words = lines[at].split(" ")
            place = rng.randrange(len(words))
            word = words[place]
            digits = word.removeprefix("-")
            number = digits.isascii() and digits.isdecimal() and len(digits) < 20
            words[place] = (
                str(_vary_plain(int(word), rng, pool)) if number else vary_text(word, rng, pool[str])
            )
            lines[at] = " ".join(words)
        return "\n".join(lines) + ("\n" if text.endswith("\n") else "")
    return vary_text(text, rng, pool[str])
