'''Delimited text.

A text is rows, each ended by a newline ("\\n" or "\\r\\n"); the last row's newline may be missing. An empty line is a
row of one empty field. A row is fields separated by the delimiter. A field that begins with a quotation mark (") goes
on to the next quotation mark that stands alone; a doubled one ("") within it means one quotation mark, and delimiters
and newlines of either kind within it belong to the field as they are. After the closing mark must come a delimiter, a
newline or the end. A quotation mark elsewhere than at the beginning of a field is an ordinary character.
'''

from __future__ import annotations

from collections.abc import Iterable

QUOTE = '"'


class FormatError(ValueError):
    """The text breaks the rules of the format."""


def read(text: str, delimiter: str = ",") -> list[list[str]]:
    """All rows of a text. FormatError for a quotation that isn't closed, or is followed by anything else than allowed."""
    rows: list[list[str]] = []
    at = 0
    while at < len(text):
        row: list[str] = []
        while True:
            field, at = read_field(text, at, delimiter)
            row.append(field)
            if at < len(text) and text[at] == delimiter:
                at += 1
                continue
            break
        at = skip_newline(text, at)
        rows.append(row)
    return rows


def read_field(text: str, at: int, delimiter: str) -> tuple[str, int]:
    """The field that begins at ``at``, and where it ends."""
    if not text.startswith(QUOTE, at):
        end = at
        while end < len(text) and text[end] != delimiter and not at_newline(text, end):
            end += 1
        return text[at:end], end
    parts = []
    at += 1
    while True:
        end = text.find(QUOTE, at)
        if end < 0:
            raise FormatError("a quotation isn't closed")
        parts.append(text[at:end])
        at = end + 1
        if not text.startswith(QUOTE, at):
            break
        parts.append(QUOTE)
        at += 1
    if at < len(text) and text[at] != delimiter and not at_newline(text, at):
        raise FormatError(f"after a quotation: {text[at]!r}")
    return "".join(parts), at


def at_newline(text: str, at: int) -> bool:
    return text.startswith(("\n", "\r\n"), at)


def skip_newline(text: str, at: int) -> int:
    if text.startswith("\r\n", at):
        return at + 2
    return at + 1 if text.startswith("\n", at) else at


def write(rows: Iterable[Iterable[str]], delimiter: str = ",") -> str:
    """The text of rows, each ended by "\\n". Only fields that need it are quoted.

    A field needs it if it holds the delimiter, a quotation mark, "\\n" or "\\r". ValueError for a row without fields.
    """
    lines = []
    for row in rows:
        fields = [quoted(field) if any(c in field for c in (delimiter, QUOTE, "\n", "\r")) else field for field in row]
        if not fields:
            raise ValueError("a row without fields can't be written")
        lines.append(delimiter.join(fields) + "\n")
    return "".join(lines)


def quoted(field: str) -> str:
    return QUOTE + field.replace(QUOTE, QUOTE * 2) + QUOTE
