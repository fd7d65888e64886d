"""The namespace wall: the conformance list, and what is this wall's own: hostile code, and violent ends."""

from __future__ import annotations

import errno
import json
import os
import platform
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conformance import LONG, Check, eventually, py, said, still_works
from conformance_hostile import CHECKS
from test_lock import table

import tiltyard
from tiltyard.cells import Cell, CellLimits, CellLost, ProcessWall, Run, RunResult, namespace
from tiltyard.cells.inside import cgroup
from tiltyard.cells.namespace import NamespaceWall, probe

pytestmark = pytest.mark.skipif(probe() is not None, reason=f"no namespace wall here: {probe()}")

CALL = """
import ctypes, errno, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    ctypes.set_errno(0)
    return libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) for a in args]), ctypes.get_errno()
def attempt(act):
    try:
        act()
    except OSError as error:
        return error.errno
    return 0
"""


@pytest.fixture(scope="module")
def wall() -> Iterator[NamespaceWall]:
    wall = NamespaceWall()
    yield wall
    wall.close()


@pytest.fixture
def cell(wall: NamespaceWall) -> Iterator[Cell]:
    with wall.open({}, CellLimits()) as cell:
        yield cell


def answer(cell: Cell, code: str, **how: Any) -> Any:
    """What code prints as JSON; it must end well."""
    return json.loads(said(cell, CALL + textwrap.dedent(code), **how))


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_conformance(wall: NamespaceWall, check: Check) -> None:
    check.on(wall)


# ------------------------------------------------------------------------------------------------ what can be seen


def test_nothing_of_the_machine_is_found(cell: Cell, tmp_path: Path) -> None:
    marker = f"canary-{secrets.token_hex(8)}"
    (tmp_path / marker).write_text("secret")
    got = answer(
        cell,
        f"""
        found, seen = [], 0
        for top, folders, files in os.walk('/'):
            folders[:] = [f for f in folders if (top, f) != ('/', 'proc')]
            seen += len(files)
            found += [f'{{top}}/{{n}}' for n in files + folders if {marker!r} in n or n.startswith('tiltyard')]
        print(json.dumps([found, seen > 500, [p for p in {[str(tmp_path), str(Path(tiltyard.__file__).parent)]!r}
                          if os.path.exists(p)]]))
        """,
    )
    assert got == [[], True, []]


def test_the_root_has_what_an_interpreter_needs_and_no_more(cell: Cell) -> None:
    top = set(answer(cell, "print(json.dumps(os.listdir('/')))"))
    interpreter = "/" + os.path.realpath(sys.executable).split("/")[1]
    known = {
        "stash",
        "bin",
        "sbin",
        "lib",
        "lib32",
        "lib64",
        "usr",
        "etc",
        "dev",
        "proc",
        "tmp",
        "home",
        "workspace",
    }
    assert top <= known | {"cell", "empty", interpreter.strip("/")}
    assert answer(
        cell, "print(json.dumps([os.listdir('/cell'), os.listdir('/empty'), os.listdir('/home')]))"
    ) == [[], [], []]
    gone = answer(
        cell,
        "print(json.dumps([p for p in ('/var', '/sys', '/run', '/opt', '/boot', '/mnt') if os.path.exists(p)]))",
    )
    assert [p for p in gone if p != interpreter] == []
    assert set(answer(cell, "print(json.dumps(os.listdir('/etc')))")) <= {
        *("passwd", "group", "hosts", "nsswitch.conf", "ld.so.cache", "alternatives"),
    }
    devices = answer(cell, "print(json.dumps(os.listdir('/dev')))")
    assert set(devices) == {
        "null",
        "zero",
        "full",
        "random",
        "urandom",
        "fd",
        "stdin",
        "stdout",
        "stderr",
        "shm",
    }


def test_no_installed_package_is_seen(cell: Cell) -> None:
    got = answer(
        cell,
        """
        import glob
        found = [p for f in {'/usr', '/usr/local', sys.base_prefix} for n in ('site', 'dist')
                 for p in glob.glob(f'{f}/lib*/python*/{n}-packages/*')]
        print(json.dumps([found, [m for m in ('tiltyard', 'pytest', 'pip') if __import__('importlib.util').util.find_spec(m)]]))
        """,
    )
    assert got == [[], []]


def test_another_interpreter_brings_its_packages_but_not_the_arena() -> None:
    found = subprocess.run([sys.executable, "-c", "import pytest"], env={}, capture_output=True, check=False)
    if found.returncode != 0:
        pytest.skip("pytest is not one of this interpreter's own packages")
    wall = NamespaceWall(python=sys.executable)
    try:
        with wall.open({}, CellLimits()) as cell:
            assert said(cell, "import pytest; print(pytest.__version__)") == pytest.__version__
            assert py(cell, "import tiltyard.task").rc == 1
            code = "import os, sys; print([p for p in sys.path if os.path.exists(f'{p}/tiltyard/task.py')])"
            assert said(cell, code) == "[]"
    finally:
        wall.close()


