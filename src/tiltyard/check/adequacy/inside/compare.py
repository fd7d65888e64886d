"""Are two programs the same, as far as many inputs can tell? Runs in a cell, beside the programs.

The workspace holds ``job.json``, the reference's files in ``reference/`` and each mutant's in ``mutant0/``, … The hidden
tests are run once beside the reference, so that what they call it with is known (``recording``). These traces, and
variations of them, are then played on the reference and on each mutant, each in a fork of its own, and what comes back is
compared: values, exceptions by class, arguments that were changed, what is left in public attributes. Programs on stdio
get the tests' inputs and variations of those.

Out, on stdout, one JSON document: ``{"inputs": N, "mutants": [null | {"call", "reference", "mutant"}]}``: null where no
difference was seen. Nothing here is hostile (task and mutants are the author's own), but anything may hang or die.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import random
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from .basics import OutOfTime, in_fork, limited, silent
from .playing import play, short, shown
from .recording import record
from .variations import collect, constants, vary_input, vary_text, vary_trace

TRACE_S = 0.25
"""Processor time of one trace on the reference; a mutant gets PATIENCE times as much."""
PATIENCE = 4
BUDGET_S = 10.0
"""Processor time of all traces on one program; what comes after that is not compared."""
PROGRAM_S = 150.0
RUN_S = 1.0
"""Processor time of one run of a reference on stdio."""


def load(folder: Any, names: Any) -> Any:
    """The task's modules from ``folder``, anew."""
    for name in [n for n in sys.modules if n.partition(".")[0] in {x.partition(".")[0] for x in names}]:
        del sys.modules[name]
    sys.path[0] = folder
    importlib.invalidate_caches()
    found = {}
    for name in names:
        with contextlib.suppress(Exception):
            found[name] = importlib.import_module(name)
    return found


def outcomes(folder: Any, job: Any, traces: Any, trace_s: Any) -> Any:
    """For each trace a list of texts, or None where it did not end. Called in a fork."""
    try:
        with silent(), limited(10.0):
            modules = load(folder, job["modules"])
            if job["main"] not in modules:
                return "does not load"
    except BaseException:
        return "does not load"
    told: list[Any] = []
    late, begun = 0, time.process_time()
    for trace in traces:
        random.seed(0)
        try:
            with silent(), limited(trace_s):
                ops, left = play(trace, modules)
                told.append([short(x) for x in (*ops, *left)])
        except OutOfTime:
            told.append(None)
            late += 1
        except BaseException as error:
            told.append([f"raised {type(error).__name__}"])
        if late > 8 or time.process_time() - begun > BUDGET_S:
            break
    return told


def sources() -> Any:
    """The text of each Python file of the reference that is one."""
    for path in sorted(Path("reference").rglob("*.py")):
        with contextlib.suppress(SyntaxError, ValueError, RecursionError):
            text = path.read_text(encoding="utf-8")
            compile(text, path.name, "exec", dont_inherit=True)
            yield text


