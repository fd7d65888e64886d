"""Fixtures of the pool's tests; see pool_rows.py."""

from pool_rows import lesson, write

__all__ = ["lesson", "write"]
