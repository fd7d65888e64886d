import re
from math import prod

NAME = re.compile(r"[A-Z][1-9][0-9]{0,3}")
FACTOR = re.compile(r" *([A-Z][0-9]+|[0-9]+) *")


class Spreadsheet:
    """Cells with numbers and formulas that depend on each other."""

    def __init__(self):
        """Make an empty sheet."""
        self._contents = {}
        self._formulas = {}  # cell: list of (sign, factors), where a factor is an int or a cell's name
        self._used_by = {}  # cell: set of the cells whose formulas name it

    def set(self, cell, content):
        """Put an int or a formula into a cell."""
        _check_name(cell)
        if isinstance(content, str):
            formula = _parse(content)
            if self._would_be_circular(cell, _cells_of(formula)):
                raise ValueError(f"{cell} would depend on itself")
        else:
            formula = [(1, [content])]
        self.clear(cell)
        self._contents[cell] = content
        self._formulas[cell] = formula
        for used in _cells_of(formula):
            self._used_by.setdefault(used, set()).add(cell)

    def get(self, cell):
        """Return the current value of a cell."""
        _check_name(cell)
        values = {}
        stack = [cell]  # not recursion: chains are longer than Python's stack is deep
        while stack:
            current = stack[-1]
            missing = self._cells_named_in(current) - values.keys()
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            values[current] = sum(
                sign * prod(values.get(factor, factor) for factor in factors)
                for sign, factors in self._formulas.get(current, [])
            )
        return values[cell]

    def content(self, cell):
        """Return what was set in a cell, or None."""
        _check_name(cell)
        return self._contents.get(cell)

    def clear(self, cell):
        """Make a cell as if it had never been set."""
        _check_name(cell)
        for used in self._cells_named_in(cell):
            self._used_by[used].remove(cell)
        self._contents.pop(cell, None)
        self._formulas.pop(cell, None)

    def dependents(self, cell):
        """Return the cells that depend on this one, directly or through others, in order."""
        _check_name(cell)
        found = _everything_from(self._used_by.get(cell, ()), lambda c: self._used_by.get(c, ()))
        return sorted(found, key=lambda name: (name[0], int(name[1:])))

    def _cells_named_in(self, cell):
        return _cells_of(self._formulas.get(cell, []))

    def _would_be_circular(self, cell, named):
        if cell in named:
            return True
        # A cell that no formula names can't close a circle: this keeps the building of long chains quick.
        return bool(self._used_by.get(cell)) and cell in _everything_from(named, self._cells_named_in)


def _check_name(cell):
    if not NAME.fullmatch(cell):
        raise ValueError(f"{cell!r} is not the name of a cell")


def _parse(text):
    if not text.startswith("="):
        raise ValueError("a formula starts with =")
    formula = []
    sign = 1
    for part in re.split("([-+])", text[1:]):
        if part in ("+", "-"):
            sign = 1 if part == "+" else -1
        else:
            formula.append((sign, [_factor(factor) for factor in part.split("*")]))
    return formula


def _factor(text):
    match = FACTOR.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is neither a number nor the name of a cell")
    if match[1].isdigit():
        return int(match[1])
    _check_name(match[1])
    return match[1]


def _everything_from(cells, following):
    """Return these cells and all that are reached from them by ``following``."""
    found = set()
    stack = list(cells)
    while stack:
        cell = stack.pop()
        if cell not in found:
            found.add(cell)
            stack.extend(following(cell))
    return found


def _cells_of(formula):
    return {factor for _, factors in formula for factor in factors if isinstance(factor, str)}