def compare_calls(job: Any) -> Any:
    sys.path.insert(0, "reference")
    with silent():
        modules = load("reference", job["modules"])
    base = record(job, modules) if job["main"] in modules else []
    if not base:
        return {"inputs": 0, "mutants": [None] * job["mutants"]}
    rng, pool = random.Random(job["seed"]), collect(base, constants(sources()))
    traces = base[: job["inputs"] // 2]
    seen = {shown(t) for t in traces}
    for _ in range(job["inputs"] * 4):
        if len(traces) >= job["inputs"]:
            break
        trace = vary_trace(rng.choice(base), rng, pool)
        if trace and (key := shown(trace)) not in seen:
            seen.add(key)
            traces.append(trace)
    twice = [in_fork(lambda: outcomes("reference", job, traces, TRACE_S), PROGRAM_S) for _ in range(2)]
    if not all(isinstance(told, list) for told in twice):
        return {"inputs": 0, "mutants": [None] * job["mutants"]}
    good = [n for n, (a, b) in enumerate(zip(*twice, strict=False)) if a is not None and a == b]
    kept, expected = [traces[n] for n in good], [twice[0][n] for n in good]
    if not any(not x.startswith(("raised", "not asked")) for told in expected for x in told):
        kept = []  # where the reference says nothing but no, agreeing with it says little
    found: list[Any] = []
    for n in range(job["mutants"]):
        told = in_fork(partial(outcomes, f"mutant{n}", job, kept, PATIENCE * TRACE_S), PROGRAM_S)
        found.append(first_difference(kept, expected, told))
    return {"inputs": len(kept), "mutants": found}


def first_difference(traces: Any, expected: Any, told: Any) -> Any:
    if not isinstance(told, list):
        return {"call": "import", "reference": "loads", "mutant": told or "did not end"}
    differ = [n for n, got in enumerate(told) if got != expected[n]]
    if not differ:
        return None
    # rather one that the reference answers than one that it refuses, rather a short one than a long one
    best = min(
        differ, key=lambda n: (any(x.startswith("raised") for x in expected[n]), len(shown(traces[n])), n)
    )
    want, got = expected[best], told[best]
    if got is None:
        return {"call": shown(traces[best]), "reference": want[-1], "mutant": "does not end"}
    at = next(
        (i for i, pair in enumerate(zip(want, got, strict=False)) if pair[0] != pair[1]),
        min(len(want), len(got)) - 1,
    )
    return {"call": shown(traces[best][: at + 1]), "reference": want[at], "mutant": got[at]}


# ----------------------------------------------------------------------------------------------------------- programs


def compare_programs(job: Any) -> Any:
    rng, pool = random.Random(job["seed"]), collect([], constants(sources()))
    base = [(stdin, tuple(args)) for stdin, args in job["tests"]]
    inputs = list(dict.fromkeys(base))
    for _ in range(job["inputs"] * 4):
        if len(inputs) >= job["inputs"]:
            break
        stdin, args = rng.choice(base)
        for _ in range(rng.choice((1, 1, 2))):
            if args and rng.random() < 0.3:
                args = tuple(vary_text(a, rng, ["1"]) if rng.random() < 0.5 else a for a in args)
                args = tuple(a.replace("\0", "") for a in args)
            else:
                stdin = vary_input(stdin, rng, pool)
        if (stdin, args) not in inputs:
            inputs.append((stdin, args))
    expected = [run_program("reference", job, one, RUN_S) for one in inputs]
    kept = [(one, told) for one, told in zip(inputs, expected, strict=True) if told is not None]
    found: list[Any] = []
    for n in range(job["mutants"]):
        found.append(None)
        for one, told in sorted(kept, key=lambda pair: (pair[1][0] != 0, len(pair[0][0]))):
            got = run_program(f"mutant{n}", job, one, PATIENCE * RUN_S)
            if not same_run(got, told, job):
                given = f" with arguments {list(one[1])!r}" if one[1] else ""
                ended = "does not end" if got is None else f"exit {got[0]}, prints {short(repr(got[1]))}"
                call = f"stdin {short(repr(one[0]))}{given}"
                found[n] = {
                    "call": call,
                    "reference": f"exit {told[0]}, prints {short(repr(told[1]))}",
                    "mutant": ended,
                }
                break
    return {"inputs": len(kept), "mutants": found}


def same_run(got: Any, told: Any, job: Any) -> bool:
    """Whether two runs ended alike, by the task's own rule for what is printed."""
    if got is None or got[0] != told[0] or job["match"] == "exact":
        return bool(got == told)
    if job["match"] == "lines":
        one, two = ([line.rstrip() for line in text.rstrip().splitlines()] for text in (got[1], told[1]))
        return bool(one == two)
    one, two = got[1].split(), told[1].split()
    if job["match"] == "tokens" or len(one) != len(two):
        return bool(one == two)
    return all(_same_number(a, b, job["tolerance"]) for a, b in zip(one, two, strict=True))


def _same_number(one: str, two: str, tolerance: float) -> bool:
    try:
        return one == two or abs(float(one) - float(two)) <= tolerance
    except ValueError:
        return False


def run_program(folder: Any, job: Any, one: Any, cpu_s: Any) -> Any:
    """(exit code, what it printed) of one run in a fork, or None if it did not end."""
    stdin, args = one

    def act() -> Any:

        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, cpu_s)
        os.chdir(folder)
        sys.path[0] = "."
        sys.argv = [job["main_path"], *args]
        sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode("utf-8", "replace")), encoding="utf-8")
        raw = io.BytesIO()
        sys.stdout, sys.stderr = io.TextIOWrapper(raw, encoding="utf-8", write_through=True), io.StringIO()
        code = 0
        try:
            import runpy  # here: fork servers load this module, and runs do without that one

            runpy.run_path(job["main_path"], run_name="__main__")
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
        except BaseException:
            code = 1
        return [code, raw.getvalue().decode("utf-8", "replace")[:200_000]]

    told = in_fork(act, 60.0)
    return tuple(told) if told is not None else None


def main() -> Any:
    with open("job.json", encoding="utf-8") as file:
        job = json.load(file)
    print(json.dumps(compare_programs(job) if job["kind"] == "stdio" else compare_calls(job)))


if __name__ == "__main__":
    main()
