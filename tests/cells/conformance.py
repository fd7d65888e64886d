"""What every wall must do, as one list of checks against the ``Cell`` protocol.

A wall's test module runs them all: ``@pytest.mark.parametrize("check", CHECKS, ids=str)`` and ``check.on(wall)``.
A check opens its own cells through its ``Ground``, which closes them. Where a wall does not promise something, the
check says so (``unless``) and is skipped with that reason: an honest answer, not a failure.
"""

from __future__ import annotations

import contextlib
import gc
import os
import secrets
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tiltyard.cells import Cell, CellFileError, CellLimits, CellLost, Run, RunResult, Wall
from tiltyard.cells.inside import wire

LONG = 60.0
"""Seconds that nothing here takes, not even on a machine with much else to do."""


class Ground:
    """Where one check happens: a wall, and the cells that were opened on it."""

    def __init__(self, wall: Wall) -> None:
        self.wall = wall
        self.cells: list[Cell] = []

    def open(self, files: Mapping[str, bytes] | None = None, **limits: int | float) -> Cell:
        cell = self.wall.open(files or {}, CellLimits(**limits))  # type: ignore[arg-type]
        self.cells.append(cell)
        return cell

    def close(self) -> None:
        for cell in self.cells:
            cell.close()


@dataclass(frozen=True)
class Check:
    name: str
    act: Callable[[Ground], None]
    unless: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    def on(self, wall: Wall) -> None:
        if wall.name in self.unless:
            pytest.skip(f"the {wall.name} wall does not promise it: {self.unless[wall.name]}")
        ground = Ground(wall)
        try:
            self.act(ground)
        finally:
            ground.close()


CHECKS: list[Check] = []


def check(**unless: str) -> Callable[[Callable[[Ground], None]], Callable[[Ground], None]]:
    def add(act: Callable[[Ground], None]) -> Callable[[Ground], None]:
        CHECKS.append(Check(act.__name__, act, unless))
        return act

    return add


def py(cell: Cell, code: str, *args: str, **how: object) -> RunResult:
    """Run Python code in a cell; its time limit is far away unless told otherwise."""
    how.setdefault("wall_s", LONG)
    return cell.run(Run(("python", "-c", textwrap.dedent(code), *args), **how))  # type: ignore[arg-type]


def said(cell: Cell, code: str, *args: str, **how: object) -> str:
    """stdout of Python code that must end well."""
    result = py(cell, code, *args, **how)
    assert result.rc == 0, result
    return result.stdout.decode().strip()


def still_works(cell: Cell) -> None:
    cell.write("still.py", b"print('works')")
    assert cell.run(Run(("python", "still.py"), wall_s=LONG)).stdout == b"works\n"


