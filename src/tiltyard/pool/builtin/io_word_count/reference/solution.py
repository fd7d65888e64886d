"""Count the words of a text."""

import sys
from collections import Counter


def words(text):
    """The runs of letters, casefolded."""
    return "".join(c if c.isalpha() else " " for c in text).casefold().split()


def main() -> int:
    text = sys.stdin.read()
    counts = Counter(words(text))
    print("total", sum(counts.values()))
    print("distinct", len(counts))
    for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        print(count, word)
    return 0


if __name__ == "__main__":
    sys.exit(main())
