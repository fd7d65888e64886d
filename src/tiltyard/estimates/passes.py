"""pass@k and pass^k of one task from n attempts of which c solved it. Unbiased, in closed form."""

from __future__ import annotations

from math import comb


def pass_at_k(attempts: int, solved: int, k: int) -> float:
    """The chance that at least one of ``k`` attempts solves the task: 1 − C(n − c, k) / C(n, k).

    The share of all k-subsets of the n attempts that hold a solved one, which is unbiased for 1 − (1 − p)ᵏ, as
    1 − (1 − c/n)ᵏ is not. Source: Chen et al. 2021, *Evaluating Large Language Models Trained on Code*,
    arXiv:2107.03374, equation 1. ValueError where ``k`` is above ``attempts``: then no unbiased estimate exists.
    """
    _check(attempts, solved, k)
    return 1.0 - comb(attempts - solved, k) / comb(attempts, k)


def pass_all_k(attempts: int, solved: int, k: int) -> float:
    """The chance that all of ``k`` attempts solve the task (pass^k): C(c, k) / C(n, k), unbiased for pᵏ.

    Source: Yao et al. 2024, *τ-bench*, arXiv:2406.12045. ValueError as for :func:`pass_at_k`.
    """
    _check(attempts, solved, k)
    return comb(solved, k) / comb(attempts, k)


def _check(attempts: int, solved: int, k: int) -> None:
    if not 0 <= solved <= attempts:
        raise ValueError(f"{solved} solved of {attempts} attempts; expected 0 to {attempts}")
    if not 1 <= k <= attempts:
        raise ValueError(f"k = {k} with {attempts} attempts; expected 1 to {attempts}")
