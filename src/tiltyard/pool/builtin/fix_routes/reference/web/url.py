"""Taking URLs apart and putting them together."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote, unquote, unquote_plus


def segments(path: str) -> list[str]:
    """The decoded segments of a path, without query and fragment: ``/a/b%20c?x`` → ``["a", "b c"]``.

    Slashes separate (an encoded one doesn't); empty segments are left out. Percent-encoded bytes are UTF-8.
    """
    path = path.partition("#")[0].partition("?")[0]
    return [unquote(part) for part in path.split("/") if part]


def query(url: str) -> dict[str, list[str]]:
    """The query of a URL: key → values, in order. ``+`` and percent-encoding are decoded.

    The part before the first ``=`` is the key; without ``=`` the value is "". Empty parts (``&&``) are left out.
    """
    text = url.partition("#")[0].partition("?")[2]
    found: dict[str, list[str]] = {}
    for part in text.split("&"):
        if part:
            key, _, value = part.partition("=")
            found.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return found


def path(parts: Iterable[str]) -> str:
    """The opposite of ``segments``: a path with each part encoded so that it stays one segment."""
    return "/" + "/".join(quote(part, safe="") for part in parts)
