"""Wrapping plain text."""

from __future__ import annotations


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """Break text into lines of at most ``width`` characters.

    Words are what white space separates; in a line they are separated by one space. As many words as fit go on
    a line. All lines but the first of each paragraph begin with ``indent``, which counts as part of the width.
    A word that is longer than what a line can hold starts on a line of its own and is cut into pieces as long as
    fit; the words after it may follow on its last piece's line. Paragraphs are separated by one or more empty
    (or white) lines in the text, and by exactly one empty line in the result. No words: no lines.

    ValueError if ``width`` leaves no room for at least one character after the indent.
    """
    if width - len(indent) < 1:
        raise ValueError("the width leaves no room for text")
    lines: list[str] = []
    for words in paragraphs(text):
        if lines:
            lines.append("")
        lines.extend(wrap_words(words, width, indent))
    return lines


def paragraphs(text: str) -> list[list[str]]:
    """The words of each paragraph."""
    found: list[list[str]] = [[]]
    for line in text.splitlines():
        words = line.split()
        if words:
            found[-1].extend(words)
        elif found[-1]:
            found.append([])
    return [words for words in found if words]


def wrap_words(words: list[str], width: int, indent: str) -> list[str]:
    """The lines of one paragraph."""
    lines: list[str] = []
    line = ""
    for word in words:
        if line and len(line) + 1 + len(word) < width:
            line = line + " " + word
            continue
        lines.append(line)
        line = word
        while len(line) > width:
            lines.append(line[:width])
            line = line[width:]
    lines.append(line)
    return lines[:1] + [indent + line for line in lines[1:]]
