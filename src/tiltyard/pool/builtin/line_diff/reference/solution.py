def line_diff(old, new):
    """Return a smallest difference of two lists of lines as (mark, line) tuples."""
    kept = _most_kept(old, new)
    result = []
    i = j = 0
    while i < len(old) or j < len(new):
        if i < len(old) and j < len(new) and old[i] == new[j]:
            result.append(("=", old[i]))
            i += 1
            j += 1
        # On a tie a line is removed first, so that removed lines come before added ones.
        elif j == len(new) or (i < len(old) and kept[i + 1][j] >= kept[i][j + 1]):
            result.append(("-", old[i]))
            i += 1
        else:
            result.append(("+", new[j]))
            j += 1
    return result


def _most_kept(old, new):
    """Return the table whose entry [i][j] says how many lines of old[i:] and new[j:] can be kept."""
    table = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in reversed(range(len(old))):
        for j in reversed(range(len(new))):
            if old[i] == new[j]:
                table[i][j] = table[i + 1][j + 1] + 1
            else:
                table[i][j] = max(table[i + 1][j], table[i][j + 1])
    return table
