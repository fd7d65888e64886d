"""Runs visible tests in the player's own cell, and says in plain text what failed and why.

Standard input is one JSON object: ``main`` (path of the module under test), ``entry`` (names to bind), ``imports``
(Python import statements for the tests), ``run_s`` (seconds for everything), ``tests``: a list of ``{"id", "code",
"time_s"}``, to which ``"compiled"`` adds its code as it was compiled already, in hexadecimal, for interpreters of the
bytecode number ``"magic"``. Standard output is the report; its last line counts what passed. ``{"where": true}`` prints
the folders of the workspace and of the interpreter, as JSON, and does nothing else.

Nothing here decides a reward, and nothing secret is here: the process belongs to the player, who can fool only
itself. What it promises is a report that helps. The solution is imported as a normal module; each test runs in a
process and a namespace of its own, so that a crash, an early exit or a hang costs that test only, and is named;
prints are shown and bounded; and the same files give the same text, in a fresh interpreter and in a warm fork alike:
no paths of the host, no addresses, no times.

Three processes: the *supervisor* never runs the player's code; the *loader* imports the solution; a *test* is forked
from the loader for each test. With ``"quick": true`` there is one only: it imports the solution and, if that keeps
nothing from one test to the next (see ``keeping``), runs the tests. Whatever then comes between (a crash, an exit, a
hang, a change that the next test would find) ends it without a report, and it is to be run again, not so quickly.
"""

# pathlib would cost each fresh interpreter some milliseconds:
# ruff: noqa: PTH100, PTH109, PTH118, PTH120
from __future__ import annotations

import ast
import fcntl
import importlib.util
import io
import json
import linecache
import marshal
import os
import re
import select
import signal
import sys
import time
from collections.abc import Callable
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import Any, NoReturn

from . import fork, loading

MAX_OUTPUT = 2000
MAX_VALUE = 400
MAX_FRAMES = 8
MAX_MESSAGE = 4 << 20
QUICK_S = 1.0
"""What an import or a test may take before it is run again in a process of its own, with the time that it really has."""
RECURSION = 1000
_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]{4,}")
_LEFT, _RIGHT, _VALUE = (
    "@left",
    "@right",
    "@value",
)  # no Python identifiers: no test can have a name of its own like it


def main(args: list[str]) -> None:
    """Read the configuration, run the tests, print the report. Takes no arguments."""
    config = json.loads(_read_all(0).decode())
    if config.get("where"):
        _write(1, (json.dumps({"folders": _folders()}) + "\n").encode())
        return
    if config.get("quick"):
        _quickly(config)
    _report(1, config, *_supervise(config))


def _report(fd: int, config: dict[str, Any], blocks: list[str], passed: int) -> None:
    total = len(config["tests"])
    blocks.append(f"{passed} of {total} visible {'test' if total == 1 else 'tests'} passed")
    _write(fd, ("\n".join(blocks) + "\n").encode("utf-8", "backslashreplace"))


def _read_all(fd: int) -> bytes:
    data = bytearray()
    while chunk := os.read(fd, 1 << 16):
        data += chunk
    return bytes(data)


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


# -- all in this process -----------------------------------------------------------------------------------------


def _quickly(config: dict[str, Any]) -> NoReturn:
    """Report on everything from here, or end without a word. An alarm's default action ends what hangs."""
    out = os.dup(1)
    printed = Sink()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    alarm(QUICK_S)
    _redirect(printed.fd)
    _report(out, config, *at_once(config, printed, out, alarm))
    os._exit(0)


def alarm(seconds: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, seconds)


def at_once(
    config: dict[str, Any], printed: Sink, out: int, alarm: Callable[[float], None]
) -> tuple[list[str], int]:
    """(blocks of the report, how many tests passed). ``alarm`` ends this process after so many seconds, 0: not."""
    deadline = time.monotonic() + config["run_s"]
    blocks: list[str] = []
    passed = 0
    before = next(reversed(sys.modules))
    module = _import(config["main"])
    bound, note = _bound(module, config)
    if imported := printed.take():
        blocks.append(f"While {config['main']} was imported, it printed:\n{imported}")
    blocks += [note] if note else []
    kept = _kept(before)
    for test in config["tests"]:
        left = deadline - time.monotonic()
        if kept is None:
            alarm(0)  # a fork is watched by this process
            message = _one(test, config, bound, left, out)
        else:
            alarm(max(0.001, min(QUICK_S, test["time_s"], left)))
            failure = _run_test(test, config["imports"], dict(bound))
            message = _told(test, failure, printed.take())
            if kept.changed():
                os._exit(1)
        blocks.append(message["text"])
        passed += message["passed"]
    return blocks, passed


