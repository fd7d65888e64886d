"""``run_tests``: the visible tests on the files as they are now, as a text.

Calls tasks run in the player's cell, by the inside program ``visible``. A test that needs a name which the task's
prelude defines is graded in the examiner instead (pass or fail with the reason): a prelude may hold an oracle, and
nothing that knows answers enters the player's cell. Programs (stdio) are run on each visible case, and expected and
actual output are shown. Suites (pytest) run in the player's cell, by the inside program ``visible_suite``. Same files, same bytes; CellLost and ArenaError pass through.
"""

from __future__ import annotations

import ast
import json
import marshal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tiltyard.cells.protocol import Cell, Run, RunResult
from tiltyard.errors import PlayerError
from tiltyard.parsing import alone, parse_source
from tiltyard.referee.inside.visible import compiled, neutral
from tiltyard.referee.once import once_a_task
from tiltyard.referee.prepare import MAGIC, MAX_SOURCE, REMEMBERED
from tiltyard.referee.pytest_files import layout
from tiltyard.referee.pytest_kit import kit_packages
from tiltyard.referee.stdio import judge
from tiltyard.task import Limits, Task, Test
from tiltyard.tools import text
from tiltyard.tools.hands import clean_path

GRACE_S = 5.0
"""Over the runner's own limit, so that its report names what took so long; beyond it the run is stopped from outside."""
MAX_SHOWN = 1500

Examine = Callable[[tuple[Test, ...]], Mapping[str, tuple[bool, str]]]
"""Grades visible tests on the workspace as it is: id → (passed, reason)."""


def run_tests(cell: Cell, task: Task, limits: Limits, examine: Examine, ids: str = "") -> str:
    """Run the task's visible tests and say how they went; only those that ``ids`` names, one a line, if it names any. In a
    suite these may be any tests of the workspace. PlayerError: there is no such test."""
    wanted = tuple(dict.fromkeys(line.strip() for line in ids.split("\n") if line.strip()))
    if wanted and task.grading == "pytest":
        return _run_suite(cell, task, limits, tuple(map(_node_id, wanted)))
    if not task.visible:
        more = " ids names tests of your own, if you have written any." if task.grading == "pytest" else ""
        return f"This task has no visible tests.{more} The hidden tests run when you submit."
    if wanted:
        unknown = [id for id in wanted if id not in {test.id for test in task.visible}]
        if unknown:
            known = ", ".join(text.name(test.id, 60) for test in task.visible[:20])
            raise PlayerError(f"Found no visible test {text.name(unknown[0])!r}; expected some of {known}.")
        task = replace(task, visible=tuple(test for test in task.visible if test.id in wanted))
    if task.grading == "stdio":
        return _run_programs(cell, task, limits)
    if task.grading == "pytest":
        return _run_suite(cell, task, limits)
    return _run_calls(cell, task, limits, examine)


# -- calls -------------------------------------------------------------------------------------------------------


def _run_calls(cell: Cell, task: Task, limits: Limits, examine: Examine) -> str:
    ready = _ready(task)
    trusted = tuple(test for test, code in zip(task.visible, ready.code, strict=True) if code is None)
    blocks, passed = [], 0
    if len(trusted) < len(task.visible):
        config = {
            "main": task.main,
            "entry": list(task.entry),
            "imports": ready.imports,
            "run_s": limits.run_s,
            "tests": [
                {
                    "id": t.id,
                    "code": t.code,
                    "time_s": t.time_s or limits.test_s,
                    "compiled": code,
                    "magic": MAGIC,
                }
                for t, code in zip(task.visible, ready.code, strict=True)
                if code is not None
            ],
        }
        result = _inside(cell, {**config, "quick": True}, limits)
        if result.rc != 0 or not result.stdout.endswith(b" passed\n"):  # it came to no end in one process
            result = _inside(cell, config, limits)
        report = _ended(result, text.decode(result.stdout).rstrip("\n"), limits)
        if not trusted:
            return report
        report, _, total = report.rpartition("\n")
        count = total.split(" ", 1)[0]
        passed = int(count) if count.isdecimal() and len(count) < 6 else 0
        blocks.append(report)
    for test_id, (ok, reason) in examine(trusted).items():
        passed += ok
        blocks.append(f"PASSED {text.name(test_id)}" if ok else f"FAILED {text.name(test_id)}: {reason}")
    blocks.append(
        f"{min(passed, len(task.visible))} of {text.plural(len(task.visible), 'visible test')} passed"
    )
    return "\n".join(b for b in blocks if b)


@dataclass(frozen=True, slots=True)
class _Ready:
    """What is worked out of a task's visible tests once, and not at every run of them."""

    imports: str
    code: tuple[str | None, ...]
    """Of each test, compiled, in hexadecimal, or "" if it can't be; None for one that only the examiner can run."""


@once_a_task(REMEMBERED)
def _ready(task: Task) -> _Ready:
    imports, names = split_prelude(task.prelude)
    return _Ready(
        imports, tuple(None if names and names & _names_used(t.code) else _code_of(t) for t in task.visible)
    )


def _code_of(test: Test) -> str:
    if len(test.code) > MAX_SOURCE:
        return ""
    try:
        return marshal.dumps(alone(compiled, test.code, f"<test {test.id}>")).hex()
    except (SyntaxError, ValueError, RecursionError):
        return ""  # the report on it says why


def _inside(cell: Cell, config: Mapping[str, object], limits: Limits) -> RunResult:
    return cell.run(
        Run(
            ("@visible",),
            stdin=json.dumps(config).encode(),
            wall_s=limits.run_s + GRACE_S,
            cpu_s=limits.cpu_s,
            output_bytes=limits.output_bytes,
        )
    )