def find(marker: str) -> list[int]:
    """Processes of this machine that have ``marker`` in their command line; cells' processes are seen from outside."""
    found = []
    for name in (p.name for p in Path("/proc").iterdir()):
        if name.isdigit():
            try:
                line = Path(f"/proc/{name}/cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in line and int(name) != os.getpid():
                found.append(int(name))
    return found


def none_left(marker: str, within_s: float = LONG) -> bool:
    end = time.monotonic() + within_s
    while find(marker):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def eventually(true: Callable[[], object], within_s: float = LONG) -> bool:
    end = time.monotonic() + within_s
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


needs_proc = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")
ALL = {"max_file_bytes": 1 << 30, "max_bytes": 1 << 30, "max_files": 1 << 20, "max_depth": 4000}


# ---------------------------------------------------------------------------------------------------- files


@check()
def files_given_at_the_start_are_there(g: Ground) -> None:
    cell = g.open({"solution.py": b"x = 1\n", "pkg/sub/data.bin": bytes(range(256))})
    assert cell.read("solution.py", max_bytes=100) == b"x = 1\n"
    assert cell.read("pkg/sub/data.bin", max_bytes=256) == bytes(range(256))
    assert said(cell, "print(open('pkg/sub/data.bin', 'rb').read() == bytes(range(256)))") == "True"


@check()
def what_is_written_is_read_back(g: Ground) -> None:
    cell = g.open()
    for data in (b"", b"text\n", b"\0\xff\r\n", os.urandom(100_000)):
        cell.write("a.bin", data)
        assert cell.read("a.bin", max_bytes=100_000) == data


@check()
def write_makes_folders_and_replaces_files(g: Ground) -> None:
    cell = g.open({"a/b/c.txt": b"old and longer"})
    cell.write("a/b/c.txt", b"new")
    cell.write("x/y/z.txt", b"deep")
    assert cell.read("a/b/c.txt", max_bytes=100) == b"new"
    assert cell.read("x/y/z.txt", max_bytes=100) == b"deep"
    assert [e.path for e in cell.list(max_entries=100).entries] == [
        "a",
        "a/b",
        "a/b/c.txt",
        "x",
        "x/y",
        "x/y/z.txt",
    ]


@check()
def write_keeps_a_scripts_mode(g: Ground) -> None:
    cell = g.open({"tool.sh": b"#!/bin/sh\necho one\n"})
    said(cell, "import os; os.chmod('tool.sh', 0o755)")
    cell.write("tool.sh", b"#!/bin/sh\necho two\n")
    assert cell.run(Run(("./tool.sh",), wall_s=LONG)).stdout == b"two\n"


@check()
def a_file_that_is_not_there_is_named(g: Ground) -> None:
    cell = g.open({"file.txt": b"x"})
    for path in ("missing.py", "no/such/folder.py"):
        with pytest.raises(CellFileError, match=path):
            cell.read(path, max_bytes=10)
    with pytest.raises(CellFileError, match=r"file.txt") as error:
        cell.read("file.txt/under", max_bytes=10)
    assert "/tmp" not in str(error.value)


@check()
def a_folder_is_no_file(g: Ground) -> None:
    cell = g.open({"pkg/core.py": b""})
    with pytest.raises(CellFileError, match="folder"):
        cell.read("pkg", max_bytes=10)
    with pytest.raises(CellFileError, match="folder"):
        cell.write("pkg", b"x")
    with pytest.raises(CellFileError, match=r"core.py"):
        cell.write("pkg/core.py/under.py", b"x")
    assert cell.read("pkg/core.py", max_bytes=10) == b""


@check()
def a_file_larger_than_asked_for_is_refused(g: Ground) -> None:
    cell = g.open({"big": b"x" * 1000})
    assert len(cell.read("big", max_bytes=1000)) == 1000
    with pytest.raises(CellFileError, match=r"1000.*999"):
        cell.read("big", max_bytes=999)


@check()
def a_file_larger_than_the_cap_is_not_written(g: Ground) -> None:
    cell = g.open(file_bytes=1000)
    cell.write("ok", b"x" * 1000)
    with pytest.raises(CellFileError, match="1000"):
        cell.write("big", b"x" * 1001)
    assert [e.path for e in cell.list(max_entries=10).entries] == ["ok"]


BAD_PATHS = (
    "",
    "/etc/passwd",
    "..",
    "../x",
    "a/../../x",
    "a//b",
    "./a",
    "a/.",
    "a/",
    "a\0b",
    "x" * 300,
    "a/" * 600 + "a",
)


@check()
def paths_that_lead_nowhere_are_refused(g: Ground) -> None:
    cell = g.open({"a/b": b"x"})
    for path in (*BAD_PATHS, "lone\udc80surrogate"):
        with pytest.raises(CellFileError):
            cell.read(path, max_bytes=10)
        with pytest.raises(CellFileError):
            cell.write(path, b"x")
    assert [e.path for e in cell.list(max_entries=10).entries] == ["a", "a/b"]


ODD_NAMES = (
    "with space.py",
    "-rf",
    "ünï😀.py",
    "日本語/ファイル.txt",
    "q'uo\"te",
    "dollar$(x)`y`",
    "back\\slash",
    "n" * 255,
    "#",
    "~",
    "*",
)


@check()
def odd_names_are_names(g: Ground) -> None:
    cell = g.open({name: name.encode() for name in ODD_NAMES})
    for name in ODD_NAMES:
        assert cell.read(name, max_bytes=1000) == name.encode()
    assert {e.path for e in cell.list(max_entries=100).entries} == {*ODD_NAMES, "日本語"}
    assert cell.capture(**ALL).files == {name: name.encode() for name in ODD_NAMES}


@check()
def a_big_file_goes_in_and_out(g: Ground) -> None:
    data = os.urandom(1 << 20) * 12
    cell = g.open()
    cell.write("big.bin", data)
    assert cell.read("big.bin", max_bytes=len(data)) == data
    assert cell.capture(**ALL).files == {"big.bin": data}


@check()
def a_listing_has_kinds_and_is_sorted(g: Ground) -> None:
    cell = g.open({"b.txt": b"12345", "a/z": b""})
    said(
        cell,
        """
        import os, socket
        os.symlink('/etc/passwd', 'link'); os.mkfifo('fifo'); os.mkdir('empty')
        socket.socket(socket.AF_UNIX).bind('sock')
        """,
    )
    assert [(e.path, e.kind, e.size) for e in cell.list(max_entries=100).entries] == [
        ("a", "folder", 0),
        ("a/z", "file", 0),
        ("b.txt", "file", 5),
        ("empty", "folder", 0),
        ("fifo", "fifo", 0),
        ("link", "link", 0),
        ("sock", "socket", 0),
    ]


@check()
def a_listing_is_cut_and_says_so(g: Ground) -> None:
    cell = g.open({f"f{n:02}": b"" for n in range(30)})
    listing = cell.list(max_entries=10)
    assert [e.path for e in listing.entries] == [f"f{n:02}" for n in range(10)]
    assert listing.left_out == 20
    assert cell.list(max_entries=30).left_out == 0
    assert g.open().list(max_entries=5).entries == ()


@check()
def a_capture_has_regular_files_only_and_names_the_rest(g: Ground) -> None:
    cell = g.open({"solution.py": b"code", "a/b.txt": b"text"})
    said(
        cell,
        """
        import os, socket
        os.symlink('solution.py', 'link'); os.mkfifo('fifo'); os.mkdir('empty')
        open('one', 'w').write('1'); os.link('one', 'two'); socket.socket(socket.AF_UNIX).bind('sock')
        """,
    )
    capture = cell.capture(**ALL)
    assert capture.files == {"solution.py": b"code", "a/b.txt": b"text"}
    assert {path for path, _ in capture.skipped} == {"link", "fifo", "one", "two", "sock"}
    assert all(reason for _, reason in capture.skipped)


@check()
def a_capture_keeps_its_caps(g: Ground) -> None:
    cell = g.open({"a": b"x" * 10, "b": b"x" * 20, "c": b"x" * 10, "d/e/f": b"deep"})
    caps = {"max_file_bytes": 1000, "max_bytes": 1000, "max_files": 100, "max_depth": 10}

    def captured(**changed: int) -> tuple[list[str], list[str]]:
        capture = cell.capture(**(caps | changed))
        return list(capture.files), [path for path, _ in capture.skipped]

    assert captured() == (["a", "b", "c", "d/e/f"], [])
    assert captured(max_file_bytes=10) == (["a", "c", "d/e/f"], ["b"])
    assert captured(max_files=2) == (["a", "b"], ["c", "d/e/f"])
    assert captured(max_bytes=20) == (["a", "c"], ["b", "d/e/f"])
    assert captured(max_depth=2) == (["a", "b", "c"], ["d/e"])


@check()
def a_capture_comes_after_the_death_of_all(g: Ground) -> None:
    cell = g.open()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        writer = cell.start("echo", [theirs.fileno()], wall_s=LONG)
        theirs.close()
        loop = "n=0; while true; do n=$((n+1)); echo $n > ticks; done"
        ask(ours, {"spawn": ["sh", "-c", loop]})
        assert eventually(lambda: "ticks" in [e.path for e in cell.list(max_entries=9).entries])
        cell.capture(**ALL)
        first = cell.capture(**ALL).files
        time.sleep(0.1)
        assert cell.capture(**ALL).files == first
        assert writer.poll() == -signal.SIGKILL


# ---------------------------------------------------------------------------------------------- how runs end


@check()
def exit_codes_are_kept(g: Ground) -> None:
    cell = g.open()
    for code in (0, 1, 3, 255):
        result = py(cell, f"raise SystemExit({code})")
        assert (result.rc, result.timed_out) == (code, False)
    result = py(cell, "import sys; sys.exit('a message')")
    assert (result.rc, result.stderr) == (1, b"a message\n")


@check()
def signals_are_told_from_exit_codes(g: Ground) -> None:
    cell = g.open()
    for number in (signal.SIGSEGV, signal.SIGTERM, signal.SIGKILL, signal.SIGABRT):
        result = cell.run(Run(("sh", "-c", f"kill -{int(number)} $$"), wall_s=LONG))
        assert (result.rc, result.timed_out) == (-number, False), number


@check()
def stdout_and_stderr_are_kept_apart(g: Ground) -> None:
    result = py(g.open(), "import sys; print('out'); print('err', file=sys.stderr); print('more')")
    assert (result.stdout, result.stderr) == (b"out\nmore\n", b"err\n")


@check()
def output_is_bytes(g: Ground) -> None:
    result = py(g.open(), r"import os; os.write(1, b'\xff\0\r\n\x1b[31m'); os.write(2, b'\xfe')")
    assert (result.stdout, result.stderr) == (b"\xff\0\r\n\x1b[31m", b"\xfe")


@check()
def output_is_cut_in_the_middle(g: Ground) -> None:
    cell = g.open()
    code = "import sys; [sys.stdout.write(f'{n:07}\\n') for n in range(20000)]; sys.stderr.write('e' * 1001)"
    whole = b"".join(b"%07d\n" % n for n in range(20000))
    result = py(cell, code, output_bytes=1001)
    assert result.stdout == whole[:501] + whole[-500:]
    assert result.stdout_dropped == len(whole) - 1001
    assert (result.stderr, result.stderr_dropped) == (b"e" * 1001, 0)


@check()
def a_flood_of_output_ends_with_the_time(g: Ground) -> None:
    cell = g.open()
    result = py(
        cell, "import os\nwhile True: os.write(1, b'x' * 65536); os.write(2, b'y' * 65536)", wall_s=0.5
    )
    assert result.timed_out and result.rc == -signal.SIGKILL
    assert len(result.stdout) == len(result.stderr) == 256 << 10
    assert result.stdout_dropped > 0
    still_works(cell)


@check()
def the_time_limit_kills_and_keeps_what_was_said(g: Ground) -> None:
    cell = g.open()
    result = py(cell, "import time; print('begun', flush=True); time.sleep(1000)", wall_s=1.0)
    assert (result.rc, result.timed_out, result.stdout) == (-signal.SIGKILL, True, b"begun\n")
    assert 1.0 <= result.seconds < LONG
    still_works(cell)


@check()
def ignoring_signals_does_not_help_against_the_time_limit(g: Ground) -> None:
    code = "import signal, time\nfor n in range(1, 65):\n  try: signal.signal(n, signal.SIG_IGN)\n  except (OSError, ValueError): pass\ntime.sleep(1000)"
    assert py(g.open(), code, wall_s=1.0).timed_out


@check()
def the_cpu_limit_kills(g: Ground) -> None:
    result = py(g.open(), "while True: pass", cpu_s=1.0)
    assert (result.rc, result.timed_out) == (-signal.SIGKILL, True)


@check()
def stdin_is_what_was_given(g: Ground) -> None:
    cell = g.open()
    data = os.urandom(3 << 20)
    code = "import sys, hashlib; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())"
    import hashlib

    assert said(cell, code, stdin=data) == hashlib.sha256(data).hexdigest()
    assert said(cell, "import sys; print(sys.stdin.read() == '')") == "True"
    assert said(cell, "print(input()); print(input())", stdin=b"one\ntwo\n") == "one\ntwo"


@check()
def stdin_that_nobody_reads_holds_nothing_up(g: Ground) -> None:
    cell = g.open()
    assert said(cell, "print('done')", stdin=b"x" * (8 << 20)) == "done"
    assert said(cell, "import os; os.close(0); print('done')", stdin=b"x" * (8 << 20)) == "done"


# ------------------------------------------------------------------------------------------- what a run finds


@check()
def the_environment_is_minimal(g: Ground) -> None:
    os.environ["TILTYARD_TEST_SECRET"] = "secret"
    try:
        env = dict(eval(said(g.open(), "import os; print(sorted(os.environ.items()))")))
    finally:
        del os.environ["TILTYARD_TEST_SECRET"]
    assert {"PATH", "HOME", "LANG", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE"} <= env.keys()
    assert env.keys() <= {
        "PATH",
        "HOME",
        "LANG",
        "PYTHONHASHSEED",
        "PYTHONDONTWRITEBYTECODE",
        "TMPDIR",
        "PWD",
        "LC_CTYPE",
    }
    assert (env["PYTHONHASHSEED"], env["PYTHONDONTWRITEBYTECODE"]) == ("0", "1")


@check()
def the_environment_can_be_added_to(g: Ground) -> None:
    cell = g.open()
    code = "import os; print(os.environ['MORE'], os.environ['LANG'], 'PATH' in os.environ)"
    assert said(cell, code, env={"MORE": "ünï", "LANG": "C"}) == "ünï C True"
    assert said(cell, "import os; print('MORE' in os.environ)") == "False"


@check()
def the_current_folder_is_the_workspace_and_looks_the_same_everywhere(g: Ground) -> None:
    one, two = g.open({"here.txt": b""}), g.open({"here.txt": b""})
    code = "import os; print(os.getcwd(), os.listdir(), os.path.abspath('x'))"
    assert said(one, code) == said(two, code) == "/workspace ['here.txt'] /workspace/x"
    assert one.run(Run(("pwd",), wall_s=LONG)).stdout == b"/workspace\n"


@check()
def no_path_of_the_machine_is_seen_in_a_traceback(g: Ground) -> None:
    result = g.open({"s.py": b"def f():\n    1/0\nf()\n"}).run(Run(("python", "s.py"), wall_s=LONG))
    expected = b"""Traceback (most recent call last):
  File "/workspace/s.py", line 3, in <module>
    f()
  File "/workspace/s.py", line 2, in f
    1/0
ZeroDivisionError: division by zero
"""
    assert [
        line for line in result.stderr.splitlines() if b"~" not in line and b"^" not in line
    ] == expected.splitlines()
    assert result.rc == 1


@check()
def a_script_runs_as_a_script(g: Ground) -> None:
    cell = g.open(
        {
            "pkg/main.py": b"import sys, sibling; print(__name__, __file__, sys.argv, sys.path[0], sibling.X)",
            "pkg/sibling.py": b"X = 7",
        }
    )
    result = cell.run(Run(("python", "pkg/main.py", "a", "b c"), wall_s=LONG))
    assert (
        result.stdout == b"__main__ /workspace/pkg/main.py ['pkg/main.py', 'a', 'b c'] /workspace/pkg 7\n"
    ), result


@check()
def a_module_and_a_program_on_stdin_can_be_run(g: Ground) -> None:
    cell = g.open({"pkg/__init__.py": b"", "pkg/mod.py": b"import sys; print(__name__, sys.argv[1:])"})
    assert cell.run(Run(("python", "-m", "pkg.mod", "x"), wall_s=LONG)).stdout == b"__main__ ['x']\n"
    assert cell.run(Run(("python", "-"), b"print('from stdin')", wall_s=LONG)).stdout == b"from stdin\n"


@check()
def a_script_that_is_not_there_or_no_python(g: Ground) -> None:
    cell = g.open({"bad.py": b"def f(:\n"})
    missing = cell.run(Run(("python", "none.py"), wall_s=LONG))
    assert missing.rc == 2 and b"none.py" in missing.stderr
    broken = cell.run(Run(("python", "bad.py"), wall_s=LONG))
    assert broken.rc == 1 and b"SyntaxError" in broken.stderr and b"/workspace/bad.py" in broken.stderr


@check()
def exit_and_quit_are_words(g: Ground) -> None:
    cell = g.open()
    assert py(cell, "print('x'); exit()").rc == 0
    assert py(cell, "quit(4)").rc == 4


@check()
def exit_handlers_and_threads_finish(g: Ground) -> None:
    code = """
    import atexit, threading, time
    atexit.register(print, 'handler')
    threading.Thread(target=lambda: (time.sleep(0.1), print('thread'))).start()
    print('main')
    """
    assert said(g.open(), code) == "main\nthread\nhandler"


@check()
def nothing_of_the_arena_is_imported_or_found(g: Ground) -> None:
    code = """
    import sys
    print([m for m in sys.modules if 'tiltyard' in m])
    try: import tiltyard; print('found')
    except ImportError: print('not found')
    """
    assert said(g.open(), code) == "[]\nnot found"


@check()
def no_trace_of_what_was_done_before_the_run(g: Ground) -> None:
    """A fork server has done much before: rehearsed runs and examinations, loaded modules from the arena's folders."""
    cell = g.open()
    code = """
    import linecache, os, signal, sys, threading, warnings
    print([p for p in sys.path_importer_cache if p.endswith('inside')], list(linecache.cache), threading.active_count())
    print([n for n in os.environ if n.startswith('LD_')], [m for m in sys.modules if 'rehears' in m or 'hidden' in m])
    print([f.__name__ for f in sys.meta_path], sys.argv, sys.dont_write_bytecode, signal.getitimer(signal.ITIMER_REAL))
    print(sorted(int(s) for s in signal.valid_signals() if callable(signal.getsignal(s))), len(warnings.filters))
    """
    fresh = "['BuiltinImporter', 'FrozenImporter', 'PathFinder'] ['-c'] True (0.0, 0.0)"
    assert said(cell, code) == f"[] [] 1\n[] []\n{fresh}\n[2] 5"


@check()
def hashes_are_the_same_in_every_run(g: Ground) -> None:
    code = "print(list({'a', 'b', 'c', 'd', 'e', 'f'}), hash('x'))"
    assert len({said(g.open(), code) for _ in range(3)}) == 1


@check()
def no_bytecode_is_written(g: Ground) -> None:
    cell = g.open({"a.py": b"import b", "b.py": b""})
    cell.run(Run(("python", "a.py"), wall_s=LONG))
    assert [e.path for e in cell.list(max_entries=9).entries] == ["a.py", "b.py"]


@check()
def what_can_not_be_run_is_the_players_mistake(g: Ground) -> None:
    cell = g.open({"plain.txt": b"x"})
    for argv in (
        (),
        ("no-such-command",),
        ("./missing",),
        ("./plain.txt",),
        ("@nosuch",),
        ("python", "-c"),
        ("a\0b",),
    ):
        with pytest.raises(CellFileError):
            cell.run(Run(argv, wall_s=LONG))
    with pytest.raises(CellFileError):
        cell.run(Run(("python", "-c", "pass"), env={"A": "b\0c"}, wall_s=LONG))
    with pytest.raises(CellFileError):
        cell.run(Run(("echo", "x" * (1 << 20)), wall_s=LONG))
    still_works(cell)


# -------------------------------------------------------------------------------------------- between runs


@check()
def files_stay_between_runs_and_tools(g: Ground) -> None:
    cell = g.open()
    said(cell, "open('made.txt', 'w').write('by a run')")
    assert cell.read("made.txt", max_bytes=100) == b"by a run"
    cell.write("made.txt", b"by a tool")
    assert said(cell, "print(open('made.txt').read())") == "by a tool"


@check()
def home_and_temporary_files_are_not_in_the_workspace(g: Ground) -> None:
    cell = g.open()
    code = "import tempfile, os; f = tempfile.NamedTemporaryFile(); f.write(b'x'); open(os.path.expanduser('~/x'), 'w'); print(1)"
    assert said(cell, code) == "1"
    assert cell.list(max_entries=10).entries == ()


@check()
def the_file_mask_does_not_stay(g: Ground) -> None:
    cell = g.open()
    code = "import os; print(oct(os.umask(0o777)))"
    assert said(cell, code) == said(cell, code) == "0o22"


ESCAPES = {
    "child": "subprocess.Popen(cmd)",
    "session": "subprocess.Popen(cmd, start_new_session=True)",
    "double fork": "os.fork() or (os.setsid(), os.fork() or os.execvp(cmd[0], cmd), os._exit(0))",
    "clean environment": "subprocess.Popen(['env', '-i', '/usr/bin/setsid', *cmd], cwd='/')",
    "ignoring": "subprocess.Popen(['sh', '-c', 'trap \"\" HUP TERM INT; ' + ' '.join(cmd)], start_new_session=True)",
}


@check()
def nothing_outlives_its_run(g: Ground) -> None:
    cell = g.open()
    marker = f"9{secrets.randbelow(10**9):09}"
    for name, escape in ESCAPES.items():
        code = f"import os, subprocess, time\ncmd = ['sleep', '{marker}']\n{escape}\ntime.sleep(0.2)\nprint('left')"
        assert said(cell, code) == "left", name
        assert not find(marker), name
    code = (
        f"import os, subprocess, time\ncmd = ['sleep', '{marker}']\n"
        + "\n".join(ESCAPES.values())
        + "\ntime.sleep(1000)"
    )
    assert py(cell, code, wall_s=2.0).timed_out
    assert not find(marker)


@check()
def a_descendant_that_holds_the_streams_does_not_hold_up_the_run(g: Ground) -> None:
    result = g.open().run(Run(("sh", "-c", "sleep 1000 & setsid sleep 1000 & echo done"), wall_s=LONG))
    assert (result.rc, result.stdout, result.timed_out) == (0, b"done\n", False)


@check()
def closed_streams_are_no_end(g: Ground) -> None:
    code = "import os, time; os.closerange(0, 3); time.sleep(0.3); open('end', 'w').write('reached')"
    cell = g.open()
    assert py(cell, code).rc == 0
    assert cell.read("end", max_bytes=100) == b"reached"


@check()
def nothing_is_used_up_by_many_runs(g: Ground) -> None:
    cell = g.open()
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(40):
        assert cell.run(Run(("true",), wall_s=LONG)).rc == 0
    assert len(list(Path("/dev/fd").iterdir())) <= before


# ------------------------------------------------------------------------------------------ many cells at once


@check()
def cells_are_apart(g: Ground) -> None:
    results: dict[int, str] = {}

    def play(n: int) -> None:
        cell = g.open({"n.txt": b"%d" % n})
        for _ in range(3):
            said(cell, "n = open('n.txt').read(); open('n.txt', 'w').write(n + n[0])")
        results[n] = cell.read("n.txt", max_bytes=100).decode()

    threads = [threading.Thread(target=play, args=(n,)) for n in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {n: str(n) * 4 for n in range(6)}


@check()
def a_closed_cell_says_so(g: Ground) -> None:
    cell = g.open({"x": b""})
    cell.close()
    cell.close()
    with pytest.raises(CellLost) as error:
        cell.read("x", max_bytes=1)
    assert error.value.during_run is False


@check()
def a_cell_can_be_closed_from_another_thread_during_a_run(g: Ground) -> None:
    cell = g.open()
    marker = f"8{secrets.randbelow(10**9):09}"
    failures: list[BaseException] = []

    def play() -> None:
        try:
            cell.run(Run(("sleep", marker), wall_s=1000))
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=play)
    thread.start()
    assert eventually(lambda: find(marker))
    cell.close()
    thread.join(LONG)
    assert not thread.is_alive() and isinstance(failures[0], CellLost)
    assert none_left(marker)


@check()
def a_cell_that_is_garbage_is_closed(g: Ground) -> None:
    cell = g.wall.open({}, CellLimits())
    ours, theirs = socket.socketpair()
    with ours, theirs:
        cell.start("echo", [theirs.fileno()], wall_s=1000)
        theirs.close()
        del cell
        gc.collect()
        assert ours.recv(1) == b""


@check()
def the_death_of_the_owner_leaves_nothing(g: Ground) -> None:
    marker = f"7{secrets.randbelow(10**9):09}"
    code = f"""
    import sys
    from tiltyard.cells import CellLimits, Run, make_wall
    cell = make_wall({g.wall.name!r}).open({{}}, CellLimits())
    print('open', flush=True)
    cell.run(Run(('sh', '-c', 'setsid sleep {marker} & (sleep {marker} &) ; sleep {marker}'), wall_s=1000))
    """
    owner = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE)
    try:
        assert eventually(lambda: len(find(f"sleep\0{marker}")) == 3)
    finally:
        owner.kill()
        owner.communicate()
    assert none_left(marker)


@check()
def a_forked_child_has_its_own_cells_and_leaves_ours_alone(g: Ground) -> None:
    cell = g.open({"x": b"ours"})
    pid = os.fork()
    if pid == 0:
        code = 1
        with contextlib.suppress(BaseException):
            try:
                cell.read("x", max_bytes=10)
            except Exception:
                cell.close()
                other = g.wall.open({"y": b"theirs"}, CellLimits())
                code = 0 if said(other, "print(open('y').read())") == "theirs" else 2
                other.close()
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert said(cell, "print(open('x').read())") == "ours"


@check()
def a_forked_childs_life_does_not_keep_a_cell(g: Ground) -> None:
    cell = g.open()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        cell.start("echo", [theirs.fileno()], wall_s=1000)
        theirs.close()
        pid = os.fork()
        if pid == 0:
            ours.close()
            time.sleep(1000)
            os._exit(0)
        try:
            cell.close()
            assert ours.recv(1) == b""
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


# ----------------------------------------------------------------------------------------- started programs


def ask(sock: socket.socket, request: dict[str, object], block: bytes = b"") -> dict[str, object]:
    deadline = time.monotonic() + LONG
    wire.send(sock, request, block, deadline=deadline)
    return wire.receive(sock, deadline=deadline, max_block=64 << 20)[0]


@contextlib.contextmanager
def echo(cell: Cell, **how: float) -> Iterator[tuple[object, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            program = cell.start("echo", [theirs.fileno()], **({"wall_s": LONG} | how))  # type: ignore[arg-type]
        yield program, ours


@check()
def a_program_has_its_descriptors_and_nothing_else(g: Ground) -> None:
    one, two = socket.socketpair()
    with one, two, open(os.devnull) as null:
        program = g.open().start("echo", [two.fileno(), null.fileno()], wall_s=LONG)
        two.close()
        told = ask(one, {"tell": True})
        assert told["fds"] == [3, 4] and told["open"] == [0, 1, 2, 3, 4]
        assert program.poll() is None
        program.kill()
        assert program.poll() == -signal.SIGKILL


@check()
def a_programs_exit_is_told(g: Ground) -> None:
    with echo(g.open()) as (program, sock):
        assert program.wait(0.05) is None  # type: ignore[attr-defined]
        wire.send(sock, {"exit": 5}, deadline=time.monotonic() + LONG)
        assert program.wait(LONG) == 5  # type: ignore[attr-defined]
        assert program.poll() == 5  # type: ignore[attr-defined]
        program.kill()  # type: ignore[attr-defined]
        assert program.poll() == 5  # type: ignore[attr-defined]


@check()
def a_program_ends_with_its_time(g: Ground) -> None:
    with echo(g.open(), wall_s=0.5) as (program, sock):
        sock.settimeout(LONG)
        assert sock.recv(1) == b""
        assert program.wait(LONG) == -signal.SIGKILL  # type: ignore[attr-defined]


@check()
def a_programs_children_die_with_it(g: Ground) -> None:
    cell = g.open()
    marker = f"6{secrets.randbelow(10**9):09}"
    for end in ("kill", "exit"):
        with echo(cell) as (program, sock):
            ask(sock, {"spawn": ["sh", "-c", f"setsid sleep {marker} & sleep {marker}"]})
            assert eventually(lambda: find(f"sleep\0{marker}"))
            if end == "kill":
                program.kill()  # type: ignore[attr-defined]
                assert not find(marker)
            else:
                wire.send(sock, {"exit": 0}, deadline=time.monotonic() + LONG)
                assert program.wait(LONG) == 0  # type: ignore[attr-defined]
                assert none_left(marker)


@check()
def a_programs_memory_can_be_set_apart(g: Ground) -> None:
    cell = g.open(memory_bytes=128 << 20)
    with echo(cell) as (_, sock):
        wire.send(sock, {"hold": 512 << 20}, deadline=time.monotonic() + LONG)
        with contextlib.suppress(wire.Closed):
            assert wire.receive(sock, deadline=time.monotonic() + LONG, max_block=0)[0]["held"] is False
    with echo(cell, memory_bytes=1 << 30) as (_, sock):
        assert ask(sock, {"hold": 512 << 20})["held"] is True


@check()
def files_and_runs_work_beside_a_program(g: Ground) -> None:
    cell = g.open()
    with echo(cell) as (program, sock):
        still_works(cell)
        assert ask(sock, {"echo": "here"})["echo"] == "here"
        assert program.poll() is None  # type: ignore[attr-defined]


@check()
def a_program_that_is_not_there_is_refused(g: Ground) -> None:
    cell = g.open()
    with pytest.raises(Exception, match="nosuch"):
        cell.start("nosuch", [], wall_s=1)
    still_works(cell)


# ------------------------------------------------------------------------------------------------- hostile


@check()
def a_fork_bomb_ends(g: Ground) -> None:
    cell = g.open(processes=40)
    marker = f"fork-bomb-{secrets.token_hex(4)}"
    code = """
    import os, time
    while True:
        try: os.fork()
        except OSError: time.sleep(0.01)
    """
    result = py(cell, code, marker, wall_s=3.0)
    assert result.rc != 0
    assert not find(marker)
    still_works(cell)


@check()
def a_fork_bomb_of_orphans_ends(g: Ground) -> None:
    cell = g.open(processes=40)
    marker = f"orphan-bomb-{secrets.token_hex(4)}"
    code = """
    import os, signal, time
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        try:
            if os.fork() == 0: os.setsid()
            elif os.fork() == 0: pass
            else: os._exit(0)
        except OSError: time.sleep(0.01)
    """
    py(cell, code, marker, wall_s=3.0)
    assert not find(marker)
    still_works(cell)


@check()
def a_bomb_of_threads_ends(g: Ground) -> None:
    cell = g.open(processes=40)
    code = """
    import threading, time
    while True:
        try: threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
        except RuntimeError: raise SystemExit(9)
    """
    assert py(cell, code, wall_s=20.0).rc != 0
    still_works(cell)


@check()
def threads_have_room_in_the_memory_limit(g: Ground) -> None:
    code = """
    import threading
    barrier = threading.Barrier(31)
    def work():
        x = [bytes(1000) for _ in range(1000)]
        barrier.wait()
    threads = [threading.Thread(target=work) for _ in range(30)]
    [t.start() for t in threads]; barrier.wait(); [t.join() for t in threads]
    print('fine')
    """
    assert said(g.open(), code) == "fine"


@check()
def a_memory_bomb_ends(g: Ground) -> None:
    cell = g.open(memory_bytes=200 << 20)
    assert py(cell, "x = []\nwhile True: x.append(bytearray(10 << 20))").rc != 0
    assert (
        said(cell, "try: x = bytearray(400 << 20); print('held')\nexcept MemoryError: print('refused')")
        == "refused"
    )
    still_works(cell)


@check()
def a_memory_bomb_of_many_processes_ends(g: Ground) -> None:
    cell = g.open(memory_bytes=200 << 20)
    code = """
    import os, time
    for _ in range(8):
        if os.fork() == 0: break
    x = []
    while True: x.append(os.urandom(1 << 20)); time.sleep(0.005) if len(x) < 100 else time.sleep(1000)
    """
    begin = time.monotonic()
    # the kernel may end some of them and leave one that sleeps: then the time limit ends it
    py(cell, code, wall_s=20.0)
    assert time.monotonic() - begin < 20.0 + LONG
    still_works(cell)


@check()
def open_files_are_limited(g: Ground) -> None:
    code = """
    import os
    n = 0
    try:
        while n < 5000: os.open('/dev/null', os.O_RDONLY); n += 1
    except OSError as e: print(e.errno, n < 64)
    """
    cell = g.open(open_files=64)
    assert said(cell, code) == "24 True"
    still_works(cell)


@check()
def the_size_of_a_file_is_limited(g: Ground) -> None:
    cell = g.open(file_bytes=1 << 20)
    code = "f = open('big', 'wb', buffering=0)\nwhile True: f.write(bytes(1 << 18))"
    assert py(cell, code).rc != 0
    assert cell.list(max_entries=5).entries[0].size <= 1 << 20
    assert py(cell, code, file_bytes=1 << 10).rc != 0
    assert cell.list(max_entries=5).entries[0].size <= 1 << 10
    still_works(cell)


@check()
def a_disk_bomb_ends(g: Ground) -> None:
    cell = g.open(disk_bytes=8 << 20)
    code = """
    import time
    for n in range(10**6):
        open(f'f{n}', 'wb').write(bytes(1 << 20)); time.sleep(0.02)
    """
    assert py(cell, code, wall_s=LONG).rc != 0
    said(cell, "import os; [os.remove(f) for f in os.listdir()]")
    still_works(cell)


@check()
def a_bomb_of_files_ends(g: Ground) -> None:
    cell = g.open(disk_files=200)
    code = """
    import time
    for n in range(10**6):
        open(f'f{n}', 'w').close(); time.sleep(0.001)
    """
    result = py(cell, code, wall_s=LONG)
    assert result.rc != 0 and not result.timed_out
    said(cell, "import os; [os.remove(f) for f in os.listdir()]")
    still_works(cell)


@check()
def tools_can_not_fill_the_disk(g: Ground) -> None:
    cell = g.open(disk_bytes=4 << 20, disk_files=100)
    with pytest.raises(CellFileError, match="space"):
        for n in range(10):
            cell.write(f"big{n}", bytes(1 << 20))
    said(cell, "import os; [os.remove(f) for f in os.listdir()]")
    with pytest.raises(CellFileError, match="space"):
        for n in range(1000):
            cell.write(f"small{n}", b"")
    said(cell, "import os; [os.remove(f) for f in os.listdir()]")
    still_works(cell)


@check()
def closing_every_descriptor_harms_nobody(g: Ground) -> None:
    cell = g.open()
    assert py(cell, "import os; os.closerange(0, 4096); os._exit(7)").rc == 7
    assert py(cell, "import os; os.closerange(0, 4096)").rc in (0, 1, 120)
    still_works(cell)


@check()
def a_run_that_stops_itself_ends_with_the_time(g: Ground) -> None:
    cell = g.open()
    assert py(cell, "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", wall_s=0.5).timed_out
    assert py(cell, "import os, signal; os.killpg(0, signal.SIGSTOP)", wall_s=0.5).timed_out
    still_works(cell)


@check()
def killing_the_group_and_the_parent_harms_only_the_cell(g: Ground) -> None:
    cell, other = g.open(), g.open()
    assert py(cell, "import os; os.killpg(0, 9)").rc == -signal.SIGKILL
    try:
        py(
            cell,
            "import os; p = os.getppid(); os.kill(p, 9) if p > 0 else None; import time; time.sleep(0.2)",
        )
    except CellLost as lost:
        assert lost.during_run
    still_works(other)


@check(process="same user: code can signal what its user can")
def killing_all_processes_harms_only_the_cell(g: Ground) -> None:
    cell, other = g.open(), g.open()
    code = """
    import os
    if len([n for n in os.listdir('/proc') if n.isdigit()]) > 8: raise SystemExit('too many processes in sight')
    if os.fork() == 0:
        while True: pass
    os.kill(-1, 9)
    """
    try:
        assert py(cell, code).rc in (0, -signal.SIGKILL)
    except CellLost as lost:
        assert lost.during_run
    still_works(other)


@check()
def a_fifo_in_the_way_blocks_nothing(g: Ground) -> None:
    cell = g.open()
    said(cell, "import os; os.mkfifo('solution.py'); os.mkfifo('other')")
    with pytest.raises(CellFileError, match="fifo"):
        cell.read("solution.py", max_bytes=10)
    assert [e.kind for e in cell.list(max_entries=9).entries] == ["fifo", "fifo"]
    cell.write("solution.py", b"replaced")
    capture = cell.capture(**ALL)
    assert capture.files == {"solution.py": b"replaced"} and capture.skipped == (("other", "fifo"),)


@check()
def links_are_never_followed(g: Ground) -> None:
    cell = g.open({"real/file": b"real"})
    code = """
    import os
    os.symlink('/etc/passwd', 'passwd'); os.symlink('/etc', 'etc'); os.symlink('real', 'inner')
    os.symlink('loop', 'loop'); os.symlink('/nowhere', 'dangling'); os.symlink('real/file', 'tofile')
    """
    said(cell, code)
    for path in ("passwd", "etc/passwd", "inner/file", "loop", "dangling", "tofile", "etc/x/y"):
        with pytest.raises(CellFileError):
            cell.read(path, max_bytes=1 << 20)
    for path in ("etc/tiltyard", "inner/new", "loop/x"):
        with pytest.raises(CellFileError):
            cell.write(path, b"x")
    cell.write("tofile", b"now a file")
    assert cell.read("real/file", max_bytes=10) == b"real"
    assert cell.read("tofile", max_bytes=10) == b"now a file"
    capture = cell.capture(**ALL)
    assert set(capture.files) == {"real/file", "tofile"}
    assert {p for p, _ in capture.skipped} == {"passwd", "etc", "inner", "loop", "dangling"}


@check()
def hard_links_are_not_written_through(g: Ground) -> None:
    cell = g.open({"one": b"1"})
    said(cell, "import os; os.link('one', 'two')")
    assert cell.read("two", max_bytes=9) == b"1"
    cell.write("two", b"2")
    assert (cell.read("one", max_bytes=9), cell.read("two", max_bytes=9)) == (b"1", b"2")
    assert set(cell.capture(**ALL).files) == {"one", "two"}


@check()
def names_that_are_no_text_are_escaped(g: Ground) -> None:
    cell = g.open({"ok": b""})
    code = r"""
    for name in (b'new\nline', b'bad\xff\xfe', b'esc\x1b[31m', b'tab\t', b'rtl\xe2\x80\xae'):
        open(name, 'w').write('x')
    """
    said(cell, code)
    listed = [e.path for e in cell.list(max_entries=50).entries]
    assert listed == sorted([r"bad\xff\xfe", r"esc\x1b[31m", r"new\x0aline", "ok", r"rtl\u202e", r"tab\x09"])
    capture = cell.capture(**ALL)
    assert "ok" in capture.files
    assert {r"bad\xff\xfe", r"esc\x1b[31m", r"new\x0aline", r"tab\x09"} == {p for p, _ in capture.skipped}
    assert said(cell, "import os; print(len(os.listdir()))") == "6"


@check()
def many_files_are_no_trouble(g: Ground) -> None:
    cell = g.open()
    said(
        cell,
        "import os\nfor d in range(20):\n  os.mkdir(f'd{d:02}')\n  for n in range(100): open(f'd{d:02}/f{n:03}', 'w').close()",
    )
    listing = cell.list(max_entries=100)
    assert listing.entries[0].path == "d00" and listing.entries[99].path == "d00/f098"
    assert listing.left_out == 20 * 101 - 100
    capture = cell.capture(max_file_bytes=10, max_bytes=10, max_files=50, max_depth=5)
    assert list(capture.files) == [f"d00/f{n:03}" for n in range(50)]
    assert 0 < len(capture.skipped) < 5000


DEEP = """
import os
for n in range({}):
    os.mkdir('d'); os.chdir('d')
open('bottom', 'w').write('x')
"""


@check()
def deep_trees_are_no_trouble(g: Ground) -> None:
    cell = g.open()
    said(cell, DEEP.format(950))
    listing = cell.list(max_entries=2000)
    assert (
        listing.left_out == 0
        and listing.entries[-1].path.endswith("d/d/bottom")
        and len(listing.entries) == 951
    )
    capture = cell.capture(max_file_bytes=10, max_bytes=10, max_files=10, max_depth=30)
    assert capture.files == {} and len(capture.skipped) == 1
    deeper = g.open()
    said(deeper, DEEP.format(2100))
    assert deeper.list(max_entries=10).left_out == -1
    deeper.capture(**ALL)


@check()
def long_paths_are_no_trouble(g: Ground) -> None:
    cell = g.open({"ok": b"1"})
    said(
        cell,
        "import os\nfor n in range(30):\n  os.mkdir('n' * 250); os.chdir('n' * 250)\n  open('file', 'w').write('x')",
    )
    assert cell.list(max_entries=1000).left_out == -1
    capture = cell.capture(**ALL)
    assert "ok" in capture.files and all(len(path) <= 1024 for path in capture.files)
    assert capture.skipped


@check()
def modes_shut_nobody_out(g: Ground) -> None:
    cell = g.open({"file": b"1", "folder/inner": b"2", "ro/x": b"3"})
    said(
        cell,
        "import os; os.chmod('file', 0); os.chmod('folder/inner', 0); os.chmod('folder', 0); os.chmod('ro', 0o555)",
    )
    assert cell.read("folder/inner", max_bytes=9) == b"2"
    said(cell, "import os; os.chmod('folder/inner', 0); os.chmod('folder', 0)")
    assert [e.path for e in cell.list(max_entries=9).entries] == [
        "file",
        "folder",
        "folder/inner",
        "ro",
        "ro/x",
    ]
    assert cell.read("file", max_bytes=9) == b"1"
    cell.write("ro/new", b"4")
    said(
        cell,
        "import os; os.chmod('file', 0); os.chmod('folder/inner', 0); os.chmod('folder', 0); os.chmod('ro', 0)",
    )
    assert cell.capture(**ALL).files == {"file": b"1", "folder/inner": b"2", "ro/x": b"3", "ro/new": b"4"}
    said(cell, "import os; os.chmod('.', 0)")
    assert len(cell.list(max_entries=9).entries) == 6


@check()
def modes_stay_as_a_run_sets_them(g: Ground) -> None:
    """Who watches the disk meanwhile may look into what is shut, and leaves it shut."""
    cell = g.open()
    code = """
    import os, time
    os.makedirs("shut/inner/deep"); open("shut/inner/file", "w").close()
    for path in ("shut/inner", "shut"): os.chmod(path, 0o100)
    time.sleep(1.2)
    modes = [oct(os.stat(path).st_mode & 0o777) for path in ("shut", "shut/inner")]
    os.chmod("shut", 0)
    time.sleep(0.6)
    print(*modes, oct(os.stat("shut").st_mode & 0o777))
    """
    assert said(cell, code) == "0o100 0o100 0o0"
    assert said(cell, "import os; print(oct(os.stat('shut').st_mode & 0o777))") == "0o0"


@check()
def a_shut_workspace_stops_no_run(g: Ground) -> None:
    for mode in ("0", "0o400", "0o077"):
        cell = g.open()
        said(cell, f"import os; os.chmod('.', {mode})")
        assert cell.run(Run(("python", "-c", "print(42)"), wall_s=LONG)).stdout == b"42\n"


@check()
def sparse_giants_are_left_out(g: Ground) -> None:
    cell = g.open()
    result = py(cell, "open('giant', 'wb').truncate(1 << 38)", file_bytes=1 << 40)
    if result.rc != 0:
        return  # refused, which is as good
    with pytest.raises(CellFileError, match="big"):
        cell.read("giant", max_bytes=1 << 20)
    assert [
        p
        for p, _ in cell.capture(max_file_bytes=1 << 20, max_bytes=1 << 20, max_files=9, max_depth=9).skipped
    ] == ["giant"]


@check()
def a_workspace_that_was_emptied_or_removed_is_no_end(g: Ground) -> None:
    cell = g.open({"a/b": b"x"})
    py(cell, "import shutil, os; shutil.rmtree(os.getcwd(), ignore_errors=True)")
    assert cell.list(max_entries=9).entries == ()
    still_works(cell)
