"""Show tab-separated values as a table."""

import re
import sys

NUMBER = re.compile(r"-?[0-9]+")


class Mistake(Exception):
    """What is printed after ``error:``."""


def arguments(words):
    """The column to sort by (or None), whether descending, and the limit (or None)."""
    options = {}
    words = list(words)
    while words:
        word = words.pop(0)
        if word in options or word not in ("--sort", "--desc", "--limit"):
            raise Mistake("bad arguments")
        if word == "--desc":
            options[word] = True
        elif not words:
            raise Mistake("bad arguments")
        else:
            options[word] = words.pop(0)
    limit = options.get("--limit")
    if limit is not None and not re.fullmatch("[0-9]+", limit):
        raise Mistake("bad arguments")
    return options.get("--sort"), "--desc" in options, None if limit is None else int(limit)


def read(text):
    lines = [[value.strip(" ") for value in line.split("\t")] for line in text.split("\n") if line]
    if not lines:
        raise Mistake("no head")
    head, rows = lines[0], lines[1:]
    for number, row in enumerate(rows, 1):
        if len(row) > len(head):
            raise Mistake(f"too many values in row {number}")
        row.extend([""] * (len(head) - len(row)))
    return head, rows


def is_numeric(values):
    filled = [value for value in values if value]
    return bool(filled) and all(NUMBER.fullmatch(value) for value in filled)


def main() -> int:
    try:
        column, descending, limit = arguments(sys.argv[1:])
        head, rows = read(sys.stdin.read())
        numeric = [is_numeric([row[n] for row in rows]) for n in range(len(head))]
        if column is not None:
            if column not in head:
                raise Mistake(f"no column {column}")
            n = head.index(column)
            filled = [row for row in rows if row[n]]
            filled.sort(key=lambda row: int(row[n]) if numeric[n] else row[n], reverse=descending)
            rows = filled + [row for row in rows if not row[n]]
    except Mistake as mistake:
        print("error:", mistake)
        return 2
    rows = rows[:limit]
    widths = [max(len(row[n]) for row in [head, *rows]) for n in range(len(head))]
    print(" | ".join(value.ljust(width) for value, width in zip(head, widths)))
    print("-+-".join("-" * width for width in widths))
    for row in rows:
        cells = zip(row, widths, numeric)
        print(" | ".join(value.rjust(width) if right else value.ljust(width) for value, width, right in cells))
    print(len(rows), "row" if len(rows) == 1 else "rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