def test_an_interpreter_may_live_where_cells_have_their_own_folders(tmp_path: Path) -> None:
    home = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True, timeout=120)
    (site,) = home.glob("lib/python*/site-packages")
    (site / "own_package.py").write_text("WORD = 'found'")
    outside = tmp_path / "outside"
    outside.write_text("secret")
    if not str(home).startswith("/tmp/"):
        pytest.skip("the temporary folder is not below one that cells have for themselves")
    wall = NamespaceWall(python=str(home / "bin/python"))
    try:
        with wall.open({}, CellLimits(disk_files=20)) as cell:
            assert said(cell, "import own_package; print(own_package.WORD)") == "found"
            code = f"""
            import os, subprocess, sys
            again = [sys.executable, '-c', 'import own_package, sys; print(own_package.WORD, sys.prefix)']
            print(subprocess.run(again, capture_output=True, text=True).stdout.strip(), os.path.exists({str(outside)!r}))
            open('/tmp/mine', 'w').close()
            try: open({str(site / "new")!r}, 'w')
            except OSError: print('read-only')
            """
            assert said(cell, code) == f"found {home} False\nread-only"
    finally:
        wall.close()
    assert not (site / "new").exists()


def test_a_module_can_be_preloaded() -> None:
    wall = NamespaceWall(preload=("sqlite3", "asyncio"))
    try:
        with wall.open({}, CellLimits()) as cell:
            assert (
                said(cell, "import sys; print('sqlite3' in sys.modules and 'asyncio' in sys.modules)")
                == "True"
            )
    finally:
        wall.close()
    with pytest.raises(Exception, match="nosuchmodule"):
        NamespaceWall(preload=("nosuchmodule",)).open({}, CellLimits())


def test_everything_but_the_cells_own_folders_is_read_only(cell: Cell) -> None:
    got = answer(
        cell,
        """
        places = ['/', '/usr/bin', '/usr/lib', '/etc', '/dev', '/cell', '/empty', '/proc', sys.base_prefix + '/lib']
        print(json.dumps([
            [attempt(lambda: open(f'{p}/new', 'w')) for p in places],
            [attempt(lambda: os.remove(p)) for p in ('/etc/passwd', '/bin/sh', '/dev/null', os.__file__)],
            [attempt(lambda: open(p, 'r+')) for p in ('/etc/passwd', os.__file__, os.path.realpath('/bin/sh'))],
            [attempt(lambda: os.rmdir(p)) for p in ('/workspace', '/tmp', '/home')],
            [attempt(lambda: open(f'{p}/new', 'w')) for p in ('/workspace', '/tmp', '/home', '/dev/shm')],
            [attempt(lambda: os.mknod('node', 0o600 | 0o060000, os.makedev(254, 0)))],
        ]))
        """,
    )
    refused = {errno.EROFS, errno.EACCES, errno.EPERM, errno.EBUSY, errno.ENOENT}
    for errors in (*got[:4], got[5]):
        assert set(errors) <= refused, got
    assert got[4] == [0, 0, 0, 0]


def test_no_mount_gives_rights_or_devices(cell: Cell) -> None:
    mounts = answer(cell, "print(json.dumps(open('/proc/self/mountinfo').read()))")
    for line in mounts.splitlines():
        options = line.split(" - ")[0].split()
        assert "nosuid" in options[5], line
        if options[4] not in ("/", "/cell") and not options[4].startswith("/dev/"):
            assert "nodev" in options[5], line
    assert (
        said(
            cell,
            "import subprocess; print(subprocess.run(['id', '-u'], capture_output=True, text=True).stdout)",
        )
        == "1000"
    )
    su = next((p for p in ("/usr/bin/su", "/usr/bin/mount", "/usr/bin/passwd") if Path(p).exists()), None)
    if su is not None:  # a set-user-id program is a plain one
        code = f"""
        import subprocess
        p = subprocess.Popen([{su!r}], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lines = open(f'/proc/{{p.pid}}/status').read() if p.poll() is None else 'Uid:\\t1000\\t1000\\t1000\\t1000'
        p.kill()
        print(json.dumps([l for l in lines.splitlines() if l.startswith('Uid')]))
        """
        assert answer(cell, code) == ["Uid:\t1000\t1000\t1000\t1000"]


def test_a_run_has_no_rights_at_all(cell: Cell) -> None:
    got = answer(
        cell,
        """
        status = dict(line.rstrip('\\n').split(':\\t', 1) for line in open('/proc/self/status') if ':\\t' in line)
        print(json.dumps([status[k] for k in ('CapPrm', 'CapEff', 'CapInh', 'CapAmb', 'NoNewPrivs', 'Seccomp')]))
        """,
    )
    assert got == ["0" * 16] * 4 + ["1", "2"]
    got = answer(cell, "print(json.dumps([os.getresuid(), os.getresgid(), attempt(lambda: os.setuid(0))]))")
    assert got[:2] == [[1000] * 3, [1000] * 3] and got[2] in (
        errno.EPERM,
        errno.EINVAL,
    )  # EINVAL: there is no such id


# ------------------------------------------------------------------------------------------------ calls


def test_calls_that_reach_out_are_refused(cell: Cell) -> None:
    numbers = table(platform.machine(), "refused")
    got = answer(
        cell, f"print(json.dumps({{n: call(k, -1, -1, -1, -1, -1, -1) for n, k in {numbers!r}.items()}}))"
    )
    assert got == {name: [-1, errno.EPERM] for name in numbers}


def test_no_namespace_can_be_nested(cell: Cell) -> None:
    clone = table(platform.machine(), "checked")["clone"]
    code = f"print(json.dumps([call({clone}, f | 17, 0, 0, 0, 0) for f in (1 << 17, 1 << 25, 1 << 28, 1 << 29, 1 << 30)]))"
    assert answer(cell, code) == [[-1, errno.EPERM]] * 5
    result = cell.run(Run(("unshare", "--user", "true"), wall_s=LONG))
    assert result.rc != 0


