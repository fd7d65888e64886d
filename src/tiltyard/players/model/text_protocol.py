"""Actions in plain text, for models without tool calls: fenced blocks in an answer.

A block whose first word is a tool's name is a call of it: the rest of that line is the path, what is in the block the
content. A block marked ``tool`` (or ``json``), or an answer that is nothing else, holds an action as JSON. Blocks of
anything else, and prose, are no actions. Promises: any text gives a list of actions, never an exception; what is wrong
with an action is left for the environment to say, in the same words for every protocol.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tiltyard.tools import TOOLS
from tiltyard.tools.text import cut_middle, decode, safe

MAX_BLOCKS = 64
MAX_SHOWN = 20_000
"""Characters of a file that is shown in a block."""
_JSON = ("tool", "tool_call", "action")
_MAYBE = ("json", "")
_CODE = ("python", "python3", "py", "")
_OLD, _MID, _NEW = "<<<<<<<", "=======", ">>>>>>>"
_NAMES = frozenset(tool.name for tool in TOOLS)

SYSTEM = """\
You solve a coding task in a workspace, with tools. You use a tool by writing a fenced block whose first line names it; \
what you get back is the next message. Nothing outside of such a block does anything.

To see a file, list the files, run the visible tests, or hand in your work (which ends the episode):
```view_file solution.py
```
```list_files
```
```run_tests
```
```submit
```
To write a file, put all of its new content into the block:
```write_file solution.py
def f(x):
    return x + 1
```
To replace a piece of a file that occurs in it exactly once:
```replace_text solution.py
<<<<<<< OLD
    return x + 1
=======
    return x + 2
>>>>>>> NEW
```
If the content itself has a line of three backticks, fence the block with four. Work until the visible tests pass and \
you believe that the hidden ones will, then submit."""

SYSTEM_CODE = """\
You solve a coding task. Answer with the whole content of the solution file, in one fenced block of Python:
```python
def f(x):
    return x + 1
```
The last such block of your answer is written to the solution file and handed in. There is nothing else to do."""

NO_ACTION = (
    "No action was found in your answer: nothing was done. Write a fenced block such as\n```view_file solution.py\n```\n"
    "or, if your work is done,\n```submit\n```"
)
NO_CODE = "No fenced block of code was found in your answer: nothing was done. Write the solution as\n```python\n…\n```"


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block. ``closed`` is False where the text ended first."""

    info: str
    body: str
    closed: bool = True


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a Markdown text, the first MAX_BLOCKS of them."""
    found: list[Block] = []
    lines = iter(text.split("\n"))
    for line in lines:
        fence, info = _opening(line)
        if fence:
            found.append(_block(lines, fence, info))
            if len(found) == MAX_BLOCKS:
                break
    return found


def _opening(line: str) -> tuple[str, str]:
    """The fence and what stands after it; "" if the line opens no block."""
    stripped = line.strip()
    for mark in "`~":
        rest = stripped.lstrip(mark)
        length = len(stripped) - len(rest)
        if length >= 3 and not (mark == "`" and "`" in rest):
            return mark * length, rest.strip()
    return "", ""


def _block(lines: Iterator[str], fence: str, info: str) -> Block:
    body: list[str] = []
    for line in lines:
        stripped = line.strip()
        if stripped and set(stripped) == {fence[0]} and len(stripped) >= len(fence):
            return Block(info, "\n".join(body))
        body.append(line)
    return Block(info, "\n".join(body), closed=False)


def actions(text: str, shell: bool = False) -> list[Any]:
    """The actions in an answer, in their order; [] for prose alone. ``shell``: a block of ``bash`` is a command."""
    found: list[Any] = []
    for block in blocks(text):
        found += _of_block(block, shell)
    if not found and text.lstrip().startswith("{"):
        found = [text.strip()]
    return found[:MAX_BLOCKS]


def code_actions(text: str, main: str) -> list[Any]:
    """What an answer of the ``code`` protocol does: its last block of code is written and submitted."""
    for block in reversed(blocks(text)):
        word = block.info.split()[0].lower() if block.info else ""
        if word in _CODE and block.body.strip():
            return [{"tool": "write_file", "path": main, "content": block.body + "\n"}, {"tool": "submit"}]
    return []


def fenced(data: bytes) -> str:
    """A file's text as a block, its middle left out where it is long."""
    shown = cut_middle(safe(decode(data)), MAX_SHOWN).rstrip("\n")
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    return f"{fence}python\n{shown}\n{fence}"


def refusal(message: str, text: str) -> dict[str, Any]:
    """An action that is refused with this message, when it is played again too."""
    return {"invalid": message, "chars": len(text)}


def _of_block(block: Block, shell: bool) -> list[Any]:
    word, _, rest = block.info.partition(" ")
    path = rest.strip().strip("`'\"")
    if shell and word in ("bash", "sh") and block.body.strip():
        return [{"tool": "bash", "command": block.body}]
    if word in _NAMES:
        if not block.closed and word in ("write_file", "replace_text"):
            message = f"The block of {word} was not closed: nothing was done. Write it whole, and close it with ```."
            return [refusal(message, block.body)]
        return [_call(word, path, block.body)]
    if word in _JSON or (word in _MAYBE and block.body.lstrip().startswith("{")):
        return _json(block.body.strip(), sure=word in _JSON)
    return []


def _json(body: str, *, sure: bool) -> list[Any]:
    """The actions in a block of JSON: one, or a list. A block that only may hold one must look as if it did."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return [body] if sure or "tool" in body else []
    if isinstance(value, list) and sure:
        return value[:MAX_BLOCKS] or [body]
    looks = isinstance(value, dict) and any(key in value for key in ("tool", "function", "name"))
    return [body] if sure or looks else []


def _call(tool: str, path: str, body: str) -> dict[str, Any]:
    call: dict[str, Any] = {"tool": tool}
    if tool in ("view_file", "write_file", "replace_text") and path:
        call["path"] = path
    if tool == "view_file":
        call |= _lines(path)
    elif tool == "write_file":
        call["content"] = body + "\n" if body else ""
    elif tool == "replace_text":
        call |= _change(body)
    return call


def _lines(rest: str) -> dict[str, Any]:
    """``solution.py 10 20`` and ``solution.py 10-20``: a path and lines."""
    words = rest.replace("-", " ").split() if " " in rest else []
    numbers: list[int] = []
    while len(words) > 1 and len(numbers) < 2 and words[-1].isdecimal() and len(words[-1]) < 10:
        numbers.insert(0, int(words.pop()))
    if not numbers:
        return {}
    path = rest
    for _ in numbers:
        path = path.rstrip("0123456789").rstrip(" -")
    return {"path": path} | dict(zip(("start_line", "end_line"), numbers, strict=False))


def _change(body: str) -> dict[str, Any]:
    """The two sides of a replacement; {} where its marks are not there, and the environment says what is missing."""
    lines = body.split("\n")
    marks = [next((n for n, line in enumerate(lines) if line.startswith(mark)), -1) for mark in (_OLD, _NEW)]
    first, last = marks
    middle = next((n for n in range(first + 1, last) if lines[n].startswith(_MID)), -1)
    if not 0 <= first < middle < last:
        return {}
    return {"old": "\n".join(lines[first + 1 : middle]), "new": "\n".join(lines[middle + 1 : last])}
