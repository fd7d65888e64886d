import re

TOKEN = re.compile(r"[ \t]*([0-9]+|[-+*/%^()])")


def evaluate_expression(text):
    """Return the int value of an arithmetic expression; ValueError if it is malformed."""
    tokens = _tokens(text)
    tree, position = _sum(tokens, 0)
    if position != len(tokens):
        raise ValueError(f"unexpected {tokens[position]!r}")
    return _value(tree)


def _tokens(text):
    tokens = []
    text = text.rstrip(" \t")
    position = 0
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None:
            raise ValueError(f"unexpected text at position {position}")
        tokens.append(match[1])
        position = match.end()
    return tokens


# Each parser takes the position to read from, and returns (tree, position after it).
# A tree is an int, (sign, tree) or (operator, left, right).


def _sum(tokens, position):
    return _left_to_right(tokens, position, "+-", _product)


def _product(tokens, position):
    return _left_to_right(tokens, position, "*/%", _signed)


def _left_to_right(tokens, position, operators, operand):
    tree, position = operand(tokens, position)
    while position < len(tokens) and tokens[position] in operators:
        operator = tokens[position]
        right, position = operand(tokens, position + 1)
        tree = (operator, tree, right)
    return tree, position


def _signed(tokens, position):
    if position < len(tokens) and tokens[position] in "+-":
        operand, after = _signed(tokens, position + 1)
        return (tokens[position], operand), after
    return _power(tokens, position)


def _power(tokens, position):
    base, position = _atom(tokens, position)
    if position < len(tokens) and tokens[position] == "^":
        exponent, position = _signed(tokens, position + 1)
        return ("^", base, exponent), position
    return base, position


def _atom(tokens, position):
    if position == len(tokens):
        raise ValueError("the expression ends too early")
    if tokens[position].isdigit():
        return int(tokens[position]), position + 1
    if tokens[position] != "(":
        raise ValueError(f"unexpected {tokens[position]!r}")
    tree, position = _sum(tokens, position + 1)
    if position == len(tokens) or tokens[position] != ")":
        raise ValueError("a parenthesis is not closed")
    return tree, position + 1


def _value(tree):
    if isinstance(tree, int):
        return tree
    operator, *operands = tree
    left, right = [0, *map(_value, operands)][-2:]  # a sign is an operation on 0
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    if operator == "^":
        if right < 0:
            raise ValueError("a negative exponent")
        return left**right
    quotient = abs(left) // abs(right)
    if (left < 0) != (right < 0):
        quotient = -quotient
    return quotient if operator == "/" else left - quotient * right