def test_no_network_and_no_other_family(cell: Cell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        got = answer(
            cell,
            f"""
            import socket
            families = [2, 10, 16, 17, 38, 40, 15]
            print(json.dumps([
                [attempt(lambda: socket.socket(f, socket.SOCK_STREAM)) for f in families],
                [attempt(lambda: socket.socket(f, socket.SOCK_RAW)) for f in families],
                attempt(lambda: socket.create_connection(('127.0.0.1', {port}), timeout=2)),
            ]))
            """,
        )
    assert set(got[0] + got[1] + [got[2]]) == {errno.EAFNOSUPPORT}


def test_abstract_sockets_end_at_the_cell(wall: NamespaceWall, cell: Cell) -> None:
    """They belong to network namespaces: neither the machine's nor another cell's can be reached."""
    name = f"\0tiltyard-test-{secrets.token_hex(8)}"
    connect = f"""
    import socket
    print(json.dumps(attempt(lambda: socket.socket(socket.AF_UNIX).connect({name!r}))))
    """
    refused = (errno.ECONNREFUSED, errno.EPERM)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        assert answer(cell, connect) in refused
    listen = f"""
    import socket, time
    s = socket.socket(socket.AF_UNIX); s.bind({name!r}); s.listen(); open('up', 'w').close(); time.sleep(100)
    """
    with wall.open({}, CellLimits()) as other:
        thread = threading.Thread(target=lambda: py(other, listen, wall_s=3.0))
        thread.start()
        try:
            time.sleep(0.5)
            assert answer(cell, connect) in refused
        finally:
            thread.join()
        assert other.read("up", max_bytes=1) == b""  # it did listen


def test_unix_sockets_and_locks_work_within_a_cell(cell: Cell) -> None:
    code = """
    import multiprocessing, socket, threading
    def child(lock, value):
        with lock: value.value += 1
    if __name__ == '__main__':
        a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'
        s = socket.socket(socket.AF_UNIX); s.bind('/tmp/s'); s.listen()
        c = socket.socket(socket.AF_UNIX); c.connect('/tmp/s')
        lock, value = multiprocessing.Lock(), multiprocessing.Value('i', 0)
        ps = [multiprocessing.Process(target=child, args=(lock, value)) for _ in range(4)]
        [p.start() for p in ps]; [p.join() for p in ps]
        print(value.value)
    """
    cell.write("many.py", textwrap.dedent(code).encode())
    result = cell.run(Run(("python", "many.py"), wall_s=LONG))
    assert (result.rc, result.stdout) == (0, b"4\n"), result


def test_the_keeper_can_not_be_touched(cell: Cell) -> None:
    got = answer(
        cell,
        """
        import resource
        kills = [attempt(lambda: os.kill(1, s)) for s in (9, 19, 11, 2, 15, 20, 6)]
        print(json.dumps([
            attempt(lambda: resource.prlimit(1, resource.RLIMIT_CPU, (1, 1))),
            attempt(lambda: os.sched_setaffinity(1, {0})),
            attempt(lambda: os.setpriority(os.PRIO_PROCESS, 1, 19)),
            [attempt(lambda: open(f'/proc/1/{n}', m)) for n, m in
             (('mem', 'rb'), ('mem', 'r+b'), ('environ', 'rb'), ('maps', 'rb'), ('oom_score_adj', 'w'), ('stat', 'rb'))],
            attempt(lambda: os.listdir('/proc/1/fd')),
            os.getppid(),
        ]))
        """,
    )
    assert got[:3] == [errno.EPERM] * 3
    assert set(got[3] + [got[4]]) <= {errno.ENOENT, errno.EACCES, errno.EPERM}
    still_works(cell)


def test_proc_shows_the_cell_and_nothing_of_the_machine(cell: Cell) -> None:
    got = answer(
        cell,
        """
        names = os.listdir('/proc')
        print(json.dumps([[int(n) for n in names if n.isdigit()], [n for n in names if not n.isdigit()], os.getpid(),
                          open('/proc/self/cgroup').read()]))
        """,
    )
    assert got[0] == [got[2]] and got[2] < 100
    assert set(got[1]) <= {"self", "thread-self"}
    assert "tiltyard" not in got[3]


def test_memory_of_no_process_can_not_be_had(cell: Cell) -> None:
    """Shared memory is a file of the cell, and counts; memfd and System V segments would not."""
    got = answer(
        cell,
        """
        from multiprocessing import shared_memory
        s = shared_memory.SharedMemory(create=True, size=1 << 20)
        seen = os.listdir('/tmp')
        s.close(); s.unlink()
        print(json.dumps([len(seen), attempt(lambda: os.memfd_create('x'))]))
        """,
    )
    assert got == [1, errno.ENOSYS]


# ------------------------------------------------------------------------------------------------ caps


def test_files_in_memory_are_capped_together(wall: NamespaceWall) -> None:
    with wall.open({}, CellLimits(disk_bytes=8 << 20, disk_files=50)) as cell:
        got = answer(
            cell,
            """
            def fill(folder):
                with open(f'{folder}/big', 'wb', buffering=0) as f:
                    total = 0
                    try:
                        while total < 64 << 20: total += f.write(bytes(1 << 20))
                    except OSError as e: return [total, e.errno]
            first = fill('/tmp')
            second = fill('/workspace')
            os.remove('/tmp/big'); os.remove('/workspace/big')
            made, last = 0, 0
            for folder in ('/home', '/workspace', '/tmp'):
                try:
                    for n in range(1000): open(f'{folder}/{n}', 'w').close(); made += 1
                except OSError as e: last = e.errno
            print(json.dumps([first, second, made, last]))
            """,
        )
        assert got[0] == [8 << 20, errno.ENOSPC] and got[1] == [0, errno.ENOSPC]
        assert 40 <= got[2] <= 50 and got[3] == errno.ENOSPC
        said(
            cell,
            "import os; [os.remove(f'{d}/{n}') for d in ('/home', '/workspace', '/tmp') for n in os.listdir(d)]",
        )
        still_works(cell)


def test_processes_of_one_cell_do_not_count_in_another(wall: NamespaceWall) -> None:
    """RLIMIT_NPROC counts a user's processes on the whole machine: no two cells may have one user."""
    code = """
    import os, time
    for n in range(12):
        if os.fork() == 0:
            time.sleep(3); os._exit(0)
    print(n + 1)
    time.sleep(1.5)
    """
    results: list[RunResult] = []

    def one() -> None:
        with wall.open({}, CellLimits(processes=16)) as cell:
            results.append(py(cell, code))

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(r.rc, r.stdout) for r in results] == [(0, b"12\n")] * 8, results
    with wall.open({}, CellLimits(processes=16)) as cell:
        forks = "import os\nfor n in range(40):\n  if os.fork() == 0: import time; time.sleep(100)"
        result = py(cell, forks)
        assert result.rc == 1 and b"BlockingIOError" in result.stderr
        still_works(cell)


