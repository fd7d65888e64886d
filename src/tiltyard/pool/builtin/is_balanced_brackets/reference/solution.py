CLOSES = {")": "(", "]": "[", "}": "{"}


def is_balanced_brackets(text):
    """Say whether all brackets in ``text`` are closed by their kind and properly nested."""
    open_brackets = []
    for character in text:
        if character in CLOSES.values():
            open_brackets.append(character)
        elif character in CLOSES and (
            not open_brackets or open_brackets.pop() != CLOSES[character]
        ):
            return False
    return not open_brackets
