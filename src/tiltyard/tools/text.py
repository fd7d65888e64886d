"""Text that is safe to show. Every observation passes through here, last.

Promises: what comes out is valid Unicode without control characters (but newline and tab), without terminal escapes
and without characters that reorder or hide text; each such character is shown as an escape (``\\x1b``). Length is
bounded, and a cut says how much was left out. Same input, same bytes. Never raises for any text.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
_NAMED = {"\r": "\\r", "\x0b": "\\v", "\x0c": "\\f", "\x00": "\\0", "\x08": "\\b", "\x07": "\\a"}


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    if char in _NAMED:
        return _NAMED[char]
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was no UTF-8, kept by surrogateescape
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def safe(text: str) -> str:
    """The text with everything that could act on a terminal, or hide, shown as an escape."""
    return _UNSAFE.sub(_escape, text)


def decode(data: bytes) -> str:
    """UTF-8 as text; bytes that are no UTF-8 come out as ``\\xff``. Not yet :func:`safe`."""
    return data.decode("utf-8", "backslashreplace")


def cut_middle(text: str, limit: int, hint: str = "") -> str:
    """At most ``limit`` characters: the first and the last part, and between them how much was left out.

    The cut is at line ends where there is one near. ``hint`` is added to the note ("view the file in parts").
    """
    if len(text) <= limit:
        return text
    note = f"\n[… {len(text)} characters left out{'; ' + hint if hint else ''} …]\n"  # the longest it can get
    room = limit - len(note)
    if room < 2:
        return text[:limit]
    head, tail = text[: room - room // 2], text[len(text) - room // 2 :]
    if (at := head.rfind("\n")) > len(head) * 3 // 4:
        head = head[:at]
    if 0 <= (at := tail.find("\n")) < len(tail) // 4:
        tail = tail[at + 1 :]
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n[… {left_out} characters left out{'; ' + hint if hint else ''} …]\n{tail}"


def name(path: str, limit: int = 200) -> str:
    """A path as it may stand in a sentence: one line, bounded."""
    shown = safe(path).replace("\n", "\\n").replace("\t", "\\t")
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def tokens(chars: int) -> int:
    """An estimate of how many tokens so many characters are: one for four, rounded up."""
    return -(-chars // 4)
