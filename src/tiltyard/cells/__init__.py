"""Cells: one locked box each, owned by exactly one episode or one grading, and the walls that make them."""
