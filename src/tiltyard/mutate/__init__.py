"""Small changes to Python source: what `tiltyard adequacy` measures tests with.

``mutations(source)`` finds every change that the operators can make; ``apply(source, chosen)`` makes one or several of
them; ``natural`` says one as a person would have written it. Source is text that is parsed, never executed; comments and formatting outside of a change stay as they are. The
order is that of the source, the same for the same source. Needs libcst (``pip install 'tiltyard[adequacy]'``).
"""

from tiltyard.mutate.find import candidates, mutations, program
from tiltyard.mutate.model import DEFAULT, OPERATORS, Mutation, apply, describe
from tiltyard.mutate.natural import natural

__all__ = [
    "DEFAULT",
    "OPERATORS",
    "Mutation",
    "apply",
    "candidates",
    "describe",
    "mutations",
    "natural",
    "program",
]