def test_eight_cells_at_once(wall: NamespaceWall) -> None:
    def one(n: int) -> None:
        for turn in range(5):
            with wall.open({"n.txt": str(n).encode()}, CellLimits()) as cell:
                out = said(
                    cell,
                    "import os, hashlib; print(open('n.txt').read(), os.listdir(), len(os.listdir('/tmp')))",
                )
                assert out == f"{n} ['n.txt'] 0"
                cell.write(f"turn{turn}", b"x")
                done.append((n, turn))

    done: list[tuple[int, int]] = []
    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [(n, turn) for n in range(8) for turn in range(5)]


def test_a_run_dies_first_when_memory_is_short(wall: NamespaceWall) -> None:
    has = wall._server().has
    if "memory" not in has["groups"]:
        pytest.skip("no memory control group can be had here")
    with wall.open({}, CellLimits(memory_bytes=96 << 20, disk_bytes=8 << 20)) as cell:
        assert said(cell, "print(open('/proc/self/oom_score_adj').read())") == "1000"
        code = """
        import os, time
        for n in range(6):
            if os.fork() == 0:
                held = bytes(range(256)) * (50 << 12)
                time.sleep(2); os._exit(0)
        ends = [os.waitstatus_to_exitcode(os.wait()[1]) for n in range(6)]
        print(ends)
        """
        result = py(cell, code)
        assert result.rc == -signal.SIGKILL or b"-9" in result.stdout, result
        still_works(cell)


# ------------------------------------------------------------------------------------------------ the same every time


def test_addresses_hashes_and_random_numbers_are_the_same_in_every_run() -> None:
    code = """
    import os, random, sys, uuid
    class Node:
        pass
    nodes = [Node() for _ in range(50)]
    order = [nodes.index(n) for n in set(nodes)]
    print(hash('a'), hash(None), id(nodes), order, random.random(), random.getstate()[1][:3], os.uname().nodename, os.getpid(),
          os.getcwd(), sys.argv, sorted(os.environ.items()), os.getuid(), sys.executable, sys.orig_argv, sys.flags, sep=chr(10))
    """
    seen: list[list[str]] = []
    for others in range(3):  # whatever else the owner has open
        held = [os.open(os.devnull, os.O_RDONLY) for _ in range(7 * others)]
        for fd in held[others::3]:
            os.close(fd)
        wall = NamespaceWall()
        try:
            for _ in range(3):
                with wall.open({"again.py": textwrap.dedent(code).encode()}, CellLimits()) as cell:
                    result = cell.run(Run(("python", "again.py"), wall_s=LONG))
                    assert result.rc == 0, result
                    seen.append(result.stdout.decode().splitlines())
        finally:
            wall.close()
            for fd in set(held) - set(held[others::3]):
                os.close(fd)
    for one in seen[1:]:
        assert one == seen[0]


def test_another_hash_seed_is_another_world() -> None:
    walls = [NamespaceWall(hash_seed=seed) for seed in (1, 2)]
    try:
        outs = []
        for wall in walls:
            with wall.open({}, CellLimits()) as cell:
                outs.append(said(cell, "import os; print(hash('a'), os.environ['PYTHONHASHSEED'])").split())
        assert outs[0][0] != outs[1][0] and [o[1] for o in outs] == ["1", "2"]
    finally:
        for wall in walls:
            wall.close()


