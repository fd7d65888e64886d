"""Trusted packages for code in a cell that sees no installed ones: found by their own names and no others.

A kit is a mapping from the name of a top-level package to the folder that holds it. A fork server imports what it is
to preload from there before its root is changed; a fresh interpreter of a wall without roots finds it at any time.
What the interpreter has by itself comes first: an environment with its own pytest keeps that one.
"""

from __future__ import annotations

import importlib.machinery
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class KitFinder:
    """Finds the packages of a kit, where nothing before it on ``sys.meta_path`` did."""

    def __init__(self, packages: Mapping[str, str]) -> None:
        self._packages = dict(packages)

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        folder = self._packages.get(name)
        return None if folder is None else importlib.machinery.PathFinder.find_spec(name, [folder])


def install(packages: Mapping[str, str]) -> KitFinder:
    """Make these packages importable in this process. ``remove`` takes them off again."""
    finder = KitFinder(packages)
    sys.meta_path.append(finder)  # no ``importlib.abc``: a dozen modules come with it
    return finder


def remove(finder: KitFinder) -> None:
    """No more is found through it; what was imported stays."""
    if finder in sys.meta_path:
        sys.meta_path.remove(finder)
