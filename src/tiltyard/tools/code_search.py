"""``search``: lines of the workspace that a regular expression matches, by ripgrep where the machine has it, else by grep.

Runs in the player's cell. Both look into the same files (hidden ones too, not ``.git``, no binary ones, no links) and give the
same lines in the same order; how they read a regular expression differs in rare cases.
"""

from __future__ import annotations

from tiltyard.cells.protocol import CellFileError, Run
from tiltyard.errors import PlayerError
from tiltyard.tools import text
from tiltyard.tools.hands import Bench, clean_path

MAX_LINES = 200
MAX_LINE = 300
MAX_READ = 4 << 20
"""Bytes of matches that are read; where there are more, those of later files are missing."""

_SEARCH = """
if command -v rg > /dev/null 2>&1; then
    exec rg --no-config --hidden --no-ignore --glob '!.git' --sort path --no-heading --with-filename --line-number \
        --color never --no-messages -e "$1" -- "$2"
fi
exec grep -rnHIsE --exclude-dir=.git --color=never -e "$1" -- "$2"
"""


def search(bench: Bench, pattern: str, path: str = "") -> str:
    """Path, line number and line of each match, sorted; the first of them if there are many."""
    if "\0" in pattern:
        raise PlayerError("Found a NUL character in the pattern; expected a regular expression.")
    where = clean_path(path.rstrip("/") or path) if path not in ("", ".", "./") else "."
    run = Run(
        ("sh", "-c", _SEARCH, "sh", pattern, f"./{where}" if where != "." else "."),
        wall_s=bench.limits.run_s,
        cpu_s=bench.limits.cpu_s,
        output_bytes=MAX_READ,
    )
    try:
        result = bench.cell.run(run)
    except CellFileError as error:
        raise PlayerError(f"The search can't be run: {text.safe(str(error))}") from None
    if result.timed_out or result.rc < 0:
        raise PlayerError(
            f"The search took longer than {bench.limits.run_s:g} seconds; give a simpler pattern or a path."
        )
    found = _matches(result.stdout, result.stdout_dropped > 0)
    if not found:
        if result.rc > 1:
            said = text.decode(result.stderr).strip()[:500] or "no such file or folder, or a bad pattern"
            raise PlayerError(f"The search failed: {said}")
        return f"No line matches in {text.name(where) if where != '.' else 'the workspace'}."
    more = "at least " if result.stdout_dropped else ""
    head = f"{more}{text.plural(len(found), 'matching line')}"
    if len(found) > MAX_LINES:
        head += f", the first {MAX_LINES} of them (give a path or a narrower pattern to see others)"
    return "\n".join([f"{head}:", *(f"{path}:{line}: {shown}" for path, line, shown in found[:MAX_LINES])])


def _matches(output: bytes, cut: bool) -> list[tuple[str, int, str]]:
    lines = output.split(b"\n")
    if cut:  # the middle is missing: what comes after it may begin anywhere
        lines = output[: MAX_READ // 2].split(b"\n")[:-1]
    found = []
    for line in lines:
        name, colon, rest = line.partition(b":")
        number, colon, content = rest.partition(b":")
        if colon and number.isdigit() and len(number) < 10:
            shown = text.decode(content.rstrip(b"\r"))
            shown = shown if len(shown) <= MAX_LINE else f"{shown[:MAX_LINE]}…"
            found.append((text.name(text.decode(name.removeprefix(b"./"))), int(number), shown))
    return sorted(found, key=lambda match: match[:2])
