"""``tiltyard run`` with a model: its options, and what it prints."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from tests.players.model_server import Fail, Say, serving
from typer.testing import CliRunner

from tiltyard.cli import app
from tiltyard.errors import UsageError
from tiltyard.records import Store

SOLUTION = "def f(x):\n    return 2 * x\n"
PRICES = '[[price]]\nmodel = "m-*"\ninput = 1000.0\noutput = 1000.0\n'
WALL = os.environ.get("TILTYARD_TEST_WALL", "auto")


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    path = tmp_path / "pool.jsonl"
    start = {"solution.py": "def f(x):\n    return 0\n"}
    task = {"id": "t", "prompt": "Write f.", "start": start, "hidden": ["assert f(2) == 4"]}
    task["reference"] = {"solution.py": SOLUTION}
    path.write_text(json.dumps(task) + "\n")
    return path


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(app, ["run", *map(str, arguments), "--wall", WALL])


def solver(asked: Any) -> Any:
    if asked.seen == 0 and asked.turn == 0:
        return Fail(529, {"retry-after": "0"})
    return Say("", (("write_file", {"path": "solution.py", "content": SOLUTION}), ("submit", {})))


def test_the_options_reach_the_model_and_the_store(pool: Path, tmp_path: Path) -> None:
    store, system, prices = tmp_path / "s.sqlite", tmp_path / "system.txt", tmp_path / "prices.toml"
    system.write_text("Be brief.")
    prices.write_text(PRICES)
    with serving(solver) as server:
        asked = ["--player", "openai:m-1", "--base-url", server.base("openai"), "--system", system]
        asked += ["--temperature", "0.5", "--effort", "low", "--max-tokens", 99, "--stop", "A", "--stop", "B"]
        asked += ["--model-option", "top_p=0.25", "--model-option", 'user="me"', "--prices", prices]
        result = invoke(pool, *asked, "--store", store, "--json", "--budget", "5", "--max-turns", 3)
    assert result.exit_code == 0, result.output
    body = server.requests[-1].body
    assert (body["temperature"], body["reasoning_effort"], body["max_tokens"]) == (0.5, "low", 99)
    assert (body["stop"], body["top_p"], body["user"]) == (["A", "B"], 0.25, "me")
    assert body["messages"][0]["content"] == "Be brief."
    model = json.loads(result.stdout)["model"]
    assert (
        model["turns"] == 1
        and model["cost_usd"] == pytest.approx(35 / 1000)
        and model["retries"] == {"529": 1}
    )
    assert re.search(r"1 turns, 30 tokens in, 5 out, \$0\.0350", result.stderr)
    assert "tried again: 529 1" in result.stderr
    with Store(store, readonly=True) as opened:
        (run,) = opened.runs()
        (record,) = opened.episodes()
    assert run.player == "openai:m-1" and run.settings["model"]["options"] == {"top_p": 0.25, "user": "me"}
    assert run.settings["model"]["max_turns"] == 3 and record.model == "m-1" and record.reward == 1.0


def test_all_void_is_bad_news_and_says_how_to_go_on(pool: Path, tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    with serving(lambda asked: Fail(500)) as server:
        player = ["--player", "openai:m-1", "--base-url", server.base("openai"), "--retries", 0]
        result = invoke(pool, *player, "--store", store)
        assert result.exit_code == 1 and "void 1x: the server answered 500" in result.stderr
        assert "cost unknown" not in result.stderr or "--prices" in result.stderr
        found = re.search(r"--resume (r-\w+)", result.stderr)
        assert found is not None
        server.brain = solver
        again = invoke(pool, "--store", store, "--resume", found[1], *player[2:4])
        assert again.exit_code == 0, again.output
    with Store(store, readonly=True) as opened:
        assert [record.reward for record in opened.episodes()].count(1.0) == 1 and len(opened.runs()) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model-option", "x"], "expected KEY=JSON"),
        (["--model-option", "x=y"], "is not JSON"),
        (["--system", "/nowhere"], "can't be read"),
        (["--protocol", "smoke"], "native, text, code"),
        (["--base-url", "localhost"], "expected http"),
        (["--budget", "3"], "needs the price of 'm-1'"),
        (["--resume", "r-1"], "--store PATH"),
    ],
)
def test_options_that_are_none(pool: Path, options: list[str], message: str) -> None:
    result = invoke(pool, "--player", "openai:m-1", *options)
    assert isinstance(result.exception, UsageError) and message in str(result.exception)
