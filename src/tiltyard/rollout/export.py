"""Episodes as files for other people's software: ATIF trajectories (JSON Lines), and Parquet.

ATIF is the Agent Trajectory Interchange Format, version 1.8, as harbor 0.26 reads it: each episode is one trajectory
(``session_id`` its run, ``trajectory_id`` its id), each turn of a model one step of the agent with its calls, their
results and its metrics. What has no place in the format (verdict, reward, seeds, digest) is in ``extra``.

Promises: one episode in memory at a time (Parquet: a few hundred); a file appears whole or not at all.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tiltyard.errors import UsageError
from tiltyard.records import EpisodeRecord, MessageRecord, Store, Usage
from tiltyard.tools import ALL, schemas

ATIF = "ATIF-v1.8"
FORMATS = ("atif", "parquet")
GROUP = 256
"""Rows of a Parquet file that are written at once."""


def export(store: Store, form: str, out: str | os.PathLike[str], *, run: str | None = None) -> int:
    """Write the episodes of a store, or of one run of it; returns how many. Raises UsageError."""
    if form not in FORMATS:
        raise UsageError(f"found the format {form!r}; expected one of {', '.join(FORMATS)}")
    path = Path(out)
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError(f"{path}: expected the name of a file, in a folder that is there")
    write = _atif_file if form == "atif" else _parquet_file
    unfinished: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
        unfinished = Path(name)
        count = write(store.episodes(run=run), unfinished)
        unfinished.chmod(0o666 & ~_umask())
        unfinished.replace(path)
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror or error}") from None
    finally:
        if unfinished is not None:
            unfinished.unlink(missing_ok=True)
    return count


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


# -- ATIF --------------------------------------------------------------------------------------------------------------


def _atif_file(episodes: Iterable[EpisodeRecord], path: Path) -> int:
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for record in episodes:
            file.write(json.dumps(_encodable(atif(record)), allow_nan=False) + "\n")
            count += 1
    return count


def atif(record: EpisodeRecord) -> dict[str, Any]:
    """One episode as an ATIF trajectory."""
    steps = [found["step"] for found in (_talk(record) if record.messages else _actions(record))]
    usage = record.usage
    final = _tokens("total_", usage) | {"total_steps": len(steps)}
    final["extra"] = {"reward": record.reward, "turns": record.turns, "seconds": record.seconds}
    return {
        "schema_version": ATIF,
        "session_id": record.run or record.id,
        "trajectory_id": record.id,
        "agent": {
            "name": "tiltyard",
            "version": record.versions.get("tiltyard", ""),
            **({"model_name": record.model} if record.model else {}),
            "tool_definitions": schemas("openai", ALL),
            "extra": {"player": record.player},
        },
        "steps": [{"step_id": n, **step} for n, step in enumerate(steps, start=1)],
        "final_metrics": final,
        "extra": {
            "task": record.task,
            "task_digest": record.task_digest,
            "pool": record.pool,
            "pool_version": record.pool_version,
            "reward": record.reward,
            "void": record.void,
            "verdict": None if record.verdict is None else dict(record.verdict),
            "flags": list(record.flags),
            "ended_by": record.ended_by,
            "truncated_by": record.truncated_by,
            "patch": record.patch,
            "attempt": record.attempt,
            "seed": record.seed,
            "digest": record.digest,
        },
    }


def _tokens(prefix: str, usage: Usage) -> dict[str, Any]:
    out: dict[str, Any] = {
        f"{prefix}prompt_tokens": usage.input_tokens,
        f"{prefix}completion_tokens": usage.output_tokens,
        f"{prefix}cached_tokens": usage.cache_read_tokens,
    }
    if usage.cost_usd is not None:
        out[f"{prefix}cost_usd"] = usage.cost_usd
    return out


def _talk(record: EpisodeRecord) -> Iterator[dict[str, Any]]:
    """A model's episode: a step for each message, but that what answers a call stands with the turn that made it."""
    turn: dict[str, Any] | None = None
    for message in record.messages:
        if message.role == "assistant":
            if turn is not None:
                yield turn
            turn = _turn(message)
        elif turn is not None and message.call_id in turn["ids"]:
            results = turn["step"].setdefault("observation", {"results": []})["results"]
            results.append({"source_call_id": message.call_id, "content": message.text})
        else:
            if turn is not None:
                yield turn
            turn = None
            source = "user" if message.role == "user" else "system"
            yield {"step": {"source": source, "message": message.text, **_when(message)}}
    if turn is not None:
        yield turn


def _turn(message: MessageRecord) -> dict[str, Any]:
    extra = {"stop_reason": message.stop_reason, "seconds": message.seconds, "retries": message.retries}
    metrics = _tokens("", message.usage)
    metrics["extra"] = {"cache_write_tokens": message.usage.cache_write_tokens}
    step = {"source": "agent", "message": message.text, **_when(message), "llm_call_count": 1}
    step |= {"metrics": metrics, "extra": extra}
    if message.reasoning:
        step["reasoning_content"] = message.reasoning
    calls = [_atif_call(call["id"], call["name"], call["arguments"]) for call in message.calls]
    if calls:
        step["tool_calls"] = calls
    return {"step": step, "ids": {call["tool_call_id"] for call in calls}}


def _when(message: MessageRecord) -> dict[str, Any]:
    return {"timestamp": message.at} if message.at else {}


