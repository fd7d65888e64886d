"""Cutting a template into pieces."""

from __future__ import annotations

import re

PIECE = re.compile(r"\{\{(.*?)\}\}|\{%(.*?)%\}", re.DOTALL)


def pieces(source: str) -> list[tuple[str, str]]:
    """("text", …), ("show", …) and ("tag", …) in order; the latter two are stripped. Empty texts are left out."""
    found = []
    at = 0
    for match in PIECE.finditer(source):
        if match.start() > at:
            found.append(("text", source[at : match.start()]))
        if match[1] is not None:
            found.append(("show", match[1].strip()))
        else:
            found.append(("tag", match[2].strip()))
        at = match.end()
    if at < len(source):
        found.append(("text", source[at:]))
    return found
