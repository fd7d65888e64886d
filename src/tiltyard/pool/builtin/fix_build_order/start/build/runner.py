"""Building."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .graph import Graph
from .planner import plan


def run(
    graph: Graph,
    targets: Iterable[str],
    stamps: Mapping[str, int],
    action: Callable[[str, list[str]], Any],
) -> dict[str, str]:
    """Build what is out of date: ``action(target, needs)`` for each, in order.

    Returns what became of each target that had to be built, in that order: "built", "failed" if the action raised an
    Exception, "skipped" (and no action) if a direct need failed or was skipped.
    """
    results: dict[str, str] = {}
    for target in plan(graph, targets, stamps):
        try:
            action(target, graph.needs(target))
            results[target] = "built"
        except Exception:
            results[target] = "failed"
    return results
