"""An episode as a story to read, and as files for other software."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text
from typer.testing import CliRunner

from tiltyard.cli import app
from tiltyard.errors import UsageError
from tiltyard.pool import load
from tiltyard.records import EpisodeRecord, MessageRecord, RunRecord, StepRecord, Store, Usage
from tiltyard.rollout.export import atif, export
from tiltyard.rollout.story import start_files, tell

START = load("builtin")["median"].start["solution.py"].decode()
FIRST, SECOND = "def median(values):\n    return 0\n", "def median(values):\n    return 1\n"


def action(tool: str, **arguments: Any) -> str:
    return json.dumps({"tool": tool, **arguments}, sort_keys=True)


STEPS = (
    StepRecord(action("write_file", path="solution.py", content=FIRST), "Wrote solution.py.", seconds=0.25),
    StepRecord(action("replace_text", path="solution.py", old="return 0", new="return 1"), "Replaced."),
    StepRecord(action("write_file", path="../x", content="evil\x1b[31m"), "Outside.", invalid=True),
    StepRecord(action("submit"), "Submitted.", reward=0.5, terminated=True),
)
VERDICT = {
    "reward": 0.5,
    "passed": 1,
    "total": 2,
    "void": None,
    "flags": ["took_liberties"],
    "outcomes": [
        {"id": "h1", "passed": True, "reason": ""},
        {"id": "h2", "passed": False, "reason": "wrong result"},
    ],
}


def call(id: str, name: str, step: int | None, arguments: Any = None) -> dict[str, Any]:
    return {"id": id, "name": name, "arguments": arguments or {}, "step": step}


TALK = EpisodeRecord(
    task="median",
    task_digest=load("builtin")["median"].digest,
    player="openai:m-1",
    seed=4,
    observation="Write median.",
    steps=STEPS,
    reward=0.5,
    verdict=VERDICT,
    flags=("took_liberties",),
    wall="process",
    pool="builtin",
    pool_spec="builtin",
    model="m-1",
    ended_by="submit",
    usage=Usage(1530, 85, 1200, 0, 0.0031),
    messages=(
        MessageRecord("system", "Be good."),
        MessageRecord("user", "Write median.", at="2026-11-30T10:00:00+00:00"),
        MessageRecord(
            "assistant",
            "I write.\x1b[2J",
            reasoning="easy",
            calls=(
                call("a", "write_file", 0),
                call("b", "replace_text", 1),
                call("c", "write_file", 2, "{bad"),
            ),
            stop_reason="tool_calls",
            seconds=1.25,
            retries=2,
            usage=Usage(1000, 80, 800, 0, 0.002),
            at="2026-11-30T10:00:01+00:00",
        ),
        MessageRecord("tool", "Wrote solution.py.", call_id="a", step=0),
        MessageRecord("tool", "Replaced.", call_id="b", step=1),
        MessageRecord("tool", "Outside.", call_id="c", step=2),
        MessageRecord("user", "Go on \ud800"),
        MessageRecord(
            "assistant",
            calls=(call("d", "submit", 3), call("e", "list_files", None)),
            usage=Usage(530, 5, 400, 0, 0.0011),
        ),
        MessageRecord("tool", "Submitted.", call_id="d", step=3),
    ),
)
QUIET = replace(TALK, model="", messages=(), usage=Usage(), player="random", ended_by="")


def styles(story: Text, words: str) -> set[str]:
    at = story.plain.index(words)
    return {str(span.style) for span in story.spans if span.start <= at < span.end}


def test_the_story_of_a_model() -> None:
    story = tell(TALK, start_files(TALK))
    text = story.plain
    for part in (
        "turn 1 1.2 s · 1,000 in (800 cached), 80 out, $0.0020 · 2 retries · tool_calls",
        "easy",
        "▶ step 1: write_file  0.25 s",
        "+    return 0",
        "-    return 0\n+    return 1",
        "▶ not carried out: list_files",
        "answer to step 2 \nReplaced.",
        "reward 0.500 1 of 2 hidden tests pass",
        "failed h2: wrong result",
        "flags took_liberties",
        "m-1: 2 turns, 4 steps, 1,530 in (1,200 cached), 85 out, $0.0031, ended by submit",
        TALK.digest,
    ):
        assert part in text, part
    first = START.splitlines()[0]
    assert f"-{first}" in text or f" {first}" in text  # against what the task starts with
    assert "failed h1" not in text
    assert "\x1b" not in text and "\\x1b[31m" in text and "\\ud800" in text
    assert styles(story, "+    return 1") == {"green"} and styles(story, "-    return 0") == {"red"}


def test_what_was_not_done_is_no_change(tmp_path: Path) -> None:
    undone = replace(QUIET, steps=(replace(STEPS[0], invalid=True), STEPS[1], STEPS[3]))
    text = tell(undone, {"solution.py": "return 0\n"}).plain
    assert "-return 0\n+return 1" in text  # not of what the invalid step would have written


def test_the_story_without_a_model_or_its_task() -> None:
    text = tell(QUIET, None).plain
    assert "(before: not known)" in text and "Write median." in text and "Submitted." in text
    assert start_files(replace(TALK, pool_spec="")) is None
    assert start_files(replace(TALK, task_digest="0" * 64)) is None
    assert start_files(replace(TALK, pool_spec="/nowhere")) is None
    void = replace(QUIET, reward=None, void="the server answered 529\x1b[0m", verdict=None)
    assert "void the server answered 529\\x1b[0m" in tell(void, None).plain
    cut = replace(
        QUIET, reward=0.0, verdict=None, steps=(replace(STEPS[0], truncated=True, truncated_by="steps"),)
    )
    assert "cut by its limit: steps" in tell(cut, None).plain


# the published form (harbor 0.26, models/trajectories): a field that is not listed is refused there
FIELDS = {
    "root": {"schema_version", "session_id", "trajectory_id", "agent", "steps", "final_metrics", "extra"},
    "step": {
        *("step_id", "timestamp", "source", "message", "reasoning_content", "tool_calls", "observation"),
        *("metrics", "llm_call_count", "extra"),
    },
    "agent": {"name", "version", "model_name", "tool_definitions", "extra"},
    "metrics": {"prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd", "extra"},
    "final": {
        *("total_prompt_tokens", "total_completion_tokens", "total_cached_tokens", "total_cost_usd"),
        *("total_steps", "extra"),
    },
}


def check_atif(one: dict[str, Any]) -> None:
    assert one["schema_version"] == "ATIF-v1.8" and set(one) <= FIELDS["root"]
    assert set(one["agent"]) <= FIELDS["agent"] and set(one["final_metrics"]) <= FIELDS["final"]
    assert [step["step_id"] for step in one["steps"]] == list(range(1, len(one["steps"]) + 1))
    for step in one["steps"]:
        assert set(step) <= FIELDS["step"] and isinstance(step["message"], str)
        if step["source"] != "agent":
            assert step["source"] in ("system", "user")
            assert not {"tool_calls", "metrics", "reasoning_content"} & set(step)
        elif step["llm_call_count"] == 0:
            assert not {"metrics", "reasoning_content"} & set(step)
        else:
            assert set(step["metrics"]) <= FIELDS["metrics"]
        ids = {call["tool_call_id"] for call in step.get("tool_calls", ())}
        assert all(isinstance(call["arguments"], dict) for call in step.get("tool_calls", ()))
        for result in step.get("observation", {"results": []})["results"]:
            assert set(result) == {"source_call_id", "content"} and result["source_call_id"] in ids


def test_atif_of_a_model() -> None:
    one = atif(TALK)
    check_atif(one)
    assert [step["source"] for step in one["steps"]] == ["system", "user", "agent", "user", "agent"]
    turn = one["steps"][2]
    assert [result["content"] for result in turn["observation"]["results"]] == [
        "Wrote solution.py.",
        "Replaced.",
        "Outside.",
    ]
    assert turn["metrics"]["prompt_tokens"] == 1000 and turn["metrics"]["cached_tokens"] == 800
    assert turn["tool_calls"][2]["arguments"] == {"invalid_arguments": "{bad"}
    assert one["final_metrics"]["total_cost_usd"] == 0.0031
    assert one["extra"]["reward"] == 0.5 and one["extra"]["digest"] == TALK.digest


def test_atif_without_a_model() -> None:
    one = atif(QUIET)
    check_atif(one)
    assert [step["source"] for step in one["steps"]] == ["user"] + ["agent"] * 4
    assert one["steps"][1]["tool_calls"][0]["function_name"] == "write_file"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "s.sqlite"
    with Store(path) as opened:
        run = opened.add_run(RunRecord("builtin", "1", "d", "openai:m-1", "process", 4))
        opened.add(replace(TALK, run=run))
        opened.add(replace(TALK, run=run, number=1, reward=None, void="why", verdict=None, steps=()))
        opened.add(QUIET)
    return path


def others(folder: Path) -> list[str]:
    """What lies beside the store."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("s.sqlite"))


