"""Total the amounts of accounts."""

import re
import sys

AMOUNT = re.compile(r"[+-]?[0-9]+")


def main() -> int:
    totals = {}
    for number, line in enumerate(sys.stdin.read().split("\n"), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 2 or not AMOUNT.fullmatch(words[1]):
            print(f"error in line {number}")
            return 1
        totals[words[0]] = totals.get(words[0], 0) + int(words[1])
    for name, total in totals.items():
        print(name, total)
    print("sum", sum(totals.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
