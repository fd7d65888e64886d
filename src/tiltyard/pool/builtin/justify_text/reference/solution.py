def justify_text(text, width):
    """Return ``text`` as lines of exactly ``width`` characters, paragraph by paragraph."""
    if width < 1:
        raise ValueError("a line needs room for at least one character")
    result = []
    for words in _paragraphs(text):
        if any(len(word) > width for word in words):
            raise ValueError(f"a word is longer than {width} characters")
        if result:
            result.append("")
        *full, last = _lines(words, width)
        result += [_spread(line, width) for line in full]
        result.append(" ".join(last))
    return result


def _paragraphs(text):
    """Yield the list of words of each paragraph."""
    words = []
    for line in text.splitlines():
        if line.strip():
            words += line.split()
        elif words:
            yield words
            words = []
    if words:
        yield words


def _lines(words, width):
    """Return the words in lists, as many in each as fit on a line."""
    lines = []
    room = 0
    for word in words:
        if lines and len(word) + 1 <= room:
            lines[-1].append(word)
            room -= len(word) + 1
        else:
            lines.append([word])
            room = width - len(word)
    return lines


def _spread(words, width):
    """Return the words as one line of exactly ``width`` characters."""
    if len(words) == 1:
        return words[0].ljust(width)
    spaces = width - sum(map(len, words))
    narrow, wider = divmod(spaces, len(words) - 1)
    gaps = [" " * (narrow + (i < wider)) for i in range(len(words) - 1)]
    return "".join(word + gap for word, gap in zip(words, [*gaps, ""], strict=True))
