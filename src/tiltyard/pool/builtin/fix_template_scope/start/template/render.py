"""Templates.

``{{ a.b }}`` shows a value as ``str`` gives it, with ``& < > " '`` escaped for HTML; nothing for None and for names
that aren't there. Filters follow after ``|`` and are applied in order: ``upper``, ``lower``, ``trim``; ``raw``, at any
place among them, means that the result isn't escaped. ``{% if a %} … {% else %} … {% end %}``: whether the value is
true in Python's sense. ``{% for x in a %} … {% else %} … {% end %}``: for each element of a list or tuple, with ``x``
and ``number`` (from 1) known inside the loop only, where they hide outer names; the else part if there is no element
or no such name. An else belongs to the innermost block that isn't ended; ``else`` parts may be missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .parser import parse


def render(source: str, values: Mapping[str, Any]) -> str:
    """Render a template; ``values`` are not changed. TemplateError (a ValueError) for a malformed template, a filter
    that doesn't exist, or a loop over something else than a list or tuple."""
    tree = parse(source)
    return tree.render(values)
