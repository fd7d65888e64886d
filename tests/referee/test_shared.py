"""Which containers the solution still holds is found by counting references: never too few, and none in the plain case."""

from __future__ import annotations

from typing import Any

from tiltyard.referee.inside.shared import MAX_KEPT, Table


class Holder:
    pass


def unheld(table: Table, make: Any) -> list[int]:
    return table.unheld([make()])


def test_what_nobody_else_holds_is_unheld() -> None:
    table = Table(1)

    def make() -> Any:
        rows = [[1], [2]]
        numbers = [table.add(rows), table.add(rows[0]), table.add(rows[1])]
        assert numbers == [3, 5, 7]
        return (rows, "and more")

    assert unheld(table, make) == [3, 5, 7]


def test_an_inner_list_that_is_kept_is_held_and_its_parent_is_not() -> None:
    table, holder = Table(1), Holder()

    def make() -> Any:
        rows = [[1], [2]]
        for value in (rows, *rows):
            table.add(value)
        holder.row = rows[1]  # type: ignore[attr-defined]
        return rows

    assert unheld(table, make) == [3, 5]


def test_what_hangs_on_something_kept_is_held() -> None:
    table, holder = Table(1), Holder()

    def make() -> Any:
        inner = [7]
        kept = (inner, {"k": [8]})
        for value in (inner, kept[1], kept[1]["k"]):
            table.add(value)
        holder.pair = kept  # type: ignore[attr-defined]
        return [1]

    assert unheld(table, make) == []


def test_cycles_end() -> None:
    table = Table(1)

    def make() -> Any:
        loop: list[Any] = []
        loop.append(loop)
        table.add(loop)
        return loop

    assert unheld(table, make) == [3]


def test_no_more_than_the_cap_are_kept() -> None:
    table = Table(1)
    kept = [[n] for n in range(MAX_KEPT + 50)]
    for value in kept:
        table.add(value)
    assert len(table.unheld([])) == 50


def test_changes_are_found_by_identity() -> None:
    table = Table(0)
    value: list[Any] = [1, 2]
    table.add(value)
    assert table.changes() == []
    value[0] = True
    assert [n for n, _ in table.changes()] == [2]
    assert table.changes() == []