class Sink:
    """A pipe that takes what is printed. It has room for more than a report shows; who fills it waits for the alarm."""

    def __init__(self) -> None:
        self._out, self.fd = os.pipe()
        os.set_blocking(self._out, False)
        try:
            fcntl.fcntl(self.fd, getattr(fcntl, "F_SETPIPE_SZ", 1031), 1 << 20)
        except OSError:
            pass  # it keeps the room that it has

    def close(self) -> None:
        os.close(self._out)
        os.close(self.fd)

    def take(self) -> str:
        """What was printed since the last time, as a report shows it."""
        data = bytearray()
        try:
            while part := os.read(self._out, 1 << 16):
                data += part
        except BlockingIOError:
            pass
        return _printed(data)


def _kept(before: str) -> Any:
    """The watch over the player's modules, which were imported after ``before``, or None: some of them may remember, or watching has not been loaded, which
    would take longer than it saves."""
    if f"{__package__}.keeping" not in sys.modules:
        return None
    from .keeping import own_modules, watch

    return watch(own_modules(before))


# -- the supervisor ----------------------------------------------------------------------------------------------


def _supervise(config: dict[str, Any]) -> tuple[list[str], int]:
    """(blocks of the report, how many tests passed)."""
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
            _load(config, deadline, results_w)
        finally:
            os._exit(0)
    os.close(results_w)
    os.close(output_w)
    results, output = bytearray(), bytearray()
    in_time = _collect({results_r: results, output_r: output}, results_r, b"", deadline + 1.0)
    status = _end(pid)
    _drain(output_r, output)
    os.close(results_r)
    os.close(output_r)
    messages = _messages(results)
    blocks = [m["text"] for m in messages]
    if printed := _printed(output):
        blocks.insert(0, f"While {config['main']} was imported, it printed:\n{printed}")
    done = [m for m in messages if "passed" in m]
    if len(done) < len(config["tests"]) and not any(m.get("failed") for m in messages):
        loaded = any(m.get("loaded") for m in messages)
        when = "while the tests ran" if loaded else "while it was imported"
        if in_time:
            blocks.append(f"{config['main']} ended the process {when} ({_how(status)}).")
        elif not loaded:
            blocks.append(
                f"TIMED OUT: importing {config['main']} took more than {_seconds(config['run_s'])}."
            )
    blocks += [f"NOT RUN {_one_line(test['id'])}" for test in config["tests"][len(done) :]]
    return [b for b in blocks if b], sum(m["passed"] for m in done)


def _messages(data: bytearray) -> list[dict[str, Any]]:
    out = []
    for line in bytes(data).split(b"\n"):
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(message, dict) and isinstance(message.get("text"), str):
            if "passed" in message:
                message["passed"] = message["passed"] is True
            out.append(message)
    return out


def _collect(sinks: dict[int, bytearray], until: int, mark: bytes, deadline: float) -> bool:
    """Read into the sinks until ``until`` is at its end (or ends with ``mark``); False if the deadline came first.

    A sink keeps at most MAX_MESSAGE bytes: the middle is dropped, for a test that prints without end.
    """
    waiting = dict(sinks)
    while until in waiting:
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        for fd in select.select(list(waiting), [], [], left)[0]:
            if not _take(fd, waiting[fd]) or (fd == until and mark and waiting[fd].endswith(mark)):
                del waiting[fd]
    return True


