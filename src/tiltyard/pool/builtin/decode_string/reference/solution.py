DIGITS = "0123456789"


def decode_string(text):
    """Expand every ``N[...]`` in ``text`` to N times what is inside."""
    outer = []  # (pieces so far, count) of each bracket that is still open
    pieces = []
    number = ""
    for character in text:
        if character in DIGITS:
            number += character
        elif character == "[":
            if not number:
                raise ValueError("a [ without a number before it")
            outer.append((pieces, int(number)))
            pieces = []
            number = ""
        elif number:
            raise ValueError(f"the number {number} is not followed by [")
        elif character == "]":
            if not outer:
                raise ValueError("a ] that closes nothing")
            inside = "".join(pieces)
            pieces, count = outer.pop()
            pieces.append(inside * count)
        else:
            pieces.append(character)
    if number or outer:
        raise ValueError("the text ends in the middle of a repetition")
    return "".join(pieces)
