"""A small template language; see ``render``."""
