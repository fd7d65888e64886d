def check(old, new, kept):
    """Whether the answer for (old, new) is valid and keeps this many lines."""
    result = line_diff(list(old), list(new))
    assert all(type(item) is tuple and len(item) == 2 and item[0] in ("=", "-", "+") for item in result)
    assert [line for mark, line in result if mark != "+"] == list(old)
    assert [line for mark, line in result if mark != "-"] == list(new)
    marks = "".join(mark for mark, _ in result)
    assert "+-" not in marks
    assert marks.count("=") == kept, f"{marks.count('=')} lines kept, {kept} possible"


def most_kept(old, new):
    """An independent count: lengths of increasing chains of matching positions."""
    best = {}
    for line in old:
        before = dict(best)
        for j, other in enumerate(new):
            if line == other:
                longest = 1 + max((n for k, n in before.items() if k < j), default=0)
                best[j] = max(best.get(j, 0), longest)
    return max(best.values(), default=0)