SCRIPTS = {
    "names": "print(__name__, __file__.endswith('/s.py'), __doc__, __package__, __spec__, sorted(globals()))",
    "traceback": "def f(x):\n    return 1 / x\ntry:\n    f(0)\nexcept ZeroDivisionError as e:\n    raise ValueError('no') from e",
    "syntax": "x = (\n",
    "exit_text": "import sys; print('out'); sys.exit('gone')",
    "exit_code": "raise SystemExit(3)",
    "exit_big": "raise SystemExit(256 + 7)",
    "exit_none": "raise SystemExit",
    "interrupt": "raise KeyboardInterrupt",
    "interrupt_signal": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nprint('after')",
    "caught_interrupt": "import os, signal\ntry:\n    os.kill(os.getpid(), 2)\nexcept KeyboardInterrupt:\n    print('caught')",
    "atexit": "import atexit\natexit.register(print, 'last')\nprint('first')",
    "thread": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()\nprint('main')",
    "thread_error": "import threading\nt = threading.Thread(target=lambda: 1 / 0, name='T')\nt.start(); t.join()\nprint('on')",
    "finalizers": "class A:\n    def __del__(self): print('dropped')\na = A()\n_b = A()\nprint('end')",
    "unflushed": "import sys\nsys.stdout.write('no newline')",
    "os_exit": "import os\nprint('lost')\nos._exit(5)",
    "fork": "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint('child' if pid == 0 else 'parent')",
    "abort": "import os\nos.abort()",
    "recursion": "def f(n):\n    return f(n + 1)\ntry:\n    f(0)\nexcept RecursionError as e:\n    print(e)",
    "signals": "import signal\nprint([signal.getsignal(s) for s in (2, 13, 15, 17, 25)])",
    "streams": "import sys\nprint([(s.encoding, s.errors, s.line_buffering, s.isatty(), s.name) for s in (sys.stdin, sys.stdout, sys.stderr)])",
    "stdin": "import sys\nprint(input(), sys.stdin.read().split())\nprint(sys.stdin.seekable(), sys.stdout.seekable())",
    "closed_stdout": "import sys\nsys.stdout.close()",
    "excepthook": "import sys\nsys.excepthook = lambda *a: print('hooked', a[0].__name__)\n1 / 0",
    "args": "import sys\nprint(sys.argv, sys.path[0])",
    "frames": "import sys\ndef depth():\n    return sys._getframe().f_code.co_name\nprint(depth())",
    "warning": "import warnings\nwarnings.warn('careful')",
    "group": "raise ExceptionGroup('many', [ValueError(1), TypeError(2)])",
    "pickle": "import pickle\nclass A: x = 1\nprint(pickle.loads(pickle.dumps(A())).x, A.__module__)",
    "dataclass": "from __future__ import annotations\nimport dataclasses, typing\n@dataclasses.dataclass\nclass A:\n    x: int\nprint(typing.get_type_hints(A), A(1))",
    "doctest": "'''\n>>> 1 + 1\n2\n'''\nimport doctest, __main__\nprint(doctest.testmod())",
    "unittest": "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(1, 2)\nunittest.main(argv=['x'], verbosity=0, exit=False)\nprint('ran')",
}


def test_a_forked_script_is_as_a_fresh_interpreter_has_it(wall: NamespaceWall) -> None:
    """A run here is a fork of warm memory: nothing that a program can see tells it from a fresh interpreter's run."""

    def outcome(cell: Cell, code: str) -> tuple[object, ...]:
        cell.write("s.py", code.encode())
        result = cell.run(Run(("python", "s.py", "an", "argument"), stdin=b"line\nand more\n", wall_s=LONG))
        text = result.stderr.decode()
        return (
            result.rc,
            result.stdout,
            "\n".join(line for line in text.splitlines() if "Ran 1 test in" not in line),
        )

    plain = ProcessWall(python=None)
    with wall.open({}, CellLimits()) as forked, plain.open({}, CellLimits()) as fresh:
        for name, code in SCRIPTS.items():
            assert outcome(forked, code) == outcome(fresh, code), name
    plain.close()


def test_a_script_may_call_as_deep_as_anywhere(cell: Cell) -> None:
    """Our frames are below its own, and not counted."""
    code = """
    def f(n):
        global deepest
        deepest = n
        f(n + 1)
    try:
        f(1)
    except RecursionError:
        print(deepest)
    """
    script = textwrap.dedent(code)
    plain = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert abs(int(said(cell, script)) - int(plain.stdout)) <= 2


def test_no_path_of_the_machine_is_on_the_stack(cell: Cell) -> None:
    code = """
    import sys
    frame, names = sys._getframe(), set()
    while frame:
        names.add(frame.f_code.co_filename)
        frame = frame.f_back
    print(sorted(names))
    """
    assert said(cell, code) == "['<cell>', '<string>']"


# ------------------------------------------------------------------------------------------------ violent ends


