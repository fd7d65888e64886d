import re
from itertools import pairwise

VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
STANDARD_FORM = re.compile(r"M{0,3}(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})")


def roman_to_int(numeral):
    """Return the value of a Roman numeral in its standard form, 1 to 3999."""
    if not numeral or not STANDARD_FORM.fullmatch(numeral):
        raise ValueError(f"{numeral!r} is not a Roman numeral in its standard form")
    values = [VALUES[letter] for letter in numeral]
    total = 0
    for value, following in pairwise([*values, 0]):
        total += -value if value < following else value
    return total