def _take(fd: int, sink: bytearray) -> bool:
    chunk = os.read(fd, 65536)
    sink += chunk
    if len(sink) > MAX_MESSAGE:
        del sink[MAX_MESSAGE // 4 : len(sink) - MAX_MESSAGE // 4]
    return bool(chunk)


def _drain(fd: int, sink: bytearray) -> None:
    """What is already in the pipe of a process that is gone; never waits for those that still hold its other end."""
    for _ in range(64):
        if not select.select([fd], [], [], 0)[0] or not _take(fd, sink):
            return


def _end(pid: int) -> int:
    """Kill what is left of the child and its process group; its wait status, or -1 if it had to be killed."""
    killed = False
    pause = 0.0001
    while pause < 0.4:  # it has closed its pipe and is about to exit, or it hangs
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        time.sleep(pause)
        pause *= 1.5
    else:
        killed = True
        os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        pass
    return -1 if killed else status


def _how(status: int) -> str:
    if status == -1:
        return "it closed its channel"
    if not os.WIFSIGNALED(status):
        return f"exit status {os.waitstatus_to_exitcode(status)}"
    number = os.WTERMSIG(status)
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    hint = {"SIGKILL": "; it may have used too much memory", "SIGXCPU": "; it used too much processor time"}
    return f"killed by {name}{hint.get(name, '')}"


def _seconds(value: float) -> str:
    return f"{value:g} second{'' if value == 1 else 's'}"


# -- the loader --------------------------------------------------------------------------------------------------


def _redirect(fd: int) -> None:
    """Both standard streams into one pipe, in the order in which they are written; nothing to read from."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__ = _ready or streams()  # type: ignore[misc]


_ready: tuple[io.TextIOWrapper, io.TextIOWrapper, io.TextIOWrapper] | None = None


def exercise() -> None:
    """Called once by a fork server: streams that its forks need not make."""
    global _ready
    _ready = streams()


def streams() -> tuple[io.TextIOWrapper, io.TextIOWrapper, io.TextIOWrapper]:
    """The three of this process. What is written goes out at once, or a test's process would print again what the
    import had printed."""
    out, err = (
        io.TextIOWrapper(io.FileIO(fd, "w", closefd=False), "utf-8", "backslashreplace", write_through=True)
        for fd in (1, 2)
    )
    return io.TextIOWrapper(io.BufferedReader(io.FileIO(0, "r", closefd=False)), "utf-8"), out, err


def _load(config: dict[str, Any], deadline: float, out: int) -> None:
    def send(**message: Any) -> None:
        _write(out, json.dumps(message).encode() + b"\n")

    try:
        module = _import(config["main"])
    except BaseException as error:  # SystemExit at import too
        send(text=_neutral(f"{config['main']} could not be imported:\n{_explain(error)}"), failed=True)
        return
    bound, note = _bound(module, config)
    send(text=note, loaded=True)
    for test in config["tests"]:
        left = deadline - time.monotonic()
        send(**_one(test, config, bound, left, out))


def _bound(module: ModuleType, config: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The names that tests find, and what is to be said of those that are missing."""
    bound = {name: getattr(module, name) for name in config["entry"] if hasattr(module, name)}
    missing = [name for name in config["entry"] if name not in bound]
    note = f"{config['main']} does not define {', '.join(missing)}, which the tests use." if missing else ""
    return bound, note


def _import(path: str) -> ModuleType:
    """The module at that path of the workspace, imported as a program beside it would."""
    workspace = os.getcwd()
    sys.dont_write_bytecode = True
    sys.path[:] = [workspace, *(p for p in sys.path if p not in ("", workspace))]
    sys.argv = [path]
    parts = path.removesuffix(".py").split("/")
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    if path.endswith(".py") and all(p.isidentifier() for p in parts):
        for n in range(
            1, len(parts) + 1
        ):  # a module of the same name that is already loaded is not the player's
            sys.modules.pop(".".join(parts[:n]), None)
        return loading.load(".".join(parts))
    spec = importlib.util.spec_from_file_location("solution", os.path.join(workspace, path))
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = sys.modules["solution"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _one(
    test: dict[str, Any], config: dict[str, Any], bound: dict[str, Any], left: float, out: int
) -> dict[str, Any]:
    """Run one test in a process of its own; the message for the supervisor."""
    name = _one_line(test["id"])
    limit = min(test["time_s"], left)
    if limit <= 0:
        used = _seconds(config["run_s"])
        return {"passed": False, "text": f"NOT RUN {name}: the {used} for one run of the tests are used up"}
    verdict_r, verdict_w = os.pipe()
    output_r, output_w = os.pipe()
    pid = fork.fork()
    if not pid:
        try:
            for fd in (verdict_r, output_r, out):
                os.close(fd)
            os.setpgid(0, 0)
            _redirect(output_w)
            failure = _run_test(test, config["imports"], bound)
            _write(verdict_w, json.dumps(failure).encode() + b"\n")
        finally:
            os._exit(0)
    os.close(verdict_w)
    os.close(output_w)
    verdict, output = bytearray(), bytearray()
    sinks = {verdict_r: verdict, output_r: output}
    in_time = _collect(sinks, verdict_r, b"\n", time.monotonic() + limit)
    if not in_time:
        os.kill(pid, signal.SIGKILL)
    status = _end(pid)
    _drain(output_r, output)
    os.close(verdict_r)
    os.close(output_r)
    printed = _printed(output)
    if in_time and verdict.endswith(b"\n"):
        return _told(test, json.loads(verdict), printed)
    if in_time:
        head = f"FAILED {name}\n  the process of the test ended before the test did ({_how(status)})"
    else:
        spent = f"one run of all tests may take {_seconds(config['run_s'])}" if left < test["time_s"] else ""
        head = f"TIMED OUT {name}: " + (spent or f"it took more than {_seconds(test['time_s'])}")
    text = f"{head}\n  printed:\n{printed}" if printed else head
    return {"passed": False, "text": _neutral(text)}


def _told(test: dict[str, Any], failure: str, printed: str) -> dict[str, Any]:
    """The message on a test that came to its end."""
    name = _one_line(test["id"])
    head = f"FAILED {name}\n{failure}" if failure else f"PASSED {name}"
    text = f"{head}\n  printed:\n{printed}" if printed else head
    return {"passed": not failure, "text": _neutral(text)}


# -- one test ----------------------------------------------------------------------------------------------------


def _run_test(test: dict[str, Any], imports: str, bound: dict[str, Any]) -> str:
    """Run it; "" or what went wrong."""
    filename = f"<test {test['id']}>"
    source = test["code"]
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"__name__": "visible_test", "__builtins__": __builtins__}
    sys.setrecursionlimit(RECURSION + _depth())  # the same depth for the player however deep this program is
    try:
        if imports:
            exec(compile(imports, "<imports>", "exec", dont_inherit=True), namespace)
        namespace.update(bound)
        exec(_compiled(test, filename), namespace)
    except BaseException as error:  # SystemExit and KeyboardInterrupt are failures of the test as well
        return _explain(error)
    return ""


def _compiled(test: dict[str, Any], filename: str) -> CodeType:
    """Its code, from what was compiled for this very interpreter, if it was."""
    ready = test.get("compiled")
    if ready and test["magic"] == importlib.util.MAGIC_NUMBER.hex():
        return marshal.loads(bytes.fromhex(ready))  # type: ignore[no-any-return]
    return compiled(test["code"], filename)


def compiled(source: str, filename: str) -> CodeType:
    """The code of a test, in which the sides of its assertions have names. Raises what ``compile`` raises."""
    tree = _Sides().visit(ast.parse(source, filename))
    return compile(ast.fix_missing_locations(tree), filename, "exec", dont_inherit=True)


def _depth() -> int:
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    return depth


class _Sides(ast.NodeTransformer):
    """Keeps the two sides of ``assert a == b`` (or the value of ``assert f(x)``) in names that a report can read.

    Each side is evaluated once, in the order in which Python would.
    """

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        test, before = node.test, []

        def keep(name: str, value: ast.expr) -> ast.expr:
            before.append(ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), node))
            return ast.copy_location(ast.Name(name, ast.Load()), value)

        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            test.left = keep(_LEFT, test.left)
            test.comparators = [keep(_RIGHT, test.comparators[0])]
        elif (
            isinstance(test, ast.UnaryOp)
            and isinstance(test.op, ast.Not)
            and isinstance(test.operand, ast.Call)
        ):
            test.operand = keep(_VALUE, test.operand)
        elif isinstance(test, ast.Call):
            node.test = keep(_VALUE, test)
        for statement in before:
            ast.fix_missing_locations(statement)
        return [*before, node]


