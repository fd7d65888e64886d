"""From pieces to the tree."""

from __future__ import annotations

import re

from .lexer import pieces
from .nodes import FILTERS, Block, For, If, Show, TemplateError, Text

NAME = r"[A-Za-z_][A-Za-z_0-9]*"
PATH = rf"{NAME}(?:\.{NAME})*"
FOR = re.compile(rf"for ({NAME}) in ({PATH})")
IF = re.compile(rf"if ({PATH})")


def parse(source: str) -> Block:
    """The tree of a template. TemplateError if it is malformed."""
    root = Block()
    open_blocks: list[If | For] = []
    into = [root]
    for kind, text in pieces(source):
        if kind == "text":
            into[-1].nodes.append(Text(text))
        elif kind == "show":
            into[-1].nodes.append(show(text))
        elif text == "end":
            if not open_blocks:
                raise TemplateError("an end too many")
            open_blocks.pop()
            into.pop()
        elif text == "else":
            if not open_blocks or open_blocks[0].other is not None:
                raise TemplateError("an else too many")
            open_blocks[0].other = into[-1] = Block()
        else:
            block = opening(text)
            into[-1].nodes.append(block)
            open_blocks.append(block)
            into.append(block.then)
    if open_blocks:
        raise TemplateError("an end is missing")
    return root


def show(text: str) -> Show:
    path, *filters = (part.strip() for part in text.split("|"))
    if not re.fullmatch(PATH, path):
        raise TemplateError(f"not a name: {path!r}")
    for name in filters:
        if name not in FILTERS and name != "raw":
            raise TemplateError(f"no such filter: {name!r}")
    return Show(path, filters)


def opening(text: str) -> If | For:
    if match := FOR.fullmatch(text):
        return For(match[1], match[2])
    if match := IF.fullmatch(text):
        return If(match[1])
    raise TemplateError(f"what is {text!r}?")
