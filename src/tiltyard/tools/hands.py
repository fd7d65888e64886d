"""What the file tools do, in a cell. Each function gives the text of an observation, or raises PlayerError with one.

Never touches the host's file system: every byte goes through the cell's keeper. Texts are not yet neutralised
(:func:`tiltyard.tools.text.safe` does that for all of them in one place) but paths in them are.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tiltyard.cells.protocol import Cell
from tiltyard.errors import PlayerError
from tiltyard.task import Limits, path_problem
from tiltyard.tools import text

MAX_LISTED = 1000


@dataclass(frozen=True, slots=True)
class Bench:
    """Where the hands work: a cell, and what they may do in it. ``protected`` maps a path to why it is protected."""

    cell: Cell
    limits: Limits
    protected: dict[str, str] = field(default_factory=dict)


def clean_path(path: str) -> str:
    """The path as the cell takes it (a leading ``./`` is dropped). PlayerError for one that leaves the workspace."""
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    if (what := path_problem(path)) is not None:
        raise PlayerError(
            f"Found {what} ({text.name(path)!r}); expected one inside the workspace, relative to it, "
            "such as 'solution.py'. list_files() shows what is there."
        )
    return path


def view_file(bench: Bench, path: str, start_line: int | None = None, end_line: int | None = None) -> str:
    """The file's text, whole or from line to line; each with a first line that says what is shown."""
    path = clean_path(path)
    shown = text.name(path)
    data = bench.cell.read(path, max_bytes=bench.limits.file_bytes)
    if b"\0" in data:
        raise PlayerError(
            f"{shown} is a binary file of {text.plural(len(data), 'byte')}; only text can be shown."
        )
    lines = text.decode(data).split("\n")
    open_end = bool(lines[-1])
    if not open_end:
        lines.pop()
    total = len(lines)
    if not total:
        return f"{shown} is empty (0 bytes)."
    first, last = start_line or 1, min(end_line or total, total)
    if first > total:
        raise PlayerError(
            f"{shown} has {text.plural(total, 'line')}; start_line {first} is beyond the last one."
        )
    if end_line is not None and end_line < first:
        raise PlayerError(
            f"Found end_line {end_line} before start_line {first}; expected it to be the same or later."
        )
    note = ", no newline at the end" if open_end and last == total else ""
    head = f"{shown} ({text.plural(total, 'line')}{note})"
    if (first, last) != (1, total):
        head = f"{shown} (lines {first} to {last} of {total}{note})"
    return text.cut_middle(
        f"{head}:\n" + "\n".join(lines[first - 1 : last]),
        bench.limits.observation_chars,
        "give start_line and end_line to see a part",
    )


def list_files(bench: Bench) -> str:
    """One line a file, with its size; links and the like are named as what they are. Folders only where empty."""
    listing = bench.cell.list(max_entries=MAX_LISTED)
    parents = {e.path.rsplit("/", 1)[0] for e in listing.entries if "/" in e.path}
    rows: list[tuple[str, str]] = []
    for entry in listing.entries:
        if entry.kind == "folder":
            if entry.path not in parents:
                rows.append((entry.path + "/", "empty folder"))
        elif entry.kind == "file":
            protected = ", protected" if entry.path in bench.protected else ""
            rows.append((entry.path, text.plural(entry.size, "byte") + protected))
        else:
            rows.append((entry.path, entry.kind))
    if not rows:
        return "The workspace is empty."
    width = min(60, max(len(p) for p, _ in rows))
    lines = [f"{text.name(p):<{width}}  {what}" for p, what in rows]
    if listing.left_out:
        count = (
            "more"
            if listing.left_out < 0
            else text.plural(listing.left_out, "more entry").replace("entrys", "entries")
        )
        lines.append(f"[… {count} not listed …]")
    return "\n".join(lines)


def write_file(bench: Bench, path: str, content: str) -> str:
    """Create or replace a file."""
    path = clean_path(path)
    check_writable(bench, path)
    data = content.encode()
    _write(bench, path, data)
    return f"Wrote {text.name(path)}: {text.plural(len(data), 'byte')}, {text.plural(_count_lines(content), 'line')}."


def replace_text(bench: Bench, path: str, old: str, new: str) -> str:
    """Replace the one place where ``old`` stands."""
    path = clean_path(path)
    shown = text.name(path)
    check_writable(bench, path)
    if not old:
        raise PlayerError(
            "Found an empty 'old'; expected the text to replace. write_file() replaces a whole file."
        )
    try:
        before = bench.cell.read(path, max_bytes=bench.limits.file_bytes).decode("utf-8")
    except UnicodeDecodeError:
        raise PlayerError(
            f"{shown} is not valid UTF-8 text; use write_file() to replace all of it."
        ) from None
    at = before.find(old)
    if at < 0:
        raise PlayerError(
            f"The old text was found 0 times in {shown}; expected it exactly once, white space included. "
            "view_file() shows what is there. Nothing was changed."
        )
    if (count := _occurrences(before, old)) > 1:
        raise PlayerError(
            f"The old text was found {count} times in {shown}; expected exactly once. "
            "Give more of the text around it. Nothing was changed."
        )
    after = before[:at] + new + before[at + len(old) :]
    _write(bench, path, after.encode())
    line = before.count("\n", 0, at) + 1
    return f"Replaced the text at line {line} of {shown}; the file has {text.plural(_count_lines(after), 'line')} now."


def _occurrences(where: str, what: str) -> int:
    """How often it occurs, overlaps counted: 'aa' is ambiguous in 'aaa'."""
    count, at = 0, where.find(what)
    while at >= 0 and count < 1000:
        count, at = count + 1, where.find(what, at + 1)
    return count


def _count_lines(content: str) -> int:
    return content.count("\n") + (not content.endswith("\n") if content else 0)


def check_writable(bench: Bench, path: str) -> None:
    """PlayerError if the task protects the path, or a folder that it is in."""
    parts = path.split("/")
    for n in range(1, len(parts) + 1):
        if (why := bench.protected.get("/".join(parts[:n]))) is not None:
            raise PlayerError(f"{text.name('/'.join(parts[:n]))} is protected: {why}. Nothing was written.")


def check_size(bench: Bench, path: str, data: bytes) -> None:
    """PlayerError if these bytes are more than one file may have."""
    if len(data) > bench.limits.file_bytes:
        raise PlayerError(
            f"Found {len(data)} bytes for {text.name(path)}; expected at most {bench.limits.file_bytes}. "
            "Nothing was written."
        )


def _write(bench: Bench, path: str, data: bytes) -> None:
    check_size(bench, path, data)
    bench.cell.write(path, data)