def test_export_to_atif(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    result = CliRunner().invoke(app, ["export", str(store), "--format", "atif", "--out", str(out)])
    assert result.exit_code == 0 and "3 episodes" in result.stderr
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    for row in rows:
        check_atif(row)
        json.dumps(row, ensure_ascii=False).encode()  # nothing that no UTF-8 holds
    with Store(store, readonly=True) as opened:
        run = opened.runs()[0].id
    CliRunner().invoke(app, ["export", str(store), "--format", "atif", "--out", str(out), "--run", run[:6]])
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["extra"]["reward"] for row in rows] == [0.5, None]
    assert others(tmp_path) == ["out.jsonl"]


def test_export_to_parquet(store: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "out.parquet"
    with Store(store, readonly=True) as opened:
        assert export(opened, "parquet", out) == 3
        records = list(opened.episodes())
    rows = parquet.read_table(out).to_pylist()
    assert [row["digest"] for row in rows] == [record.digest for record in records]
    assert [row["reward"] for row in rows] == [record.reward for record in records]
    talk = next(row for row in rows if row["id"] == records[-2].id)
    assert (
        talk["messages"][2]["calls"][2]["arguments"] == "{bad" and talk["messages"][2]["input_tokens"] == 1000
    )
    assert talk["input_tokens"] == 1530 and talk["cost_usd"] == 0.0031
    assert json.loads(talk["messages"][2]["calls"][0]["arguments"]) == {}


def test_export_that_cannot_be(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store(store, readonly=True) as opened:
        with pytest.raises(UsageError, match="csv"):
            export(opened, "csv", tmp_path / "x")
        with pytest.raises(UsageError, match="folder"):
            export(opened, "atif", tmp_path)
        with pytest.raises(UsageError, match="folder"):
            export(opened, "atif", tmp_path / "no" / "x")
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(UsageError, match=r"pip install 'tiltyard\[parquet\]'"):
            export(opened, "parquet", tmp_path / "x")
    assert others(tmp_path) == []


def test_show_episode(store: Path) -> None:
    with Store(store) as opened:
        id = opened.add(replace(TALK, messages=TALK.messages[:3]))
    shown = CliRunner().invoke(app, ["show-episode", str(store), id[2:8]])
    assert shown.exit_code == 0 and "failed h2: wrong result" in shown.stdout
    as_json = CliRunner().invoke(app, ["show-episode", str(store), id, "--json"])
    assert json.loads(as_json.stdout)["messages"][2]["retries"] == 2
