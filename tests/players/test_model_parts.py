"""The small parts of the model players: prices, failures, waiting, the budget."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tiltyard.errors import UsageError
from tiltyard.players.model import Meter, OverBudget, Price, Reach, price_of
from tiltyard.players.model.failures import MAX_ASKED_S, asked_s
from tiltyard.records import Usage

OWN = """
[[price]]
model = "local-*"
input = 0.5
output = 1
[[price]]
model = "local-big"
input = 2.0
output = 4.0
cache_read = 0.25
[[price]]
model = "claude-sonnet-4-5"
input = 99.0
output = 99.0
"""


def test_the_longest_pattern_counts_and_ones_own_table_goes_first(tmp_path: Path) -> None:
    own = tmp_path / "prices.toml"
    own.write_text(OWN)
    assert price_of("local-small", own) == Price("local-*", 0.5, 1.0, 0.5, 0.5)
    assert price_of("local-big", own) == Price("local-big", 2.0, 4.0, 0.25, 2.0)
    found = price_of("claude-sonnet-4-5", own)
    assert found is not None and found.input == 99.0
    shipped = price_of("claude-sonnet-4-5")
    assert shipped is not None and (shipped.input, shipped.output) == (3.0, 15.0)
    assert price_of("nobody-knows-it", own) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = [", "no TOML"),
        ("prices = 3", r"\[\[price\]\]"),
        ('[[price]]\nmodel = "m"\ninput = -1\noutput = 1', "input = -1"),
        ('[[price]]\nmodel = "m"\ninput = nan\noutput = 1', "input = nan"),
        ('[[price]]\nmodel = "m"\ninput = 1', "output = None"),
        ('[[price]]\nmodel = "m"\ninput = 1\noutput = 1\nimages = 1', "'images'"),
        ("[[price]]\ninput = 1\noutput = 1", "model = None"),
    ],
)
def test_a_table_that_is_none(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "p.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=expected):
        price_of("m", path)
    with pytest.raises(UsageError, match="can't be read"):
        price_of("m", tmp_path / "nowhere")


def test_what_tokens_cost() -> None:
    price = Price("m", input=3.0, output=15.0, cache_read=0.3, cache_write=3.75)
    usage = price.of(Usage(1_000_000, 100_000, 400_000, 200_000))
    assert usage.cost_usd == pytest.approx(0.4 * 3 + 0.1 * 15 + 0.4 * 0.3 + 0.2 * 3.75)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "1e9"}, MAX_ASKED_S),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 40.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:10 GMT"}, 0.0),
    ],
)
def test_how_long_a_server_asks_to_wait(headers: dict[str, str], expected: float | None) -> None:
    assert asked_s(headers, now=60.0) == expected


def test_a_budget_leaves_room_for_what_is_being_played() -> None:
    meter = Meter(1.0)
    assert meter.may_begin()
    meter.took(Usage(cost_usd=0.3))
    meter.ended(0.3)
    meter.playing = 1
    assert meter.may_begin()  # 0.3 spent, one of about 0.3 being played, room for another
    meter.playing = 2
    assert not meter.may_begin()
    meter.took(Usage(cost_usd=0.8))
    assert meter.over
    with pytest.raises(OverBudget, match=r"\$1 "):
        meter.check()
    Meter(None).check()


def test_waiting_is_shown() -> None:
    meter, shown = Meter(), list[str]()
    meter.tell = shown.append

    async def go() -> None:
        await meter.wait("429", 0.0)
        await meter.wait("timeout", 0.0)
        await meter.wait("429", 0.0)

    asyncio.run(go())
    assert shown[0] == "1 retries (429 1), 1 waiting" and shown[-1] == "3 retries (429 2, timeout 1)"


@pytest.mark.parametrize(
    "bad", [{"base_url": "localhost:1"}, {"timeout_s": 0.0}, {"retries": -1}, {"retries": 1.5}]
)
def test_a_reach_that_is_none(bad: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="expected"):
        Reach(**bad)  # type: ignore[arg-type]