def _explain(error: BaseException) -> str:
    """Where it happened, in the test and in the player's files, and what: never a frame of the host's own files."""
    frames = list(_frames(error.__traceback__))
    lines = []
    if len(frames) > MAX_FRAMES:
        frames[MAX_FRAMES // 2 : len(frames) - MAX_FRAMES // 2] = [(None, 0)]
    for frame, number in frames:
        if frame is None:
            lines.append("  [… more calls …]")
            continue
        filename = frame.f_code.co_filename
        source = linecache.getline(filename, number).strip()
        if not filename.startswith("<test "):
            where = os.path.relpath(filename, os.getcwd())
            lines.append(f"  {where}, line {number}, in {frame.f_code.co_name}")
        lines.append(f"    {_clip(source)}")
    sides = _sides_of(frames, error)
    if sides:
        lines += sides
    if not (isinstance(error, AssertionError) and sides and not error.args):
        lines += [f"  {line}" for line in _clip(_what(error), 1200).split("\n")]
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        lines.append(f"  (while handling {_clip(_what(cause))})")
    return "\n".join(lines)


def _frames(tb: TracebackType | None) -> list[tuple[FrameType | None, int]]:
    workspace = os.getcwd() + os.sep
    out: list[tuple[FrameType | None, int]] = []
    while tb is not None:
        filename = tb.tb_frame.f_code.co_filename
        if filename.startswith(("<test ", workspace)):
            out.append((tb.tb_frame, tb.tb_lineno))
        tb = tb.tb_next
    if len(out) > 1 and all(f is not None and f.f_code.co_filename.startswith("<test ") for f, _ in out[:2]):
        del out[0]  # the line that calls the test function says nothing
    return out


def _sides_of(frames: list[tuple[FrameType | None, int]], error: BaseException) -> list[str]:
    if not isinstance(error, AssertionError) or not frames:
        return []
    frame, number = frames[-1]
    if frame is None or not frame.f_code.co_filename.startswith("<test "):
        return []
    have = frame.f_locals
    source = linecache.getline(frame.f_code.co_filename, number)
    if "assert" not in source:
        return []
    if _LEFT in have and _RIGHT in have:
        left, right = have[_LEFT], have[_RIGHT]
        return [f"  left side:  {_repr(left)}", f"  right side: {_repr(right)}", *_difference(left, right)]
    return [f"  value: {_repr(have[_VALUE])}"] if _VALUE in have else []


def _difference(left: Any, right: Any) -> list[str]:
    """Where two long sequences of one kind differ first, for those that are cut in the report."""
    kinds = (str, bytes, list, tuple)
    if type(left) is not type(right) or type(left) not in kinds or max(len(left), len(right)) < 20:
        return []
    at = next((n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), None)
    if at is None:
        return [f"  lengths: {len(left)} and {len(right)}"]
    return [f"  first difference at index {at}: {_repr(left[at], 80)} and {_repr(right[at], 80)}"]


def _what(error: BaseException) -> str:
    kind = type(error).__name__
    try:
        if isinstance(error, SyntaxError) and error.lineno:
            where = os.path.relpath(error.filename or "?", os.getcwd()) if error.filename else "?"
            return f"{where}, line {error.lineno}\n  {(error.text or '').strip()}\n{kind}: {error.msg}"
        message = str(error)
    except BaseException as again:
        message = f"(its text can't be had: {type(again).__name__})"
    return f"{kind}: {message}" if message else kind


def _repr(value: Any, limit: int = MAX_VALUE) -> str:
    try:
        return _clip(repr(value), limit)
    except BaseException as error:
        return f"({type(value).__name__}, whose repr raised {type(error).__name__})"


# -- text --------------------------------------------------------------------------------------------------------


def _clip(text: str, limit: int = MAX_VALUE) -> str:
    if len(text) <= limit:
        return text
    return f"{text[: limit * 2 // 3]}[… {len(text) - limit} characters …]{text[len(text) - limit // 3 :]}"


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200]


