"""What is out of date."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .graph import Graph


def plan(graph: Graph, targets: Iterable[str], stamps: Mapping[str, int]) -> list[str]:
    """The targets that must be built, in an order in which they can be.

    ``stamps`` has the time at which each source or target was last changed; what is missing there doesn't exist. A
    target must be built if it doesn't exist, if a direct need is newer than it, or if a direct need must be built
    itself. Sources are never built. KeyError if a source doesn't exist.
    """
    found = []
    for name in graph.order(targets):
        if graph.is_source(name):
            stamps[name]
            continue
        needs = graph.needs(name)
        if name not in stamps or any(need in found or stamps[need] > stamps[name] for need in needs):
            found.append(name)
    return found