def _ended(result: RunResult, report: str, limits: Limits) -> str:
    """The report, or what can be said where the runner could not make one."""
    if result.timed_out:
        note = f"The tests were stopped: one run of them may take {_seconds(limits.run_s)}."
    elif result.rc == 0:
        return report
    elif result.rc < 0:
        note = f"The run of the tests was killed by signal {-result.rc}; it may have used too much memory or processor time."
    else:
        note = f"The run of the tests ended early, with exit status {result.rc}."
        report += "\n" + text.decode(result.stderr)[-1000:]
    return f"{report}\n{note}".strip("\n")


# -- pytest ------------------------------------------------------------------------------------------------------


def _node_id(id: str) -> str:
    path, colons, rest = id.partition("::")
    return f"{clean_path(path)}{colons}{rest}"


def _run_suite(cell: Cell, task: Task, limits: Limits, ids: tuple[str, ...] = ()) -> str:
    """The visible test files, or the tests that are named, by pytest, in the player's cell and on the files as they are
    there."""
    config = {
        "kit": kit_packages(task),
        "tests": list(ids or (test.id for test in task.visible)),
        "what": "chosen" if ids else "visible",
        "roots": list(layout(task).roots),
        "plugins": list(task.plugins),
        "run_s": limits.run_s,
    }
    result = cell.run(
        Run(
            ("@visible_suite",),
            stdin=json.dumps(config).encode(),
            wall_s=limits.run_s + GRACE_S,
            cpu_s=limits.cpu_s,
            output_bytes=limits.output_bytes,
        )
    )
    return _ended(result, text.decode(result.stdout).rstrip("\n"), limits)


def split_prelude(prelude: str) -> tuple[str, frozenset[str]]:
    """(its import statements as Python, the names that the rest of it defines)."""
    imports, names = [], set()
    for node in parse_source(prelude).body if prelude else ():
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imports.append(ast.unparse(node))
            continue
        for inner in ast.walk(node):
            if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                names.add(inner.name)
            elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                names.add(inner.id)
            elif isinstance(inner, ast.alias):
                names.add((inner.asname or inner.name).split(".")[0])
    return "\n".join(imports), frozenset(names)


def _names_used(code: str) -> set[str]:
    """Names that a test uses; in a test file with many functions, those of its own function and of what is outside."""
    body = parse_source(code).body
    last = body[-1]
    called = ""
    if (
        isinstance(last, ast.Expr)
        and isinstance(last.value, ast.Call)
        and isinstance(last.value.func, ast.Name)
    ):
        called = last.value.func.id
    out: set[str] = set()
    for node in body:
        name = node.name if isinstance(node, ast.FunctionDef) else ""
        if name.startswith("test") and called.startswith("test") and name != called:
            continue  # another test of the same file
        out |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return out


# -- stdio -------------------------------------------------------------------------------------------------------


def _run_programs(cell: Cell, task: Task, limits: Limits) -> str:
    folders = _folders(cell, limits)
    left, passed, blocks = limits.run_s, 0, []
    for test in task.visible:
        if left <= 0:
            blocks.append(
                f"NOT RUN {text.name(test.id)}: the {_seconds(limits.run_s)} for one run of the tests are used up"
            )
            continue
        limit = min(test.time_s or limits.test_s, left)
        result = cell.run(
            Run(
                ("python", task.main, *test.args),
                stdin=test.stdin.encode(),
                wall_s=limit,
                cpu_s=limits.cpu_s,
                output_bytes=max(limits.output_bytes, 4 * len(test.stdout.encode())),
            )
        )
        left -= result.seconds
        ok, block = _program_report(test, result, limits, limit, folders)
        passed += ok
        blocks.append(block)
    blocks.append(f"{passed} of {text.plural(len(task.visible), 'visible test')} passed")
    return "\n".join(blocks)


def _program_report(
    test: Test, result: RunResult, limits: Limits, limit: float, folders: list[list[str]]
) -> tuple[bool, str]:
    name, reason = text.name(test.id), judge(test, result)
    if not reason:
        return True, f"PASSED {name}"
    lines = [f"FAILED {name}: {reason}"]
    if result.timed_out:
        own = test.time_s or limits.test_s
        run_s = f"one run of all tests may take {_seconds(limits.run_s)}"
        lines = [f"TIMED OUT {name}: {f'it took more than {_seconds(own)}' if limit >= own else run_s}"]
    if test.args:
        lines.append(f"  arguments: {' '.join(map(repr, test.args))}")
    lines += _shown("input", test.stdin) + _shown("expected output", test.stdout)
    lines += _shown("actual output", text.decode(result.stdout), always=True)
    lines += _shown("error output", neutral(text.decode(result.stderr), folders))
    return False, "\n".join(lines)


def _shown(label: str, content: str, always: bool = False) -> list[str]:
    if not content:
        return [f"  {label}: nothing"] if always else []
    body = text.cut_middle(content.removesuffix("\n"), MAX_SHOWN)
    return [f"  {label}:", *("    " + line for line in body.split("\n"))]


def _folders(cell: Cell, limits: Limits) -> list[list[str]]:
    """Where the workspace and the interpreter are, to keep those paths out of what is shown; [] if it won't say."""
    try:
        data = json.loads(_inside(cell, {"where": True}, limits).stdout)
        pairs = data["folders"]
    except (ValueError, KeyError, TypeError):
        return []
    return [
        p for p in pairs if isinstance(p, list) and len(p) == 2 and all(isinstance(x, str) and x for x in p)
    ]


def _seconds(value: float) -> str:
    return f"{value:g} second{'' if value == 1 else 's'}"
