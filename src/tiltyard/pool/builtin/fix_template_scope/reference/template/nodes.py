"""The tree of a template, and how each node is rendered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

Scope = dict[str, Any]


class TemplateError(ValueError):
    """The template is malformed, or can't be rendered with these values."""


FILTERS = {
    "upper": str.upper,
    "lower": str.lower,
    "trim": str.strip,
}


def look_up(path: str, scope: Scope) -> Any:
    """The value of ``a.b.c``: keys of mappings, one in the other. None if any is missing."""
    value: Any = scope
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return value


@dataclass
class Text:
    text: str

    def render(self, scope: Scope) -> str:
        return self.text


@dataclass
class Show:
    """``path`` and the names of filters."""

    path: str
    filters: list[str]

    def render(self, scope: Scope) -> str:
        value = look_up(self.path, scope)
        text = "" if value is None else str(value)
        for name in self.filters:
            if name != "raw":
                text = FILTERS[name](text)
        return text if "raw" in self.filters else escape(text)


@dataclass
class Block:
    """Nodes one after the other."""

    nodes: list[Any] = field(default_factory=list)

    def render(self, scope: Scope) -> str:
        return "".join(node.render(scope) for node in self.nodes)


@dataclass
class If:
    path: str
    then: Block = field(default_factory=Block)
    other: Block | None = None

    def render(self, scope: Scope) -> str:
        if look_up(self.path, scope):
            return self.then.render(scope)
        return self.other.render(scope) if self.other is not None else ""


@dataclass
class For:
    name: str
    path: str
    then: Block = field(default_factory=Block)
    other: Block | None = None

    def render(self, scope: Scope) -> str:
        values = look_up(self.path, scope)
        if values is None:
            values = []
        if not isinstance(values, (list, tuple)):
            raise TemplateError(f"{self.path} is not a list")
        if not values:
            return self.other.render(scope) if self.other is not None else ""
        parts = []
        for number, value in enumerate(values, 1):
            parts.append(self.then.render({**scope, self.name: value, "number": number}))
        return "".join(parts)
