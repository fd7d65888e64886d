"""Language models as players, through the real SDKs, against a server that speaks the real protocols."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.players.model_server import Asked, Brain, Cut, Drop, Fail, ModelServer, Raw, Say, Slow, serving

from tiltyard.cells import Wall, make_wall
from tiltyard.env import CodeEnv
from tiltyard.errors import UsageError
from tiltyard.players import arun_episode, make_player, run_episode
from tiltyard.players.model import (
    Hopeless,
    ModelFailed,
    ModelPlayer,
    ModelSettings,
    OverBudget,
    Price,
    Reach,
)
from tiltyard.records import EpisodeRecord
from tiltyard.rollout import record_of
from tiltyard.task import Files, Task, Test

SOLUTION = "def double(x):\n    return 2 * x\n"
TASK = Task(
    id="double",
    prompt="Write double(x).",
    start=Files({"solution.py": "def double(x):\n    return 0\n"}),
    hidden=(Test("h", "assert double(2) == 4"),),
    reference=Files({"solution.py": SOLUTION}),
    entry=("double",),
)
WRITE = ("write_file", {"path": "solution.py", "content": SOLUTION})
VIEW = ("view_file", {"path": "solution.py"})
SUBMIT = ("submit", {})
PRICE = Price("*", input=1.0, output=10.0, cache_read=0.1, cache_write=1.25)
BLANK = EpisodeRecord("double", TASK.digest, "model", 1, void="blank")
APIS = ("anthropic", "openai")

api = pytest.mark.parametrize("api", APIS)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "a-key")
    for name in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def wall() -> Iterator[Wall]:
    made = make_wall(os.environ.get("TILTYARD_TEST_WALL", "auto"))
    yield made
    made.close()


def a_player(
    server: ModelServer, api: str, *, reach: dict[str, Any] | None = None, **settings: Any
) -> ModelPlayer:
    more = {"price": settings.pop("price", PRICE), "budget_usd": settings.pop("budget_usd", None)}
    at = Reach(server.base(api), **{"backoff_s": 0.001, "timeout_s": 60.0, **(reach or {})})
    return ModelPlayer(ModelSettings(api, "m-1", **settings), at, **more)


def play(wall: Wall, player: ModelPlayer, task: Task = TASK) -> EpisodeRecord:
    """One episode and its record. Raises ModelFailed."""

    async def go() -> EpisodeRecord:
        env, session = CodeEnv([task], wall=wall), player.session()
        try:
            await arun_episode(env, session, 1, task.id)
            return session.into(record_of(env.episode, BLANK))
        finally:
            env.close()
            await player.close()

    return asyncio.run(go())


def turns(*answers: Any) -> Brain:
    """One answer a turn, the last one again and again."""
    return lambda asked: answers[min(asked.turn, len(answers) - 1)]


def once(*failures: Any) -> Callable[[Any], Brain]:
    """Each request gets these failures, one after the other, before its answer."""

    def wrap(brain: Brain) -> Brain:
        return lambda asked: failures[asked.seen] if asked.seen < len(failures) else brain(asked)

    return wrap


SOLVES = turns(
    Say("I look.", (VIEW, ("list_files", {}))), Say("", (WRITE, ("run_tests", {}))), Say("", (SUBMIT,))
)


def said(record: EpisodeRecord, role: str) -> list[str]:
    return [message.text for message in record.messages if message.role == role]


@pytest.fixture
def serve() -> Iterator[Callable[[Brain], ModelServer]]:
    servers: list[ModelServer] = []

    def start(brain: Brain) -> ModelServer:
        servers.append(ModelServer(brain))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


Serve = Callable[[Brain], ModelServer]


# -- the loop ----------------------------------------------------------------------------------------------------------


def test_both_apis_play_the_same_episode(wall: Wall, serve: Serve) -> None:
    records = [play(wall, a_player(serve(SOLVES), api)) for api in APIS]
    for record in records:
        assert record.reward == 1.0 and record.ended_by == "submit" and record.turns == 3
        tools = [json.loads(step.action)["tool"] for step in record.steps]
        assert tools == ["view_file", "list_files", "write_file", "run_tests", "submit"]
        roles = [message.role for message in record.messages]
        assert roles == [
            "system",
            "user",
            "assistant",
            "tool",
            "tool",
            "assistant",
            "tool",
            "tool",
            "assistant",
            "tool",
        ]
        assert [call["step"] for m in record.messages for call in m.calls] == [0, 1, 2, 3, 4]
        assert said(record, "tool") == [step.observation for step in record.steps]
    assert records[0].digest == records[1].digest


@api
def test_the_model_sees_every_observation_once_and_in_its_own_form(
    wall: Wall, serve: Serve, api: str
) -> None:
    server = serve(SOLVES)
    record = play(wall, a_player(server, api))
    last = server.requests[-1].messages
    shown = json.dumps(last)
    for step in record.steps[:-1]:
        assert shown.count(json.dumps(step.observation)) == 1
    if api == "anthropic":
        assert [m["role"] for m in last] == ["user", "assistant", "user", "assistant", "user"]
        assert [b["tool_use_id"] for b in last[2]["content"]] == ["toolu_0_0", "toolu_0_1"]
        assert [b["id"] for b in last[1]["content"] if b["type"] == "tool_use"] == ["toolu_0_0", "toolu_0_1"]
    else:
        roles = ["system", "user", "assistant", "tool", "tool", "assistant", "tool", "tool"]
        assert [m["role"] for m in last] == roles
        assert [m["tool_call_id"] for m in last[3:5]] == ["call_0_0", "call_0_1"]
        assert [c["function"]["name"] for c in last[2]["tool_calls"]] == ["view_file", "list_files"]


@api
def test_a_task_that_gives_a_shell_gives_it_to_the_model(wall: Wall, serve: Serve, api: str) -> None:
    command = ("bash", {"command": f"cat > solution.py <<'END'\n{SOLUTION}END\ncat solution.py"})
    for shell in (True, False):
        server = serve(turns(Say("", (command,)), Say("", (SUBMIT,))))
        record = play(wall, a_player(server, api), replace(TASK, shell=shell))
        asked = json.dumps(server.requests[0].body["tools"])
        assert ('"bash"' in asked) is shell
        assert record.reward == (1.0 if shell else 0.0)
        assert (record.steps[0].observation == SOLUTION.rstrip("\n")) is shell


def test_a_shell_in_the_text_protocol(wall: Wall, serve: Serve) -> None:
    script = f"```bash\ncat > solution.py <<'END'\n{SOLUTION}END\n```"
    server = serve(turns(Say(script), Say("```submit\n```")))
    record = play(wall, a_player(server, "openai", protocol="text"), replace(TASK, shell=True))
    assert record.reward == 1.0
    assert json.loads(record.steps[0].action)["tool"] == "bash"


@api
def test_what_a_request_asks_with(wall: Wall, serve: Serve, api: str) -> None:
    server = serve(SOLVES)
    settings = {
        "temperature": 0.25,
        "effort": "low",
        "max_tokens": 77,
        "stop": ("END",),
        "system": "Be brief.",
    }
    record = play(wall, a_player(server, api, options={"top_p": 0.5}, **settings))
    body, headers = server.requests[0].body, server.requests[0].headers
    assert body["model"] == "m-1" and body["temperature"] == 0.25 and body["top_p"] == 0.5
    assert not body.get("stream")
    assert said(record, "system") == ["Be brief."]
    if api == "anthropic":
        assert "a-key" in (headers.get("x-api-key"), headers.get("authorization", "").removeprefix("Bearer "))
        assert body["max_tokens"] == 77 and body["stop_sequences"] == ["END"]
        assert body["output_config"] == {"effort": "low"}
        assert body["system"][0]["text"] == "Be brief."
        assert {tool["name"] for tool in body["tools"]} >= {"view_file", "submit"}
    else:
        assert headers["authorization"] == "Bearer a-key"
        assert body["max_tokens"] == 77 and body["stop"] == ["END"] and body["reasoning_effort"] == "low"
        assert body["messages"][0] == {"role": "system", "content": "Be brief."}
        assert {tool["function"]["name"] for tool in body["tools"]} >= {"view_file", "submit"}


def test_prompt_caching_and_thinking_of_anthropic(wall: Wall, serve: Serve) -> None:
    server = serve(turns(Say("", (VIEW,), thinking="hm"), Say("", (WRITE,)), Say("", (SUBMIT,))))
    record = play(wall, a_player(server, "anthropic"))
    for asked in server.requests:
        marked = [b for m in asked.messages for b in m["content"] if "cache_control" in b]
        assert marked == [
            asked.messages[-1]["content"][-1]
        ]  # the newest alone, so that there are never too many
        assert "cache_control" in asked.body["system"][-1] and "cache_control" in asked.body["tools"][-1]
    thought = server.requests[1].messages[1]["content"][0]
    assert thought == {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    assert [m.reasoning for m in record.messages if m.role == "assistant"] == ["hm", "", ""]


@api
def test_tokens_and_cost(wall: Wall, serve: Serve, api: str) -> None:
    usage = play(wall, a_player(serve(SOLVES), api)).usage
    # turn n: 10 fresh (30 at OpenAI), 100n from the cache, 20 into it (Anthropic), 5 out
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (390, 15, 300)
    assert usage.cache_write_tokens == (60 if api == "anthropic" else 0)
    fresh = 390 - 300 - usage.cache_write_tokens
    cost = (fresh * 1.0 + 300 * 0.1 + usage.cache_write_tokens * 1.25 + 15 * 10.0) / 1e6
    assert usage.cost_usd == pytest.approx(cost)
    assert play(wall, a_player(serve(SOLVES), api, price=None)).usage.cost_usd is None


# -- how it ends -------------------------------------------------------------------------------------------------------


@api
def test_who_stops_is_nudged_once_and_then_submitted_as_it_is(wall: Wall, serve: Serve, api: str) -> None:
    server = serve(turns(Say("", (WRITE,)), Say("All done!")))
    record = play(wall, a_player(server, api))
    assert record.reward == 1.0 and record.ended_by == "stop" and record.turns == 3
    assert len(said(record, "user")) == 2 and "call submit" in said(record, "user")[1]
    assert "submitted as it is" in said(record, "note")[0]
    assert [json.loads(step.action)["tool"] for step in record.steps] == ["write_file", "submit"]


@api
def test_a_nudge_that_helps(wall: Wall, serve: Serve, api: str) -> None:
    record = play(wall, a_player(serve(turns(Say("Hello"), Say("", (WRITE, SUBMIT)))), api))
    assert record.reward == 1.0 and record.ended_by == "submit" and record.turns == 2


@api
def test_what_comes_after_submit_is_not_carried_out(wall: Wall, serve: Serve, api: str) -> None:
    record = play(wall, a_player(serve(turns(Say("", (WRITE, SUBMIT, VIEW)))), api))
    assert [call["step"] for m in record.messages for call in m.calls] == [0, 1, None]
    assert record.reward == 1.0 and len(record.steps) == 2


@pytest.mark.parametrize(
    ("settings", "why", "asked"),
    [({"max_turns": 2}, "turns", 2), ({"max_total_tokens": 100}, "tokens", 2)],
)
def test_caps_of_the_player(wall: Wall, serve: Serve, settings: Any, why: str, asked: int) -> None:
    server = serve(turns(Say("", (WRITE,)), Say("", (VIEW,))))
    record = play(wall, a_player(server, "openai", **settings))
    assert record.ended_by == why and record.reward == 1.0 and len(server.requests) == asked


def test_the_caps_of_the_task_are_the_environments(wall: Wall, serve: Serve) -> None:
    record = play(wall, a_player(serve(turns(Say("", (VIEW,)))), "openai"))
    assert record.truncated_by == "steps" and record.reward == 0.0 and record.ended_by == ""
    assert len(said(record, "tool")) == len(record.steps) == 12


@pytest.mark.parametrize(
    "full",
    [
        (
            "anthropic",
            Fail(400, kind="invalid_request_error", message="prompt is too long: 9 tokens > 8 maximum"),
        ),
        ("openai", Fail(400, kind="context_length_exceeded", message="maximum context length is 8 tokens")),
        (
            "openai",
            Fail(400, kind="exceed_context_size_error", message="the request exceeds the context size"),
        ),
        ("anthropic", Say("", (), stop="model_context_window_exceeded")),
    ],
)
def test_a_full_context_is_the_models_end_and_not_a_void(wall: Wall, serve: Serve, full: Any) -> None:
    record = play(wall, a_player(serve(turns(Say("", (WRITE,)), full[1])), full[0]))
    assert record.ended_by == "context" and record.reward == 1.0


@pytest.mark.parametrize(("api", "stop"), [("anthropic", "refusal"), ("openai", "content_filter")])
def test_a_refusal(wall: Wall, serve: Serve, api: str, stop: str) -> None:
    record = play(wall, a_player(serve(turns(Say("No.", stop=stop))), api))
    assert record.ended_by == "refusal" and record.reward == 0.0 and record.turns == 1


@pytest.mark.parametrize(("api", "stop"), [("anthropic", "max_tokens"), ("openai", "length")])
def test_an_answer_that_was_cut(wall: Wall, serve: Serve, api: str, stop: str) -> None:
    server = serve(turns(Say("First I", stop=stop), Say("", (VIEW,), stop=stop), Say("", (WRITE, SUBMIT))))
    record = play(wall, a_player(server, api, max_tokens=9))
    assert record.reward == 1.0
    assert "limit of 9 tokens" in server.requests[1].last and "limit of 9 tokens" in server.requests[2].last


def test_a_paused_turn_goes_on(wall: Wall, serve: Serve) -> None:
    record = play(
        wall, a_player(serve(turns(Say("hm", stop="pause_turn"), Say("", (WRITE, SUBMIT)))), "anthropic")
    )
    assert record.reward == 1.0 and record.turns == 2 and len(said(record, "user")) == 1


# -- garbage -----------------------------------------------------------------------------------------------------------

DEEP = "[" * 400 + "]" * 400
GARBAGE: list[tuple[str, Any]] = [
    ("no_such_tool", {}),
    ("", {}),
    ("view_file", {}),
    ("view_file", {"path": 7}),
    ("view_file", {"path": "solution.py", "start_line": "one"}),
    ("view_file", {"path": "../../etc/passwd"}),
    ("write_file", {"path": "solution.py"}),
    ("submit", {"please": True}),
    ("view_file", "not json"),
    ("view_file", ["a", "list"]),
    ("write_file", {"path": "solution.py", "content": "\ud800 lone"}),
    ("view_file", {"path": json.loads(DEEP)}),
    ("view_file", None),
]


@api
@pytest.mark.parametrize("call", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_comes_back_as_an_observation(wall: Wall, serve: Serve, api: str, call: Any) -> None:
    server = serve(turns(Say("", (call,)), Say("", (WRITE, SUBMIT))))
    record = play(wall, a_player(server, api))
    assert record.reward == 1.0 and record.steps[0].invalid and not record.steps[1].invalid
    assert record.steps[0].observation in server.requests[1].last
    assert all(
        message.text.isprintable() or "\n" in message.text for message in record.messages if message.text
    )


BODIES = [
    b'{"content": "a text", "choices": [{"message": {"content": 7, "tool_calls": "none"}}]}',
    b'{"content": [null, 7, {"type": "text"}, {"type": 3}], "choices": [{"message": {"tool_calls": [null, {}]}}]}',
    b'{"content": [{"type": "tool_use"}], "choices": [{"message": {"tool_calls": [{"function": []}]}}], "usage": []}',
    b'{"content": [{"type": "tool_use", "id": 1, "name": {}, "input": 1e999}], "choices": [{"message": {"content": '
    b'[{"type": "text", "text": "hi"}], "refusal": 3}, "finish_reason": {}}], "usage": {"input_tokens": "x", '
    b'"prompt_tokens": -4, "prompt_tokens_details": 3}}',
    b'{"content": [{"type": "thinking", "thinking": "\\ud83d"}], "choices": [{"message": {"content": "\\ud83d"}}]}',
]


@api
@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_an_answer_of_any_shape_never_crashes(wall: Wall, serve: Serve, api: str, body: bytes) -> None:
    record = play(wall, a_player(serve(turns(Raw(body), Raw(body), Say("", (WRITE, SUBMIT)))), api))
    assert record.reward in (0.0, 1.0) and record.void is None
    assert record.usage.input_tokens >= 0


@api
def test_calls_with_the_same_id_are_told_apart(wall: Wall, serve: Serve, api: str) -> None:
    def brain(asked: Asked) -> Any:
        if asked.turn:
            return Say("", (WRITE, SUBMIT))
        if api == "anthropic":
            use = {"type": "tool_use", "id": "same", "name": "list_files", "input": {}}
            return Raw(json.dumps({"content": [use, use], "stop_reason": "tool_use"}).encode())
        call = {"id": "same", "type": "function", "function": {"name": "list_files", "arguments": "{}"}}
        return Raw(json.dumps({"choices": [{"message": {"tool_calls": [call, call]}}]}).encode())

    record = play(wall, a_player(serve(brain), api))
    ids = [call["id"] for call in record.messages[2].calls]
    assert record.reward == 1.0 and len(set(ids)) == 2


# -- a server that fails -----------------------------------------------------------------------------------------------

PASSING = [
    Fail(429, {"retry-after": "0"}),
    Fail(500),
    Fail(503),
    Fail(529),
    Fail(408),
    Drop(),
    Cut(Say("", (SUBMIT,))),
    Raw(b"<html>bad gateway</html>", 502, "text/html"),
    Raw(b"{", 200),
    Raw(b'{"error": {"message": "overloaded"}}'),
    Raw(b"[]"),
    Raw(b"\xff\xfe", 200, "text/plain"),
]


@api
@pytest.mark.parametrize("failure", PASSING, ids=range(len(PASSING)))
def test_what_may_pass_is_tried_again(wall: Wall, serve: Serve, api: str, failure: Any) -> None:
    server = serve(once(failure, failure)(SOLVES))
    player = a_player(server, api)
    record = play(wall, player)
    assert record.reward == 1.0 and len(server.requests) == 9
    assert player.meter.retries.total() == 6
    assert [m.retries for m in record.messages if m.role == "assistant"] == [2, 2, 2]


@api
def test_who_does_not_answer_in_time_is_asked_again(wall: Wall, serve: Serve, api: str) -> None:
    server = serve(once(Slow(3600, Say("late")))(turns(Say("", (WRITE, SUBMIT)))))
    player = a_player(server, api, reach={"timeout_s": 3.0})
    assert play(wall, player).reward == 1.0
    assert player.meter.retries["timeout"] >= 1


@api
@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (Fail(500), "answered 500"),
        (Drop(), "connection"),
        (Fail(400, message="no such field"), "400.*no such field"),
        (Raw(b'{"choices": [], "content": 7', 200), "no JSON"),
    ],
)
def test_what_does_not_pass_is_a_failure_with_the_reason(
    wall: Wall, serve: Serve, api: str, failure: Any, reason: str
) -> None:
    server = serve(turns(failure))
    with pytest.raises(ModelFailed, match=reason):
        play(wall, a_player(server, api, reach={"retries": 2}))
    assert len(server.requests) == (1 if "400" in reason else 3)


@api
@pytest.mark.parametrize("status", [401, 403, 404])
def test_what_no_request_would_escape(wall: Wall, serve: Serve, api: str, status: int) -> None:
    server = serve(turns(Fail(status)))
    with pytest.raises(Hopeless, match=str(status)):
        play(wall, a_player(server, api))
    assert len(server.requests) == 1


def test_an_empty_account_is_not_asked_again(wall: Wall, serve: Serve) -> None:
    server = serve(turns(Fail(429, kind="insufficient_quota", message="You exceeded your current quota")))
    with pytest.raises(Hopeless, match="insufficient_quota"):
        play(wall, a_player(server, "openai"))
    assert len(server.requests) == 1


def test_nothing_is_asked_once_the_budget_is_spent(wall: Wall, serve: Serve) -> None:
    server = serve(turns(Say("", (VIEW,))))
    with pytest.raises(OverBudget, match="budget"):
        play(wall, a_player(server, "openai", budget_usd=1e-9))
    assert len(server.requests) == 1


# -- plain text --------------------------------------------------------------------------------------------------------


def block(head: str, body: str = "") -> str:
    return f"```{head}\n{body}```\n"


@api
def test_the_text_protocol(wall: Wall, serve: Serve, api: str) -> None:
    answers = (
        Say("I look.\n" + block("view_file solution.py") + block("list_files")),
        Say(
            block(
                "tool",
                '{"tool": "write_file", "path": "solution.py", "content": "def double(x): return 0"}\n',
            )
        ),
        Say(block("write_file solution.py", SOLUTION) + block("run_tests") + block("submit")),
    )
    server = serve(turns(*answers))
    record = play(wall, a_player(server, api, protocol="text"))
    assert record.reward == 1.0 and record.turns == 3 and not any(step.invalid for step in record.steps)
    assert "tools" not in server.requests[0].body
    for step in record.steps[:2]:
        assert step.observation in server.requests[1].last
    written = json.loads(record.steps[3].action)["content"]
    assert written == SOLUTION


TEXT_GARBAGE = [
    (block("tool", "{not json\n"), "not JSON"),
    (block("tool", '{"tool": "fly"}\n'), "no tool named"),
    (block("json", '{"tool": "view_file"}\n'), "'path'"),
    (block("write_file", "x = 1\n"), "'path'"),
    (block("replace_text solution.py", "no marks\n"), "'old'"),
    ("```write_file solution.py\nx = 1\n", "not closed"),
    ("I think that it is done.", "No action was found"),
]


@pytest.mark.parametrize(("answer", "told"), TEXT_GARBAGE, ids=range(len(TEXT_GARBAGE)))
def test_garbage_in_text_comes_back_as_an_observation(
    wall: Wall, serve: Serve, answer: str, told: str
) -> None:
    server = serve(turns(Say(answer), Say(block("write_file solution.py", SOLUTION) + block("submit"))))
    record = play(wall, a_player(server, "openai", protocol="text"))
    assert record.steps[0].invalid and told in record.steps[0].observation
    assert told in server.requests[1].last and record.reward == 1.0


def test_prose_alone_twice_is_submitted_as_it_is(wall: Wall, serve: Serve) -> None:
    record = play(wall, a_player(serve(turns(Say("Hm."))), "openai", protocol="text"))
    assert record.ended_by == "stop" and record.turns == 2
    assert [step.invalid for step in record.steps] == [True, False]


def test_the_code_protocol(wall: Wall, serve: Serve) -> None:
    answer = (
        "First try:\n"
        + block("python", "def double(x): return 0\n")
        + "Better:\n"
        + block("python", SOLUTION)
    )
    server = serve(turns(Say(answer)))
    record = play(wall, a_player(server, "openai", protocol="code"))
    assert server.requests[0].last.endswith("```python\ndef double(x):\n    return 0\n```")
    assert record.reward == 1.0 and record.turns == 1 and len(record.steps) == 2


# -- as a plain player, and what it needs ------------------------------------------------------------------------------


def test_it_is_a_player_like_any_other(wall: Wall, serve: Serve) -> None:
    player = a_player(serve(SOLVES), "openai")
    env = CodeEnv([TASK], wall=wall)
    try:
        for _ in range(2):  # an event loop each
            assert run_episode(env, player, 1, "double").reward == 1.0
    finally:
        env.close()


def test_the_clock_stands_while_the_model_is_asked(wall: Wall, serve: Serve) -> None:
    env, times = CodeEnv([TASK], wall=wall), list[float]()

    def brain(asked: Asked) -> Any:
        times.append(env._clock.elapsed_s)
        return Slow(0.05, SOLVES(asked))

    player = a_player(serve(brain), "openai")
    asking = player.ask

    async def ask(history: Any, shell: bool) -> Any:
        before = env._clock.elapsed_s
        answer = await asking(history, shell)
        assert env._clock.elapsed_s == before
        return answer

    player.ask = ask  # type: ignore[method-assign]
    try:
        assert run_episode(env, player, 1, "double").reward == 1.0
    finally:
        env.close()
    assert len(times) == 3 and times == sorted(times) and times[2] > times[0]


@api
def test_without_the_sdk(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, api, None)
    with pytest.raises(UsageError, match=rf"pip install 'tiltyard\[{api}\]'"):
        make_player(f"{api}:m")


@api
def test_without_a_key(api: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.delenv(f"{api.upper()}_API_KEY")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(UsageError, match=f"{api.upper()}_API_KEY"):
        make_player(f"{api}:m")


def test_a_server_of_ones_own_needs_no_key(wall: Wall, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    for api in APIS:
        monkeypatch.delenv(f"{api.upper()}_API_KEY")
        assert play(wall, a_player(serve(SOLVES), api)).reward == 1.0


def test_the_name_of_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    assert make_player("openai:org/model:tag").name == "openai:org/model:tag"  # type: ignore[attr-defined]
    for bad in ("openai:", "openai:a\nb"):
        with pytest.raises(UsageError, match="expected a name"):
            make_player(bad)
    with pytest.raises(UsageError, match="anthropic:MODEL"):
        make_player("mistral")


def test_settings_survive_json() -> None:
    settings = ModelSettings("openai", "m", temperature=0.0, stop=("a", "b"), options={"top_p": 1})
    again = ModelSettings.from_dict(json.loads(json.dumps(settings.as_dict())))
    assert again == settings and replace(again, stop=()) != settings
    assert ModelSettings("openai", "m").as_dict() == {"api": "openai", "model": "m"}


@pytest.mark.parametrize(
    "bad",
    [
        {"temperature": float("nan")},
        {"temperature": -1},
        {"max_tokens": 0},
        {"max_turns": True},
        {"protocol": "smoke"},
        {"stop": ("",)},
        {"options": {"x": float("inf")}},
        {"api": "other"},
    ],
)
def test_settings_that_are_none(bad: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"expected|JSON"):
        ModelSettings(**{"api": "openai", "model": "m", **bad})


def test_a_budget_needs_a_price() -> None:
    with pytest.raises(UsageError, match="--prices"):
        ModelPlayer(ModelSettings("openai", "m"), budget_usd=1.0)


def test_the_server_of_the_tests_closes() -> None:
    with serving(SOLVES) as server:
        pass
    assert not server.thread.is_alive()
