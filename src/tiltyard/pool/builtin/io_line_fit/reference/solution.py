"""Fit a straight line to points."""

import math
import sys


def read(text):
    """The points of a text; ValueError with the number of a bad line."""
    points = []
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            x, y = (float(word) for word in words)
        except ValueError:
            raise ValueError(number) from None
        if not (math.isfinite(x) and math.isfinite(y)):
            raise ValueError(number)
        points.append((x, y))
    return points


def main() -> int:
    try:
        points = read(sys.stdin.read())
    except ValueError as error:
        print(f"error: line {error}")
        return 2
    if len(points) < 2:
        print("error: too few points")
        return 1
    n = len(points)
    print("points", n)
    if len({x for x, _ in points}) == 1:
        print("vertical", points[0][0])
        return 0
    mean_x = math.fsum(x for x, _ in points) / n
    mean_y = math.fsum(y for _, y in points) / n
    slope = math.fsum((x - mean_x) * (y - mean_y) for x, y in points) / math.fsum((x - mean_x) ** 2 for x, _ in points)
    intercept = mean_y - slope * mean_x
    rest = math.fsum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in points) / n
    print("slope", slope)
    print("intercept", intercept)
    print("rms", math.sqrt(rest))
    return 0


if __name__ == "__main__":
    sys.exit(main())
