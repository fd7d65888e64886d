"""Test ids as published sets have them, made into pytest's node ids. Pure text; nothing is collected.

Known are node ids themselves, the ``classname::name`` of a junit report (``tests.test_x.TestC::test_a[1]``), and bare
names of test functions where exactly one file of the suite defines them (sympy's runner). Ids of Django's and
unittest's runners (``test_a (app.tests.TestC)``) are refused: such suites are not run by pytest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_BARE = re.compile(r"[A-Za-z_]\w*")
_UNITTEST = re.compile(r"\w+ \([\w.]+\)")

OTHER_RUNNER = "an id of unittest's or Django's runner, which is not pytest"


class NoNodeId(ValueError):
    """An id that names no pytest test; the message has the id."""

    field = ""


def is_unittest_id(one: str) -> bool:
    """Whether it is what ``unittest`` and Django's runner print: ``test_a (app.tests.TestC)``."""
    return _UNITTEST.fullmatch(one.strip()) is not None


def node_ids(ids: Iterable[str], files: Mapping[str, bytes], suite: Mapping[str, bytes]) -> tuple[str, ...]:
    """The node ids, each once, in order. ``files`` is the tree with the suite in it. Raises :class:`NoNodeId`."""
    return tuple(dict.fromkeys(node_id(one, files, suite) for one in ids))


def node_id(one: str, files: Mapping[str, bytes], suite: Mapping[str, bytes]) -> str:
    """As :func:`node_ids`, for one."""
    address, bracket, parameters = one.partition("[")
    head, colons, rest = address.partition("::")
    if colons and head in files:
        return one
    if is_unittest_id(one):
        raise NoNodeId(f"{one!r}, {OTHER_RUNNER}")
    if colons or "." in address:
        parts = [*head.split("."), *(rest.split("::") if rest else [])]
        for n in range(len(parts) - 1, 0, -1):
            path = "/".join(parts[:n]) + ".py"
            if path in files:
                return "::".join([path, *parts[n:]]) + bracket + parameters
    if head.endswith(".py") or "/" in head:
        raise NoNodeId(f"{one!r}, whose file is not there with the test patch applied")
    if _BARE.fullmatch(address):
        made = re.compile(rb"^(?:async )?def " + address.encode() + rb"\(", re.MULTILINE)
        homes = [path for path, data in suite.items() if path.endswith(".py") and made.search(data)]
        if len(homes) == 1:
            return f"{homes[0]}::{one}"
        raise NoNodeId(f"{one!r}, a bare name that {len(homes)} files of the suite define")
    raise NoNodeId(f"{one!r}, which is no id of a pytest test")
