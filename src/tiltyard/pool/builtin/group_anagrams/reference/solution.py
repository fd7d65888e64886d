def group_anagrams(words):
    """Return ``words`` as groups of anagrams, ignoring case, in order of first appearance."""
    groups = {}
    for word in words:
        groups.setdefault("".join(sorted(word.lower())), []).append(word)
    return list(groups.values())
