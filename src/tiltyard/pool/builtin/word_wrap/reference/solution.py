def word_wrap(text, width):
    """Break ``text`` greedily into lines of at most ``width`` characters; longer words are cut."""
    if width < 1:
        raise ValueError("a line needs room for at least one character")
    lines = []
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) <= width:
            line += " " + word
            continue
        if line:
            lines.append(line)
        while len(word) > width:
            lines.append(word[:width])
            word = word[width:]
        line = word
    if line:
        lines.append(line)
    return lines
