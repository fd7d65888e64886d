def roman_to_int(numeral):
    """Return the value of a Roman numeral in its standard form, 1 to 3999."""
    raise NotImplementedError
