"""Prompts in other words, by templates: the same facts, told otherwise. The same seed, the same words.

Only prose is touched: what is code, data or quoted stays byte for byte, and so do numbers. Sentences that importers write
have whole templates; in the rest, phrases are exchanged for others that mean the same, and a frame is put around it.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace

from tiltyard.sources.perturb import prose
from tiltyard.sources.perturb.model import CantError, Change
from tiltyard.task import Task

_SENTENCES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        r"Complete the function (?P<f>`[^`]+`) in (?P<p>`[^`]+`), as its docstring says\. The file begins like this, and what is there stays:",
        (
            "In {p} the function {f} has no body yet. Write it, so that it does what its docstring promises. The file starts as shown here; keep that part:",
            "Your work is the body of {f} in {p}; the docstring says what it has to do. Leave the beginning of the file as it is:",
            "{p} begins with the lines below, which must stay. Finish {f} in it according to its docstring:",
        ),
    ),
    (
        r"Write (?P<f>`[^`]+`(?: and `[^`]+`)*) in (?P<p>`[^`]+`)\. This must hold:",
        (
            "Put {f} into {p}. The following has to be true:",
            "The file {p} is where {f} belongs. It has to satisfy this:",
            "Define {f} in {p}, such that this is true:",
        ),
    ),
    (
        r"Write (?:a|the) (?:python )?function (?:to|that will|which will) (?P<r>[a-z][^.\n`]*?)(?P<e>[.\n]|$)",
        (
            "What is wanted is a function to {r}{e}",
            "Your task is to {r}; do it in a function{e}",
            "Provide a function whose purpose is to {r}{e}",
        ),
    ),
    (
        r"Write (?:the|a) (?P<k>class|function|program) (?P<f>`[^`]+`) in (?P<p>`[^`]+`)(?=[:.,])",
        (
            "Implement the {k} {f} in {p}",
            "{p} needs a {k} {f}; provide it",
            "Your task is the {k} {f}, to be put into {p}",
        ),
    ),
    (
        r"Write (?:the|a) (?P<k>class|function|program) (?P<f>`[^`]+`)(?=[:.,])",
        ("Implement the {k} {f}", "Create the {k} {f}", "Provide the {k} {f}"),
    ),
)  # fmt: skip
_PHRASES: tuple[tuple[str, ...], ...] = (
    ("must not", "may not"),
    ("must be", "shall be"),
    ("if there is none", "if there isn't any"),
    ("in the order", "in the same sequence"),
    ("for each", "for every"),
    ("at most", "no more than"),
    ("at least", "no fewer than"),
    ("as well", "too"),
    ("for example", "for instance"),
    ("e.g.", "for example"),
    ("i.e.", "that is"),
    ("a list of", "a list with"),
    ("is less than", "is below"),
    ("is greater than", "is above"),
    ("is not there", "is missing"),
    ("isn't there", "is missing"),
    ("can't be", "cannot be"),
    ("doesn't", "does not"),
    ("don't", "do not"),
    ("isn't", "is not"),
    ("aren't", "are not"),
    ("returns", "gives back"),
    ("return", "give back"),
    ("contains", "holds"),
    ("otherwise", "else"),
    ("example:", "an example:"),
    ("note:", "mind this:"),
    ("ignore", "leave aside"),
    ("each", "every"),
    ("find", "determine"),
    ("check whether", "tell whether"),
    ("check if", "tell whether"),
    ("compute", "work out"),
    ("calculate", "work out"),
    ("implement", "write"),
    ("create", "make"),
    ("requires", "needs"),
    ("begins", "starts"),
    ("ends", "finishes"),
    ("mend", "repair"),
    ("fix", "repair"),
)
_ONE_WAY = frozenset({"each", "return", "find", "contains", "ends"})
"""Ordinary words that are exchanged in some prompts only: now and then they are part of a set phrase."""
_BEFORE = (
    "Here is what is needed.\n\n",
    "Please take care of the following.\n\n",
    "This is your assignment.\n\n",
    "The following has to be done.\n\n",
)
_AFTER = (
    "",
    "\n\nWhat is said above decides; nothing beyond it is asked for.",
    "\n\nEverything above counts, the unusual cases too.",
    "\n\nHand it in when all of this is the case.",
)
_FIXED = re.compile(r"[+-]?\d+(?:\.\d+)?")


def reword(task: Task, rng: random.Random) -> Change:
    """The task with its prompt in other words. Raises CantError: no template fits it."""
    prompt = _sentences(task.prompt, rng)
    prompt, phrases = _phrases(prompt, rng)
    before, after = rng.choice(_BEFORE), rng.choice(_AFTER)
    prompt = before + prompt.strip("\n") + after + ("\n" if task.prompt.endswith("\n") else "")
    if why := lost(task.prompt, prompt):
        raise CantError(f"the words would have changed {why}")
    return Change(replace(task, prompt=prompt), f"{phrases} phrases, a frame around them")


def _sentences(text: str, rng: random.Random) -> str:
    for pattern, others in _SENTENCES:

        def other(found: re.Match[str], others: tuple[str, ...] = others) -> str:
            made = rng.choice(others).format(**found.groupdict())
            return made[:1].upper() + made[1:]

        text = re.sub(pattern, other, text, count=1)
    return text


def _phrases(text: str, rng: random.Random) -> tuple[str, int]:
    """Phrases of the prose, some of them in other words."""
    table = {a: b for a, b in _PHRASES if a not in _ONE_WAY or rng.random() < 0.25}
    pattern = re.compile(
        r"(?<![\w'-])(" + "|".join(map(re.escape, sorted(table, key=len, reverse=True))) + r")(?![\w'-])",
        re.IGNORECASE,
    )
    count = 0

    def other(found: re.Match[str]) -> str:
        nonlocal count
        if rng.random() < 0.3:
            return found[0]
        count += 1
        new = table[found[0].lower()]
        return new[:1].upper() + new[1:] if found[0][:1].isupper() else new

    out = []
    for piece in prose.pieces(text, frozenset()):
        part = text[piece.start : piece.end]
        out.append(pattern.sub(other, part) if piece.kind == prose.PROSE else part)
    return "".join(out), count


def facts(prompt: str) -> Counter[str]:
    """What another wording must keep: every piece of code or data, every quote, every number of the prose."""
    found: Counter[str] = Counter()
    for piece in prose.pieces(prompt, frozenset()):
        part = prompt[piece.start : piece.end]
        if piece.kind == prose.PROSE:
            found.update(_FIXED.findall(part))
            found.update(
                word for word in re.findall(r"[^\W\d]\w*", part) if prose.is_name_like(word) and len(word) > 2
            )
        else:
            found[part] += 1
    return found


def lost(before: str, after: str, *, more_allowed: bool = False) -> str:
    """What of ``before`` is missing in ``after``, or is in it without reason; "" if nothing is."""
    old, new = facts(before), facts(after)
    gone = set(old) - set(new) if more_allowed else set((old - new).keys())
    extra = set(new) - set(old)
    wrong = sorted(gone | extra, key=len)
    return repr(wrong[0][:60]) if wrong else ""