def _atif_call(id: str, name: str, arguments: Any) -> dict[str, Any]:
    """``arguments`` must be an object: what is none is wrapped into one."""
    if isinstance(arguments, str):
        with suppress(ValueError, RecursionError):
            arguments = json.loads(arguments) if arguments else {}
    if not isinstance(arguments, dict):
        arguments = {"invalid_arguments": arguments}
    return {"tool_call_id": id, "function_name": name, "arguments": arguments}


def _actions(record: EpisodeRecord) -> Iterator[dict[str, Any]]:
    """An episode that no model played: its actions, as steps that no model was asked for."""
    yield {"step": {"source": "user", "message": record.observation}}
    for n, step in enumerate(record.steps):
        action = json.loads(step.action)
        call = _atif_call(f"step_{n}", str(action.pop("tool", "")), action)
        results = [{"source_call_id": f"step_{n}", "content": step.observation}]
        yield {
            "step": {
                "source": "agent",
                "message": "",
                "llm_call_count": 0,
                "tool_calls": [call],
                "observation": {"results": results},
            }
        }


# -- Parquet -----------------------------------------------------------------------------------------------------------


def _parquet_file(episodes: Iterable[EpisodeRecord], path: Path) -> int:
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
        import pyarrow.parquet as pq  # type: ignore[import-untyped]
    except ImportError as error:
        raise UsageError(
            f"export --format parquet needs pyarrow ({error}): pip install 'tiltyard[parquet]'"
        ) from None
    schema = _arrow_schema(pa)
    count, rows = 0, list[dict[str, Any]]()
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:

        def flush() -> None:
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))
            rows.clear()

        for record in episodes:
            rows.append(parquet_row(record))
            count += 1
            if len(rows) == GROUP:
                flush()
        flush()
    return count


def parquet_row(record: EpisodeRecord) -> dict[str, Any]:
    """One episode as a row: plain columns, the steps and messages as lists of records. What has no fixed shape (the
    verdict, settings, a call's arguments) is JSON text."""
    usage = record.usage
    row = {name: getattr(record, name) for name in _PLAIN}
    row |= {name: getattr(usage, name) for name in Usage.__dataclass_fields__}
    row |= {
        "verdict": None if record.verdict is None else json.dumps(dict(record.verdict), sort_keys=True),
        "settings": json.dumps(dict(record.settings), sort_keys=True),
        "versions": json.dumps(dict(record.versions), sort_keys=True),
        "flags": list(record.flags),
        "steps": [{name: getattr(step, name) for name in step.__dataclass_fields__} for step in record.steps],
        "messages": [_message_row(message) for message in record.messages],
    }
    out: dict[str, Any] = _encodable(row)
    return out


def _message_row(message: MessageRecord) -> dict[str, Any]:
    row = {name: getattr(message, name) for name in message.__dataclass_fields__ if name != "usage"}
    row |= {name: getattr(message.usage, name) for name in Usage.__dataclass_fields__}
    return row | {"calls": [_call_row(call) for call in message.calls]}


def _call_row(call: Mapping[str, Any]) -> dict[str, Any]:
    given = call["arguments"]
    return {**call, "arguments": given if isinstance(given, str) else json.dumps(given)}


def _encodable(value: Any) -> Any:
    """Lone surrogates, which a player may write and UTF-8 can't hold, become question marks."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {key: _encodable(item) for key, item in value.items()}
    return [_encodable(item) for item in value] if isinstance(value, list) else value


_TEXTS = ("id", "run", "task", "task_digest", "player", "model", "ended_by", "pool", "pool_version")
_MORE_TEXTS = (
    "pool_digest",
    "pool_spec",
    "wall",
    "observation",
    "void",
    "started",
    "truncated_by",
    "digest",
    "patch",
)
_INTEGERS = ("run_seed", "seed", "attempt", "number", "turns")
_PLAIN = (*_TEXTS, *_MORE_TEXTS, *_INTEGERS, "reward", "seconds")


def _arrow_schema(pa: Any) -> Any:
    text, integer, real = pa.string(), pa.int64(), pa.float64()
    usage = [(name, integer) for name in Usage.__dataclass_fields__ if name.endswith("tokens")]
    usage.append(("cost_usd", real))
    step: list[tuple[str, Any]] = [("action", text), ("observation", text), ("reward", real)]
    step += [("terminated", pa.bool_()), ("truncated", pa.bool_()), ("truncated_by", text)]
    step += [("invalid", pa.bool_()), ("seconds", real)]
    call = [("id", text), ("name", text), ("arguments", text), ("step", integer)]
    message: list[tuple[str, Any]] = [(name, text) for name in ("role", "text", "reasoning", "call_id")]
    message += [("calls", pa.list_(pa.struct(call))), ("step", integer), ("stop_reason", text)]
    message += [("seconds", real), ("retries", integer), ("at", text), *usage]
    columns: list[tuple[str, Any]] = [(name, text) for name in (*_TEXTS, *_MORE_TEXTS)]
    columns += [(name, integer) for name in _INTEGERS]
    columns += [("reward", real), ("seconds", real), *usage]
    columns += [(name, text) for name in ("verdict", "settings", "versions")]
    columns += [("flags", pa.list_(text)), ("steps", pa.list_(pa.struct(step)))]
    columns.append(("messages", pa.list_(pa.struct(message))))
    return pa.schema(columns)
