"""Unified diffs, as git writes them: made from two trees of files, and laid on one.

Promises: pure data, no process and no disk; a patch that can't be applied changes nothing and says which file and
which hunk, and what was found there. What a patch names is checked as any workspace path is, so it leads nowhere
else. A hunk may stand some lines off, as for ``git apply``; with ``fuzz`` the outermost lines of its context may
differ, as for ``patch``. Links, submodules and binary changes are refused. Parsed by ``unidiff``.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from tiltyard.errors import UsageError
from tiltyard.task import Files, path_problem

MAX_PATCH = 16 << 20
"""Characters of a patch that is read."""
MAX_WORK = 1 << 20
CONTEXT = 3
_NULL = "/dev/null"
_ESCAPE = re.compile(rb"\\([0-3][0-7]{2}|.)", re.DOTALL)
_LETTERS = {b"n": 10, b"t": 9, b"r": 13, b"a": 7, b"b": 8, b"f": 12, b"v": 11}
_ODD_MODE = re.compile(r"^(?:new(?: file)? mode|index \S+) (120000|160000)$", re.MULTILINE)


class PatchError(UsageError):
    """A text is no patch, or can't be applied to these files."""


# -- making ------------------------------------------------------------------------------------------------------


def diff(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> str:
    """What leads from ``before`` to ``after``, sorted by path; "" if nothing. A change of bytes that are no text is only
    named ("Binary files … differ")."""
    return "".join(_of_file(path, before.get(path), after.get(path)) for path in _changed(before, after))


def _changed(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[str]:
    if isinstance(before, Files) and isinstance(after, Files):
        old, new = before.digests, after.digests
        return sorted(path for path in {*old, *new} if old.get(path) != new.get(path))
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


def _of_file(path: str, old: bytes | None, new: bytes | None) -> str:
    source, target = _quoted(f"a/{path}"), _quoted(f"b/{path}")
    head = f"diff --git {source} {target}\n"
    if old is None:
        head += "new file mode 100644\n"
    if new is None:
        head += "deleted file mode 100644\n"
    source, target = _NULL if old is None else source, _NULL if new is None else target
    before, after = _lines(old or b""), _lines(new or b"")
    if before is None or after is None:
        return f"{head}Binary files {source} and {target} differ\n"
    out = [head]
    for n, line in enumerate(_hunks(before, after)):
        if n == 0:
            out.append(f"--- {_ended(source)}\n+++ {_ended(target)}\n")
        out.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(out)


def _hunks(before: list[str], after: list[str]) -> Iterator[str]:
    """The hunks' lines. A player's files may be made to take difflib hours: those are one hunk."""
    if _work(before, after) <= MAX_WORK:
        yield from islice(difflib.unified_diff(before, after, "", "", n=CONTEXT), 2, None)
        return
    first, last = _common(before, after), 0
    shorter = min(len(before), len(after)) - first
    last = min(_common(before[::-1], after[::-1]), shorter)
    start, rest = max(0, first - CONTEXT), max(0, last - CONTEXT)
    old, new = len(before) - rest - start, len(after) - rest - start
    yield f"@@ -{start + 1 if old else start},{old} +{start + 1 if new else start},{new} @@\n"
    yield from (f" {line}" for line in before[start:first])
    yield from (f"-{line}" for line in before[first : len(before) - last])
    yield from (f"+{line}" for line in after[first : len(after) - last])
    yield from (f" {line}" for line in before[len(before) - last : len(before) - rest])


def _work(before: list[str], after: list[str]) -> int:
    """Pairs of equal lines that difflib will look at, but for lines that it leaves aside because they are too common."""
    ours, theirs = Counter(before), Counter(after)
    common = len(after) // 100 + 1 if len(after) >= 200 else len(after)
    return sum(count * theirs[line] for line, count in ours.items() if theirs[line] <= common)


def _ended(name: str) -> str:
    """Behind a name with a space git puts a tab, or what follows would be taken for a time."""
    return f"{name}\t" if " " in name and not name.startswith('"') else name


def _quoted(path: str) -> str:
    """As git shows a path: in quotes if it has anything unusual in it."""
    raw = path.encode()
    if all(0x20 <= byte < 0x7F and byte not in b'"\\' for byte in raw):
        return path
    return '"' + "".join(_escaped(byte) for byte in raw) + '"'


def _escaped(byte: int) -> str:
    if byte in b'"\\':
        return f"\\{chr(byte)}"
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}"


def _lines(data: bytes) -> list[str] | None:
    """Lines with their ends, or None for what is no text."""
    if b"\0" in data:
        return None
    try:
        return _split(data.decode())
    except UnicodeDecodeError:
        return None


def _split(text: str) -> list[str]:
    """At line feeds and nothing else: a form feed or a lone carriage return ends no line of a patch."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


# -- reading and applying ----------------------------------------------------------------------------------------


def touched(patch: str) -> tuple[str, ...]:
    """The paths that a patch names, old and new, sorted. PatchError: it is no patch."""
    return tuple(sorted({name for file in _parsed(patch) for name in _names(file) if name}))


def apply(patch: str, files: Mapping[str, bytes], *, fuzz: int = 0) -> Files:
    """The files with the patch applied: a tree like ``files``, what the patch removes is not in it. ``fuzz``: lines at
    either end of a hunk's context that may differ. PatchError, with nothing changed."""
    out: dict[str, bytes] = dict(files.items())
    found = list(_parsed(patch))
    if not found and patch.strip():
        raise PatchError(
            "found a text without a change in it; expected a unified diff ('--- a/…', '+++ b/…', '@@ …')"
        )
    for file in found:
        old, new = _names(file)
        if file.is_binary_file:
            raise PatchError(f"{new or old}: found a binary change; expected text")
        if old and old not in out:
            raise PatchError(f"{old}: the patch changes it, and there is no such file{_near(old, out)}")
        if new and new != old and new in out:
            raise PatchError(f"{new}: the patch makes it, and it is there already")
        if old and not new and not len(file) and out[old]:
            raise PatchError(
                f"{old}: the patch deletes it without showing its {len(out[old])} bytes; it may be cut off"
            )
        data = _patched(file, old or new, out[old] if old else b"", fuzz)
        if old and old != new:
            del out[old]
        if new:
            clash = _clash(new, out) if new not in out else ""
            if clash:
                raise PatchError(f"{new}: {clash} is a file; expected a folder")
            out[new] = data
    return Files(out)


def _clash(path: str, files: Mapping[str, bytes]) -> str:
    parents = (path.rsplit("/", n)[0] for n in range(1, path.count("/") + 1))
    inner = f"{path}/"
    return next((p for p in parents if p in files), "") or next((p for p in files if p.startswith(inner)), "")


def _near(path: str, files: Iterable[str]) -> str:
    name = path.rpartition("/")[2]
    same = [other for other in files if other.rpartition("/")[2] == name]
    return f"; did you mean {same[0]!r}?" if same else ""


def _parsed(patch: str) -> Iterator[Any]:
    from unidiff.errors import UnidiffParseError
    from unidiff.patch import PatchSet

    if len(patch) > MAX_PATCH:
        raise PatchError(f"found a patch of {len(patch)} characters; expected at most {MAX_PATCH}")
    if (odd := _ODD_MODE.search(patch)) is not None:
        what = "a link" if odd[1] == "120000" else "a submodule"
        raise PatchError(f"found a patch that makes {what}; expected regular files only")
    if "\nGIT binary patch\n" in patch:
        raise PatchError("found a binary patch; expected text")
    try:
        yield from PatchSet(patch if patch.endswith("\n") or not patch else f"{patch}\n")
    except UnidiffParseError as error:
        raise PatchError(f"found a text that is no unified diff: {str(error).strip()[:300]}") from None
    except (ValueError, IndexError, AssertionError, TypeError, AttributeError, UnicodeError) as error:
        # a hostile patch must not end whoever reads it
        raise PatchError(f"found a text that is no unified diff ({type(error).__name__})") from None


def _names(file: Any) -> tuple[str, str]:
    """(old, new) as workspace paths, "" where there is no such side."""
    sides = [_unquoted(name) for name in (file.source_file, file.target_file)]
    prefixed = all(
        name == _NULL or name.startswith(mark) for name, mark in zip(sides, ("a/", "b/"), strict=True)
    )
    old, new = ("" if name == _NULL else name[2:] if prefixed else name for name in sides)
    if not len(
        file
    ):  # an empty file has no hunk, and both names; with hunks, one of an empty file looks like a new one
        old, new = "" if file.is_added_file else old, "" if file.is_removed_file else new
    for name in (old, new):
        if name and (problem := path_problem(name)) is not None:
            raise PatchError(f"found {problem} in a patch: {name!r}")
    if not old and not new:
        raise PatchError("found a change of no file in a patch")
    return old, new


def _unquoted(name: str) -> str:
    if len(name) < 2 or not (name.startswith('"') and name.endswith('"')):
        return name
    raw, at = bytearray(), 0
    inner = name[1:-1].encode()
    while at < len(inner):
        taken = _ESCAPE.match(inner, at)
        if taken is None:
            raw.append(inner[at])
            at += 1
            continue
        said = taken[1]
        raw.append(int(said, 8) if len(said) == 3 else _LETTERS.get(said, said[0]))
        at = taken.end()
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise PatchError(f"found a name in a patch that can't be read: {name[:200]}") from None


def _patched(file: Any, name: str, data: bytes, fuzz: int) -> bytes:
    if not len(file):
        return data
    lines = _lines(data)
    if lines is None:
        raise PatchError(f"{name}: the patch changes its text, and it is no text in UTF-8")
    shift, end = 0, 0
    for number, hunk in enumerate(file, 1):
        old, new = _sides(hunk)
        wanted = hunk.source_start - (1 if old else 0) + shift
        at, skip, cut = _place(lines, old, new, wanted, end, fuzz)
        if at < 0:
            raise PatchError(_misfit(name, number, hunk, lines, old, wanted))
        first, last = skip, len(new) - cut
        lines[at : at + len(old) - skip - cut] = new[first:last]
        shift = at - skip - (hunk.source_start - (1 if old else 0)) + len(new) - len(old)
        end = at + last - first
    return "".join(lines).encode()


def _sides(hunk: Any) -> tuple[list[str], list[str]]:
    """What a hunk expects, and what it puts there."""
    old: list[str] = []
    new: list[str] = []
    before: tuple[list[str], ...] = ()
    for line in hunk:
        kind, value = line.line_type, line.value
        if kind == "\\":
            for side in before:
                side[-1] = side[-1].removesuffix("\n")
            continue
        before = (old, new) if kind in (" ", "") else (old,) if kind == "-" else (new,)
        for side in before:
            side.append(value if value.endswith("\n") else f"{value}\n")
    return old, new


def _place(
    lines: list[str], old: list[str], new: list[str], wanted: int, least: int, fuzz: int
) -> tuple[int, int, int]:
    """(line, lines left out at the hunk's beginning, at its end); line -1: nowhere. Nearest to where it should be."""
    if not old:
        return (wanted, 0, 0) if least <= wanted <= len(lines) else (-1, 0, 0)
    for level in range(fuzz + 1):
        skip = min(level, _common(old, new))
        cut = min(level, _common(old[::-1], new[::-1]), len(old) - skip)
        if level and not (skip or cut):
            break
        piece = old[skip : len(old) - cut]
        if not piece:
            break
        fits = [at for at in range(least, len(lines) - len(piece) + 1) if _fits(lines, piece, at)]
        if fits:
            return min(fits, key=lambda at: abs(at - wanted - skip)), skip, cut
    return -1, 0, 0


def _fits(lines: list[str], piece: list[str], at: int) -> bool:
    return lines[at] == piece[0] and lines[at : at + len(piece)] == piece


def _common(one: list[str], other: list[str]) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


def _misfit(name: str, number: int, hunk: Any, lines: list[str], old: list[str], wanted: int) -> str:
    at = min(max(wanted, 0), max(len(lines) - 1, 0))
    differs = next((n for n, line in enumerate(old) if at + n >= len(lines) or lines[at + n] != line), 0)
    there = lines[at + differs].rstrip("\n") if at + differs < len(lines) else "the end of the file"
    expected = old[differs].rstrip("\n") if old else ""
    return (
        f"{name}: hunk {number} (line {hunk.source_start}) does not fit: expected {expected[:200]!r} at line "
        f"{at + differs + 1}, found {there[:200]!r}"
    )
