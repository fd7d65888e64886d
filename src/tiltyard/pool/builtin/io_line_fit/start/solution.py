"""Fit a straight line to points."""

import sys


def main() -> int:
    text = sys.stdin.read()
    # Your work: read the prompt, print the answer, return the exit code.
    return 0


if __name__ == "__main__":
    sys.exit(main())
