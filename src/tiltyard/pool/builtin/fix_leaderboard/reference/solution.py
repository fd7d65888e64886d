"""The table of a tournament."""

from __future__ import annotations


class Leaderboard:
    """Names and their scores. More points are better."""

    def __init__(self) -> None:
        self._scores: dict[str, int] = {}

    def enter(self, name: str, score: int) -> None:
        """Enter a score, or correct one that was entered before; the player keeps the rank of entry of the first time.

        ValueError if the name is empty.
        """
        if not name.strip():
            raise ValueError("a player needs a name")
        self._scores[name] = score

    def withdraw(self, name: str) -> None:
        """Take a player off the table; who is entered again later counts as entered then. KeyError if unknown."""
        del self._scores[name]

    def ranking(self) -> list[tuple[int, str, int]]:
        """(place, name, score) of all, best first.

        Equal scores share a place and stand in the order in which the players were first entered. The place of a
        player is 1 more than the number of players with more points.
        """
        players = sorted(self._scores.items(), key=lambda item: -item[1])
        table: list[tuple[int, str, int]] = []
        place = 0
        last = None
        for position, (name, score) in enumerate(players, 1):
            if score != last:
                place = position
                last = score
            table.append((place, name, score))
        return table

    def place(self, name: str) -> int:
        """The place of one player. KeyError if unknown."""
        for place, other, _ in self.ranking():
            if other == name:
                return place
        raise KeyError(name)

    def medals(self) -> list[str]:
        """The names of all on the places 1 to 3, in the order of the table."""
        return [name for place, name, _ in self.ranking() if place <= 3]

    def as_text(self) -> str:
        """One line a player, ``place. name score``, joined by newlines; the name is padded to the longest."""
        table = self.ranking()
        width = max((len(name) for _, name, _ in table), default=0)
        return "\n".join(f"{place}. {name:<{width}} {score}" for place, name, score in table)