def family(pid: int) -> dict[int, tuple[str, int]]:
    """Everything below a process: pid to name and parent."""
    processes: dict[int, tuple[str, int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text(errors="replace")
            except OSError:
                continue
            fields = text.rpartition(")")[2].split()
            if fields[0] != "Z":
                processes[int(entry.name)] = (text.partition("(")[2].rpartition(")")[0], int(fields[1]))
    below: dict[int, tuple[str, int]] = {}
    while True:
        new = {p: v for p, v in processes.items() if p not in below and (v[1] == pid or v[1] in below)}
        if not new:
            return below
        below |= new


def named(pid: int, name: str) -> list[int]:
    return [p for p, (n, _) in family(pid).items() if n == name]


def alive(pids: list[int] | dict[int, Any]) -> list[int]:
    living = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state not in ("Z", "X"):
            living.append(pid)
    return living


def groups_of(warden: int) -> list[str]:
    """Control groups that a warden has made."""
    found = []
    for place in cgroup.find()[0]:
        found += [str(p) for p in Path(place.path).glob(f"{cgroup.PREFIX}{warden}-*")]
    return found


OWNER = """
import sys, time
from tiltyard.cells import CellLimits, Run
from tiltyard.cells.namespace import NamespaceWall
wall = NamespaceWall()
cells = [wall.open({}, CellLimits()) for _ in range(3)]
print('open', flush=True)
cells[0].run(Run(('python', '-c', 'import os, time\\nfor n in range(5):\\n  if os.fork() == 0: os.setsid()\\ntime.sleep(1000)'), wall_s=1000))
"""


class Owner:
    """A process that owns three cells, one of them busy."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", OWNER],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(Path(tiltyard.__file__).parent.parent)},
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"open\n"
        self.pid = self.process.pid
        assert eventually(lambda: len(named(self.pid, "python3")) >= 6)
        self.family = family(self.pid)
        (self.warden,) = named(self.pid, "tiltyard-warden")

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def owner() -> Iterator[Owner]:
    owner = Owner()
    yield owner
    owner.end()


def test_a_killed_owner_leaves_nothing(owner: Owner) -> None:
    assert eventually(lambda: len(named(owner.pid, "tiltyard-keeper")) == 4)  # and the one ahead
    owner.end()
    assert eventually(lambda: not alive(owner.family))
    assert eventually(lambda: not groups_of(owner.warden))
    assert " - tmpfs cell " not in Path("/proc/self/mountinfo").read_text()


@pytest.mark.parametrize("victim", ["tiltyard-server", "tiltyard-warden"])
def test_a_killed_server_takes_its_cells_with_it(owner: Owner, victim: str) -> None:
    (pid,) = named(owner.pid, victim)
    os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: not alive([p for p in owner.family if p != owner.pid]))
    owner.end()
    if victim == "tiltyard-server":
        assert eventually(lambda: not groups_of(owner.warden))
    else:  # its maker is dead: the next server that starts removes it
        for left in groups_of(owner.warden):
            assert eventually(lambda left=left: not _busy(left))
            os.utime(left, (0, 0)) if os.access(left, os.W_OK) else None
        time.sleep(5.1)
        NamespaceWall(hash_seed=82).open({}, CellLimits()).close()
        assert groups_of(owner.warden) == []


def _busy(path: str) -> bool:
    return any(Path(d, "cgroup.procs").read_text() for d, _, _ in os.walk(path))


def test_all_killed_at_once_leave_no_process(owner: Owner) -> None:
    for pid in (owner.warden, *named(owner.pid, "tiltyard-server"), owner.pid):
        os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: not alive(owner.family))


def test_a_killed_server_is_replaced_and_its_cells_are_lost() -> None:
    wall = NamespaceWall(hash_seed=88)
    try:
        cells = [wall.open({"f": b"x"}, CellLimits()) for _ in range(3)]
        warden = wall._server()._process.pid
        (server,) = named(warden, "tiltyard-server")
        os.kill(server, signal.SIGKILL)
        for cell in cells:
            with pytest.raises(CellLost) as lost:
                for _ in range(100):  # the signal may take a moment
                    cell.read("f", max_bytes=1)
                    time.sleep(0.05)
            assert not lost.value.during_run
        with wall.open({}, CellLimits()) as cell:
            still_works(cell)
        assert wall._server()._process.pid != warden
        assert eventually(lambda: not groups_of(warden))
    finally:
        wall.close()


def test_a_server_that_dies_during_a_run_says_so() -> None:
    wall = NamespaceWall(hash_seed=89)
    try:
        cell = wall.open({}, CellLimits())
        (server,) = named(wall._server()._process.pid, "tiltyard-server")
        threading.Timer(0.5, os.kill, (server, signal.SIGKILL)).start()
        with pytest.raises(CellLost) as lost:
            cell.run(Run(("python", "-c", "import time; time.sleep(100)"), wall_s=LONG))
        assert lost.value.during_run
    finally:
        wall.close()


@pytest.mark.parametrize("victim", ["tiltyard-keeper", "tiltyard-stall"])
def test_a_killed_keeper_or_stall_costs_its_own_cell_only(victim: str) -> None:
    wall = NamespaceWall(hash_seed=90)
    try:
        cells = [wall.open({"f": b"x"}, CellLimits()) for _ in range(3)]
        warden = wall._server()._process.pid
        keeper = min(named(warden, "tiltyard-keeper"))  # not the one that was made ahead, which is the last
        pid = keeper if victim == "tiltyard-keeper" else family(warden)[keeper][1]
        assert pid in named(warden, victim)
        os.kill(pid, signal.SIGKILL)
        assert eventually(lambda: not alive([pid]))
        lost = 0
        time.sleep(0.3)
        for cell in cells:
            try:
                assert cell.read("f", max_bytes=1) == b"x"
            except CellLost:
                lost += 1
        assert lost == 1
        for _ in range(6):
            with wall.open({}, CellLimits()) as cell:
                still_works(cell)
    finally:
        wall.close()


def test_closing_the_wall_closes_cells_and_leaves_nothing() -> None:
    wall = NamespaceWall(hash_seed=87)  # no other test shares its server
    cell = wall.open({}, CellLimits())
    warden = wall._server()._process.pid
    below = family(warden)
    assert {"tiltyard-server", "tiltyard-stall", "tiltyard-keeper"} <= {name for name, _ in below.values()}
    wall.close()
    assert not alive([warden, *below])
    assert groups_of(warden) == []
    with pytest.raises(CellLost):
        cell.read("f", max_bytes=1)
    wall.close()
    with wall.open({}, CellLimits()) as cell:  # and it can be used again
        still_works(cell)
    wall.close()


def test_walls_share_a_server_that_lives_as_long_as_one_of_them() -> None:
    one, two = NamespaceWall(hash_seed=77), NamespaceWall(hash_seed=77)
    try:
        cell = two.open({}, CellLimits())
        one.open({}, CellLimits())
        assert one._server() is two._server()
        one.close()
        still_works(cell)
        other = NamespaceWall(hash_seed=78)
        assert other._server() is not two._server()
        other.close()
    finally:
        one.close()
        two.close()


def test_a_wall_that_is_garbage_gives_its_server_back() -> None:
    wall = NamespaceWall(hash_seed=79)
    cell = wall.open({}, CellLimits())
    warden = wall._server()._process.pid
    del wall
    still_works(cell)  # an open cell keeps its wall
    cell.close()
    del cell
    assert eventually(lambda: not alive([warden]))


def test_a_forked_child_starts_a_server_of_its_own(wall: NamespaceWall) -> None:
    with wall.open({"f": b"parent's"}, CellLimits()) as cell:
        warden = wall._server()._process.pid
        told, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                with wall.open({}, CellLimits()) as mine:
                    still_works(mine)
                os.write(tell, str(wall._server()._process.pid).encode())
                wall.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        other = int(os.read(told, 32))
        os.close(told)
        os.close(tell)
        assert other != warden
        assert eventually(lambda: not alive([other]))
        assert cell.read("f", max_bytes=100) == b"parent's"
        still_works(cell)


def test_a_thread_that_started_the_server_may_end() -> None:
    """The kernel's death signal of a parent comes when the *thread* ends that forked: the server must not use it."""
    wall = NamespaceWall(hash_seed=80)
    try:
        cells: list[Cell] = []
        thread = threading.Thread(target=lambda: cells.append(wall.open({}, CellLimits())))
        thread.start()
        thread.join()
        time.sleep(0.3)
        still_works(cells[0])
    finally:
        wall.close()


@pytest.mark.parametrize("preload", ["netrc", "csv", "pickle", "queue", "wave"])
def test_a_stalls_first_cell_begins_in_the_memory_of_all_others(preload: str) -> None:
    """Where it differed was a matter of what else was in memory: one of thirty modules showed it."""
    wall = NamespaceWall(preload=(preload,))
    code = """
    found = [object() for _ in range(300)] + [type("A", (), {})() for _ in range(300)]
    print([id(one) for one in found], id(bytearray(100_000)), [id(one) for one in set(found)])
    """
    try:
        seen = set()
        for _ in range(4):
            with wall.open({}, CellLimits()) as cell:
                seen.add(said(cell, code))
        assert len(seen) == 1
    finally:
        wall.close()


def test_hundreds_of_cells_leave_the_server_as_it_was() -> None:
    wall = NamespaceWall(hash_seed=81)
    try:

        def state() -> dict[int, tuple[int, int]]:
            seen = {}
            for pid, (name, _) in family(warden).items():
                if name in ("tiltyard-server", "tiltyard-stall"):
                    rss = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
                    seen[pid] = (len(list(Path(f"/proc/{pid}/fd").iterdir())), rss)
            return seen

        for _ in range(10):
            wall.open({"a": b"1"}, CellLimits()).close()
        warden = wall._server()._process.pid
        own_fds = len(list(Path("/proc/self/fd").iterdir()))
        (server,) = named(warden, "tiltyard-server")
        mounts = len(Path(f"/proc/{server}/mountinfo").read_text().splitlines())
        before, groups = state(), len(groups_of(warden))
        for n in range(300):
            with wall.open({"a": b"1"}, CellLimits()) as cell:
                if n % 50 == 0:
                    assert cell.run(Run(("python", "-c", "print(1)"), wall_s=LONG)).stdout == b"1\n"
        assert eventually(lambda: len(named(warden, "tiltyard-keeper")) == 1)  # the one ahead
        after = state()
        assert set(after) == set(before)
        for pid, (fds, rss) in before.items():
            assert after[pid][0] == fds
            assert after[pid][1] <= rss + (2 << 20)
        assert len(Path(f"/proc/{server}/mountinfo").read_text().splitlines()) == mounts
        assert len(groups_of(warden)) == groups
        assert len(list(Path("/proc/self/fd").iterdir())) <= own_fds + 2
    finally:
        wall.close()


def test_many_threads_may_fork_and_open_at_the_same_time() -> None:
    """A lock that another thread held at the fork would never be free in the child."""
    wall = NamespaceWall(hash_seed=84)
    stop = threading.Event()

    def open_and_close() -> None:
        while not stop.is_set():
            wall.open({}, CellLimits()).close()

    threads = [threading.Thread(target=open_and_close) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    signal.alarm(int(LONG))
                    with wall.open({}, CellLimits()) as cell:
                        still_works(cell)
                    wall.close()
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        wall.close()


def test_a_machine_without_descriptors_is_the_arenas_failure_and_passes() -> None:
    code = """
    import os, resource
    from tiltyard.cells import CellLimits, Run
    from tiltyard.cells.namespace import NamespaceWall
    from tiltyard.errors import ArenaError
    wall = NamespaceWall()
    wall.open({}, CellLimits()).close()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = len(os.listdir('/proc/self/fd'))
    seen = set()
    for room in range(12):
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken + room, hard))
        cells = []
        try:
            while True: cells.append(wall.open({'a': b'1'}, CellLimits()))
        except ArenaError as error: seen.add('arena')
        except Exception as error: seen.add(repr(error))
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for cell in cells: cell.close()
    with wall.open({'a.py': b'print(1)'}, CellLimits()) as cell:
        assert cell.run(Run(('python', 'a.py'), wall_s=60)).stdout == b'1\\n'
    wall.close()
    print(seen, len(os.listdir('/proc/self/fd')) <= taken)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": str(Path(tiltyard.__file__).parent.parent)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == b"{'arena'} True\n"


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("#!/bin/sh\necho no python here >&2; exit 3\n")
    (tmp_path / "broken").chmod(0o755)
    wall = NamespaceWall(python=str(tmp_path / "broken"))
    with pytest.raises(tiltyard.errors.ArenaError, match="no python here"):
        wall.open({}, CellLimits())
    wall.close()


# ------------------------------------------------------------------------------------------------ as an ordinary user


def _readable_python() -> str | None:
    for path in ("/usr/bin/python3", "/usr/local/bin/python3"):
        try:
            done = subprocess.run(
                [path, "-c", "import sys; print(sys.version_info >= (3, 11))"],
                capture_output=True,
                timeout=60,
                check=False,
            )
        except OSError:
            continue
        if done.stdout.strip() == b"True":
            return path
    return None


SMOKE = """
import json, os, sys
from tiltyard.cells import CellLimits, Run
from tiltyard.cells.namespace import NamespaceWall, probe
reason = probe()
if reason is not None:
    print(json.dumps({'skip': reason})); raise SystemExit
wall = NamespaceWall()
cell = wall.open({'s.py': b'''
import ctypes, errno, json, os, socket
def attempt(act):
    try: act(); return 0
    except OSError as error: return error.errno
print(json.dumps([os.getresuid(), attempt(lambda: os.kill(1, 9)), attempt(lambda: open('/new', 'w')),
                  attempt(lambda: socket.socket(2)), os.path.exists('/var'), len(os.listdir('/home')),
                  open('/proc/self/status').read().count('CapEff:\\\\t0000000000000000')]))
'''}, CellLimits())
result = cell.run(Run(('python', 's.py'), wall_s=60))
again = cell.run(Run(('sh', '-c', 'echo alive; exit 3'), wall_s=60))
bomb = cell.run(Run(('python', '-c', 'import os\\nwhile True: os.fork()'), wall_s=2))
last = cell.run(Run(('python', '-c', 'print(1)'), wall_s=60))
print(json.dumps({'uid': os.getuid(), 'rc': result.rc, 'out': result.stdout.decode(), 'err': result.stderr.decode(),
                  'again': [again.rc, again.stdout.decode()], 'last': last.stdout.decode(), 'weak': wall.weaknesses}))
wall.close()
"""


def test_an_ordinary_user_has_the_same_walls(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("all of these tests run as an ordinary user already")
    python = _readable_python()
    if python is None:
        pytest.skip("no Python 3.11 or newer that an ordinary user can read")
    home = tmp_path / "package"
    shutil.copytree(
        Path(tiltyard.__file__).parent,
        home / "tiltyard",
        ignore=shutil.ignore_patterns("__pycache__", "builtin"),
    )
    for folder in (home, *home.parents):
        if folder.stat().st_uid == os.getuid() and str(folder).startswith("/tmp/"):
            folder.chmod(folder.stat().st_mode | 0o055)

    def become() -> None:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)

    done = subprocess.run(
        [python, "-s", "-c", SMOKE],
        env={"PYTHONPATH": str(home), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
        cwd="/",
        preexec_fn=become,
        capture_output=True,
        timeout=300,
        check=False,
    )
    if b"Permission denied" in done.stderr and b"tiltyard" in done.stderr:
        pytest.skip("the temporary folder can't be read by an ordinary user")
    assert done.returncode == 0, done.stderr.decode()
    got = json.loads(done.stdout)
    if "skip" in got:
        pytest.skip(f"ordinary users can't have the namespace wall here: {got['skip']}")
    assert got["uid"] == 65534 and got["rc"] == 0, got
    ids, kill, new, inet, var, home_files, caps = json.loads(got["out"])
    assert ids == [1000, 1000, 1000] and new in (errno.EROFS, errno.EACCES) and inet == errno.EAFNOSUPPORT
    assert kill in (0, errno.EPERM) and not var and home_files == 0 and caps == 1
    assert got["again"] == [3, "alive\n"] and got["last"] == "1\n"
    assert any("memory" in w for w in got["weak"]) or cgroup.find()[0]


def test_one_accident_does_not_decide_that_there_is_no_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    # a worker whose first server was killed made all of a run's episodes void, for the failure was kept
    really, accidents = namespace._try, ["the other side is gone"]
    monkeypatch.setattr(namespace, "_probed", {})
    monkeypatch.setattr(namespace, "_try", lambda: accidents.pop() if accidents else really())
    assert probe() is None
    assert not accidents
    accidents += ["gone", "gone"]
    assert probe() is None and len(accidents) == 2, "where it works, it is tried once"
    monkeypatch.setattr(namespace, "_probed", {})
    assert probe() == "gone"
    accidents += ["gone"]
    assert probe() == "gone" and len(accidents) == 1, "a machine that can't have it is not asked all the time"
    monkeypatch.setattr(namespace, "_FAILED_S", 0.0)
    monkeypatch.setattr(namespace, "_probed", {})
    accidents += ["gone"]
    assert probe() == "gone" and probe() is None
