"""A calculator with variables."""

import re
import sys

TOKEN = re.compile(r"[ \t]*([0-9]+|[A-Za-z][A-Za-z0-9_]*|[-+*/%()=])")


class Failure(Exception):
    """What is printed after ``error:``."""


def tokens(line):
    found, at = [], 0
    line = line.rstrip(" \t\r")
    while at < len(line):
        match = TOKEN.match(line, at)
        if match is None:
            raise Failure("syntax")
        found.append(match[1])
        at = match.end()
    return found


class Parser:
    """Makes a tree, so that mistakes of form are found before anything is computed."""

    def __init__(self, parts):
        self.parts = [*parts, ""]
        self.at = 0

    def take(self, signs):
        part = self.parts[self.at]
        if part and part in signs:
            self.at += 1
            return part
        return ""

    def whole(self):
        tree = self.level(0)
        if self.parts[self.at]:
            raise Failure("syntax")
        return tree

    def level(self, n):
        if n == 2:
            return self.unary()
        tree = self.level(n + 1)
        while sign := self.take(("+-", "*/%")[n]):
            tree = (sign, tree, self.level(n + 1))
        return tree

    def unary(self):
        signs = 0
        while self.take("-"):
            signs += 1
        tree = self.atom()
        return ("neg", tree) if signs % 2 else tree

    def atom(self):
        part = self.parts[self.at]
        if self.take("("):
            tree = self.level(0)
            if not self.take(")"):
                raise Failure("syntax")
            return tree
        if not part or part in "-+*/%()=":
            raise Failure("syntax")
        self.at += 1
        return ("number", int(part)) if part[0].isdigit() else ("name", part)


def compute(tree, names):
    kind = tree[0]
    if kind == "number":
        return tree[1]
    if kind == "name":
        if tree[1] not in names:
            raise Failure(f"no value for {tree[1]}")
        return names[tree[1]]
    if kind == "neg":
        return -compute(tree[1], names)
    a, b = compute(tree[1], names), compute(tree[2], names)
    if kind == "+":
        return a + b
    if kind == "-":
        return a - b
    if kind == "*":
        return a * b
    if b == 0:
        raise Failure("division by zero")
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient if kind == "/" else a - quotient * b


def answer(line, names):
    parts = tokens(line)
    target = ""
    if len(parts) > 1 and parts[1] == "=" and parts[0][0].isalpha():
        target, parts = parts[0], parts[2:]
    value = compute(Parser(parts).whole(), names)
    if target:
        names[target] = value
        return f"{target} = {value}"
    return str(value)


def main() -> int:
    sys.set_int_max_str_digits(0)
    sys.setrecursionlimit(100_000)
    names = {}
    done = errors = 0
    for line in sys.stdin.read().split("\n"):
        if not line.strip():
            continue
        done += 1
        try:
            print(answer(line, names))
        except Failure as failure:
            errors += 1
            print("error:", failure)
    print("done", done)
    return min(errors, 100)


if __name__ == "__main__":
    sys.exit(main())
