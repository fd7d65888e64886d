"""Tiltyard: the practice arena for coding agents."""

__version__ = "0.1.0"
