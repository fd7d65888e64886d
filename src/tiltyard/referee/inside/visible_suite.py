"""Runs visible test files with pytest in the player's own cell, and says in plain text what failed and why.

Standard input is one JSON object: ``kit`` (see ``kit``), ``tests`` (paths or node ids; ``what``: what they are called), ``roots``, ``plugins``, ``run_s``
(seconds for everything). Standard output is the report; its last line counts what passed. As in ``visible``: nothing here
decides a reward, and nothing secret is here. One process runs the session; what it can't say of itself, because it
hangs or ends, the one that watches it says.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from . import suite
from .visible import (
    _collect,
    _drain,
    _end,
    _explain,
    _how,
    _messages,
    _neutral,
    _one_line,
    _printed,
    _read_all,
    _redirect,
    _seconds,
    _write,
)

_OPTIONS = ["--assert=rewrite", "-o", "enable_assertion_pass_hook=false"]


class Teller:
    """The listener: a message for each test."""

    def __init__(self, out: int) -> None:
        self._out = out
        self._ids: list[str] = []
        self._printed = ""

    def _send(self, **message: Any) -> None:
        _write(self._out, json.dumps(message).encode() + b"\n")

    def collected(self, ids: list[str]) -> None:
        self._ids = ids
        self._send(text="", total=len(ids))

    def failed_to_collect(self, file: str, error: BaseException | None) -> None:
        said = _explain(error) if error is not None else ""
        self._send(text=_neutral(f"{_one_line(file)} could not be collected:\n{said}"), failed=True)

    def begin(self, index: int) -> None:
        self._send(text="", begins=_one_line(self._ids[index]))

    def end(self, index: int, reason: str, error: BaseException | None) -> None:
        name = _one_line(self._ids[index])
        printed, self._printed = _printed(bytearray(self._printed.encode("utf-8", "backslashreplace"))), ""
        if not reason:
            self._send(text=f"PASSED {name}", passed=True)
        elif error is None:
            self._send(
                text=f"{'SKIPPED' if reason == suite.SKIPPED else 'FAILED'} {name}: {reason}", passed=False
            )
        else:
            shown = f"\n  printed:\n{printed}" if printed else ""
            self._send(text=_neutral(f"FAILED {name}\n{_explain(error)}") + shown, passed=False)

    def printed(self, text: str) -> None:
        """What the test that is about to end has printed."""
        self._printed = text


def main(args: list[str]) -> None:
    """Read the configuration, run the tests, print the report. Takes no arguments."""
    config = json.loads(_read_all(0))
    deadline = time.monotonic() + config["run_s"]
    results_r, results_w = os.pipe()
    output_r, output_w = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.close(results_r)
            os.close(output_r)
            os.setpgid(0, 0)
            _redirect(output_w)
            _run(config, results_w)
        finally:
            os._exit(0)
    os.close(results_w)
    os.close(output_w)
    results, output = bytearray(), bytearray()
    in_time = _collect({results_r: results, output_r: output}, results_r, b"", deadline)
    status = _end(pid)
    _drain(output_r, output)
    blocks = _report(config, _messages(results), in_time, status, _printed(output))
    _write(1, ("\n".join(blocks) + "\n").encode("utf-8", "backslashreplace"))


def _run(config: dict[str, Any], out: int) -> None:
    teller = Teller(out)
    try:
        suite.provide(config["kit"])
        sys.argv = ["pytest"]
        sys.dont_write_bytecode = True
        session = suite.Session(config["tests"], None, config["roots"], config["plugins"], _OPTIONS)
        suite.run(session, teller)
        teller._send(text="", done=True)
    except BaseException as error:
        teller._send(text=_neutral(f"pytest could not run:\n{_explain(error)}"), failed=True, done=True)


def _report(
    config: dict[str, Any], messages: list[dict[str, Any]], in_time: bool, status: int, printed: str
) -> list[str]:
    ended = [m for m in messages if "passed" in m]
    passed = sum(m["passed"] for m in ended)
    total = max([len(ended), *(m["total"] for m in messages if type(m.get("total")) is int)])
    blocks = [m["text"] for m in messages]
    if not any(m.get("done") for m in messages):
        last = messages[-1].get("begins") if messages else None
        where = f" in {last}" if isinstance(last, str) else " while the tests were collected"
        if in_time:
            blocks.append(f"The process of the tests ended{where} ({_how(status)}).")
        else:
            blocks.append(f"TIMED OUT{where}: one run of all tests may take {_seconds(config['run_s'])}.")
    if printed:
        blocks.append(f"printed:\n{printed}")
    blocks.append(f"{passed} of {total} {config['what']} {'test' if total == 1 else 'tests'} passed")
    return [block for block in blocks if block]
