"""What needs what."""

from __future__ import annotations

from collections.abc import Iterable


class CycleError(ValueError):
    """``path`` is the cycle: it begins and ends with the same target, each needing the next."""

    def __init__(self, path: list[str]) -> None:
        super().__init__(" -> ".join(path))
        self.path = path


class Graph:
    """Targets and what they need directly. A name that was never added is a source: it needs nothing."""

    def __init__(self) -> None:
        self._needs: dict[str, list[str]] = {}

    def add(self, target: str, needs: Iterable[str] = ()) -> None:
        """Add a target. ValueError if it was added before."""
        if target in self._needs:
            raise ValueError(f"{target} twice")
        self._needs[target] = list(needs)

    def needs(self, name: str) -> list[str]:
        """What a target needs directly, in the order given; [] for a source."""
        return list(self._needs.get(name, ()))

    def is_source(self, name: str) -> bool:
        return name not in self._needs

    def order(self, targets: Iterable[str]) -> list[str]:
        """The targets and all they need, directly or not, each once and after all that it needs itself.

        In the order of the targets as given, and the needs of each in their order, depth first. CycleError if there is
        a cycle among them.
        """
        done: list[str] = []
        for target in targets:
            self._visit(target, [], done)
        return done

    def _visit(self, name: str, path: list[str], done: list[str]) -> None:
        if name in done:
            return
        if name in path:
            raise CycleError([*path[path.index(name) :], name])
        path.append(name)
        for need in self.needs(name):
            self._visit(need, path, done)
        path.pop()
        done.append(name)
