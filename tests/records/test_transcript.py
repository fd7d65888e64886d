"""What a model said and what it cost, in the store; and stores from before they were kept."""

from __future__ import annotations

import json
import pickle
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from tests.records.test_store import RECORD

from tiltyard.errors import UsageError
from tiltyard.records import EpisodeRecord, MessageRecord, Store, Usage, schema

OLD_DIGEST = "cc84c317ae4314ef44c020ee5d1496ee2d4ae7cf73d6ac70e68c10d9a39b4d8f"
TALK = replace(
    RECORD,
    model="small-1",
    ended_by="submit",
    usage=Usage(30, 9, 20, 5, 0.0125),
    messages=(
        MessageRecord("system", "Solve it."),
        MessageRecord("user", "Implement median", step=None),
        MessageRecord(
            "assistant",
            "I look\0 at \ud800 it.",
            reasoning="hm",
            calls=({"id": "c1", "name": "view_file", "arguments": '{"path"', "step": 0},),
            stop_reason="tool_use",
            seconds=1.5,
            retries=2,
            usage=Usage(30, 9, 20, 5, 0.0125),
            at="2026-11-01T00:00:00+00:00",
        ),
        MessageRecord("tool", "1: def median", call_id="c1", step=0),
        MessageRecord("note", "submitted as it is"),
    ),
    steps=(replace(RECORD.steps[0], seconds=0.5), RECORD.steps[1]),
)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old.sqlite"
    with sqlite3.connect(path) as raw:
        raw.executescript((Path(__file__).parent / "store_v1.sql").read_text())
    raw.close()
    return path


def test_a_transcript_comes_back_equal(tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite") as store:
        id = store.add(TALK)
        store.add(RECORD)
        assert store.episode(id) == replace(TALK, id=id)
        assert [step.seconds for step in store.episode(id).steps] == [0.5, 0.0]
        assert [record.messages for record in store.episodes()].count(()) == 1
    with sqlite3.connect(tmp_path / "s.sqlite") as raw:
        row = "turns, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd, model"
        found = raw.execute(f"select {row} from episodes where id = ?", (id,)).fetchone()
        assert found == (1, 30, 9, 20, 5, 0.0125, "small-1")
    raw.close()


def test_a_transcript_survives_json_and_pickle() -> None:
    assert EpisodeRecord.from_dict(json.loads(json.dumps(TALK.as_dict()))) == TALK
    assert pickle.loads(pickle.dumps(TALK)) == TALK
    assert TALK.turns == 1


def test_what_a_model_said_and_cost_is_not_in_the_digest() -> None:
    assert TALK.digest == RECORD.digest == OLD_DIGEST


def test_a_sum_of_costs_with_an_unknown_part_is_unknown() -> None:
    assert Usage.total([Usage(1, 2, 3, 4, 0.5), Usage(1, 1, 1, 1, 0.25)]) == Usage(2, 3, 4, 5, 0.75)
    assert Usage.total([Usage(1, cost_usd=0.5), Usage(1)]) == Usage(2, cost_usd=None)
    assert Usage.total([]) == Usage()


def test_an_older_store_is_brought_up_to_date_and_takes_transcripts(old: Path) -> None:
    with Store(old) as store:
        before = store.episode("e-0000000001")
        assert before.digest == OLD_DIGEST and before.messages == () and before.usage == Usage()
        id = store.add(TALK)
        assert store.episode(id).messages == TALK.messages
    with sqlite3.connect(old) as raw:
        assert [row[0] for row in raw.execute("select version from tiltyard_schema order by 1")] == [
            *range(1, schema.VERSION + 1)
        ]
    raw.close()
    with Store(old, readonly=True) as store:
        assert store.count() == 2


def test_an_older_store_can_be_read_without_being_changed(old: Path) -> None:
    before = old.read_bytes()
    with Store(old, readonly=True) as store:
        found = store.episode("e-00")
        assert found.digest == OLD_DIGEST and len(found.steps) == 2 and found.steps[0].seconds == 0.0
        assert [record.id for record in store.episodes()] == [found.id]
        assert store.runs() == [] and store.count() == 1
        with pytest.raises(UsageError, match="reading only"):
            store.add(TALK)
    assert old.read_bytes() == before
