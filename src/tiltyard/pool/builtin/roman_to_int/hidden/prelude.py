def raises(kind, function, *args, **kwargs):
    """Whether the call raises an exception of this kind."""
    try:
        function(*args, **kwargs)
    except kind:
        return True
    except Exception:
        return False
    return False


PLACES = (
    ("", "M", "MM", "MMM"),
    ("", "C", "CC", "CCC", "CD", "D", "DC", "DCC", "DCCC", "CM"),
    ("", "X", "XX", "XXX", "XL", "L", "LX", "LXX", "LXXX", "XC"),
    ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"),
)


def to_roman(number):
    digits = f"{number:04d}"
    return "".join(place[int(digit)] for place, digit in zip(PLACES, digits, strict=True))