def _printed(output: bytearray) -> str:
    """What was printed, indented and bounded; "" if nothing."""
    text = bytes(output).decode("utf-8", "backslashreplace").rstrip("\n")
    if len(text) > MAX_OUTPUT:
        half = MAX_OUTPUT // 2
        text = f"{text[:half]}\n[… more was printed …]\n{text[-half:]}"
    return _neutral("\n".join("    " + line for line in text.split("\n"))) if text else ""


def _folders() -> list[list[str]]:
    """(folder, what is shown in its place: "." for the workspace), the longest first."""
    pairs = {os.getcwd(): ".", os.path.realpath("."): "."}
    pairs.setdefault(os.path.dirname(os.path.abspath(os.__file__)), "<python>")
    for prefix in (sys.prefix, sys.base_prefix):
        if prefix not in ("/usr", "/usr/local"):  # other things live there too
            pairs.setdefault(prefix, "<python>")
    for variable, shown in (("HOME", "~"), ("TMPDIR", "/tmp")):
        pairs.setdefault(os.environ.get(variable, ""), shown)
    return sorted(([k, v] for k, v in pairs.items() if len(k) > 1), key=lambda p: (-len(p[0]), p[0]))


def _neutral(text: str) -> str:
    """Without addresses, and with workspace paths made relative."""
    return neutral(text, _folders())


def neutral(text: str, folders: list[list[str]]) -> str:
    """The text with each folder replaced, where it stands as a path; "./" is dropped before a name."""
    for folder, shown in folders:
        if folder in text:
            tail = r"(?:(/)(?=[^\s'\"/])|/?(?![\w.\-/]))" if shown == "." else r"(?![\w.\-])()"
            pattern = re.compile(rf"(?<![\w.\-/]){re.escape(folder)}{tail}")
            text = pattern.sub(lambda m, shown=shown: "" if m.group(1) else shown, text)  # type: ignore[misc]
    return _ADDRESS.sub("at 0x…", text)
