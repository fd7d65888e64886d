"""A little make."""
