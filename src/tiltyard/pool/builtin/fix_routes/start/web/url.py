"""Taking URLs apart and putting them together."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote, unquote, unquote_plus


def segments(path: str) -> list[str]:
    """The decoded segments of a path, without query and fragment: ``/a/b%20c?x`` → ``["a", "b c"]``.

    Slashes separate (an encoded one doesn't); empty segments are left out. Percent-encoded bytes are UTF-8.
    """
    path = path.partition("#")[0].partition("?")[0]
    return [part for part in unquote(path).split("/") if part]


def query(url: str) -> dict[str, list[str]]:
    """The query of a URL: key → values, in order. ``+`` and percent-encoding are decoded.

    The part before the first ``=`` is the key; without ``=`` the value is "". Empty parts (``&&``) are left out.
    """
    text = url.partition("#")[0].partition("?")[2]
    found: dict[str, list[str]] = {}
    for part in text.split("&"):
        pieces = part.split("=")
        if len(pieces) > 1 and pieces[1]:
            found.setdefault(unquote_plus(pieces[0]), []).append(unquote_plus(pieces[1]))
    return found


def path(parts: Iterable[str]) -> str:
    """The opposite of ``segments``: a path with each part encoded so that it stays one segment."""
    return "/" + "/".join(quote(part) for part in parts)
