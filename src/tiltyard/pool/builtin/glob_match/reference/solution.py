ANY_RUN = object()


def glob_match(pattern, text):
    """Say whether all of ``text`` matches the wildcard ``pattern``."""
    items = list(_items(pattern))
    # reached[i]: the first i items can match what was read of the text so far.
    reached = _skip_runs(items, {0})
    for character in text:
        following = set()
        for i in reached:
            if i == len(items):
                continue
            if items[i] is ANY_RUN:
                following.add(i)
            elif items[i](character):
                following.add(i + 1)
        reached = _skip_runs(items, following)
    return len(items) in reached


def _skip_runs(items, reached):
    """Add the positions that can be reached by matching ``*`` with nothing."""
    result = set(reached)
    for i in reached:
        while i < len(items) and items[i] is ANY_RUN:
            i += 1
            result.add(i)
    return result


def _items(pattern):
    """Yield ANY_RUN for ``*`` and a predicate on one character for everything else."""
    position = 0
    while position < len(pattern):
        character = pattern[position]
        position += 1
        if character == "*":
            yield ANY_RUN
        elif character == "?":
            yield lambda c: True
        elif character == "[":
            test, position = _character_class(pattern, position)
            yield test
        else:
            if character == "\\":
                if position == len(pattern):
                    raise ValueError("a backslash at the end of the pattern")
                character = pattern[position]
                position += 1
            yield character.__eq__


def _character_class(pattern, position):
    """Return the predicate of the class whose members start here, and the position after its ``]``."""
    negated = pattern.startswith("!", position)
    start = position + negated
    end = pattern.find("]", start + 1)
    if end < 0:
        raise ValueError("a [ that is not closed")
    members = pattern[start:end]
    ranges = []
    while members:
        if len(members) >= 3 and members[1] == "-":
            if members[2] < members[0]:
                raise ValueError(f"the range {members[:3]!r} ends before it starts")
            ranges.append((members[0], members[2]))
            members = members[3:]
        else:
            ranges.append((members[0], members[0]))
            members = members[1:]
    return (lambda c: any(low <= c <= high for low, high in ranges) != negated), end + 1
