"""The player's hands: what each tool is, how an action is read, what a tool does in a cell, text that is safe to show."""

from __future__ import annotations

from tiltyard.tools.actions import Call, Refusal, canonical, parse_action
from tiltyard.tools.definitions import ALL, FORMS, TOOLS, Param, Tool, schemas, tools_of

__all__ = [
    "ALL",
    "FORMS",
    "TOOLS",
    "Call",
    "Param",
    "Refusal",
    "Tool",
    "canonical",
    "parse_action",
    "schemas",
    "tools_of",
]
