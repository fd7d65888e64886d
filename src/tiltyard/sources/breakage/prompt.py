"""The prompt of a broken task: a report of symptoms, in the words of somebody who uses the code.

It names what was called, what came out and what should have: no file, no line, no test, and never more than a part of what
the hidden tests check.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from tiltyard.sources.breakage.symptoms import Symptom

_OPENINGS = (
    "Something in {name} stopped working. What was seen:",
    "{Name} used to do this right, and no longer does:",
    "A user of {name} reports that it does not behave as it should:",
    "After the last changes, {name} gives wrong results:",
    "There is a bug in {name}. This is how it shows:",
)
_CLOSINGS = (
    "There may be more cases like these. Find the cause and mend it where it is; what works must go on working.",
    "These are examples, not all of it. Find out why, mend the cause, and leave the rest as it is.",
    "The cause may lie elsewhere than where it shows. Mend it so that all such cases are right again.",
)


def prompt_of(name: str, symptoms: Sequence[Symptom], described: str, breaks: int, rng: random.Random) -> str:
    """The report. ``described`` is what the code is to do, "" if nothing is known; ``breaks`` how many faults there are."""
    opening = rng.choice(_OPENINGS).format(name=name, Name=name[:1].upper() + name[1:])
    parts = [opening, *(_program(s) if s.program else _call(s) for s in symptoms)]
    if breaks > 1:
        parts.append("There is more than one fault.")
    parts.append(rng.choice(_CLOSINGS))
    if described:
        quoted = "\n".join(f"> {line}".rstrip() for line in described.splitlines())
        parts.append(f"The code was written to this description:\n\n{quoted}")
    return "\n\n".join(parts) + "\n"


def _call(symptom: Symptom) -> str:
    return (
        f"{_fenced('python', chr(10).join(symptom.lines))}\n\nThis {symptom.got}. It should {symptom.wanted}."
    )


def _program(symptom: Symptom) -> str:
    args, stdin = symptom.lines
    called = f"Called with the arguments `{args}`, and" if args else "Given"
    return (
        f"{called} this on standard input:\n\n{_fenced('', stdin)}\n\nthe program ends like this:\n\n"
        f"{_fenced('', symptom.got)}\n\nand should end like this:\n\n{_fenced('', symptom.wanted)}"
    )


def _fenced(language: str, text: str) -> str:
    fence = "```" if "```" not in text else "````"
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"
