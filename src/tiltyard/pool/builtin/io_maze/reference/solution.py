"""Find the shortest way through a maze."""

import sys

STEPS = {"D": (1, 0), "L": (0, -1), "R": (0, 1), "U": (-1, 0)}


def problem(rows):
    """What is wrong with a maze, or ""."""
    if not rows:
        return "empty"
    for number, row in enumerate(rows, 1):
        if not row or row.strip("#.SE"):
            return f"character in row {number}"
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            return f"length of row {number}"
    for letter in "SE":
        if sum(row.count(letter) for row in rows) != 1:
            return f"needs one {letter}"
    return ""


def distances(rows, goal):
    """Steps to the goal from each field from which it can be reached."""
    found = {goal: 0}
    border = [goal]
    while border:
        reached = []
        for y, x in border:
            for dy, dx in STEPS.values():
                at = (y + dy, x + dx)
                if 0 <= at[0] < len(rows) and 0 <= at[1] < len(rows[0]) and rows[at[0]][at[1]] != "#" and at not in found:
                    found[at] = found[y, x] + 1
                    reached.append(at)
        border = reached
    return found


def find(rows, letter):
    return next((y, row.index(letter)) for y, row in enumerate(rows) if letter in row)


def main() -> int:
    rows = [row.rstrip() for row in sys.stdin.read().split("\n")]
    while rows and not rows[-1]:
        rows.pop()
    if wrong := problem(rows):
        print("bad maze:", wrong)
        return 2
    left = distances(rows, find(rows, "E"))
    at = find(rows, "S")
    if at not in left:
        print("no way")
        return 1
    shown = [list(row) for row in rows]
    way = ""
    print(left[at])
    while left[at]:
        if way:
            shown[at[0]][at[1]] = "*"
        for step in sorted(STEPS):
            there = (at[0] + STEPS[step][0], at[1] + STEPS[step][1])
            if left.get(there, -1) == left[at] - 1:
                way += step
                at = there
                break
    print(way)
    for row in shown:
        print("".join(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
