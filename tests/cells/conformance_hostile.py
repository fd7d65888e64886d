"""What hostile code tries, as checks of the conformance list: every wall runs them, and says where it promises nothing.

Importing this adds them to ``CHECKS``, which is conformance's own. Each attempt is made by a player's code in a cell, with arguments that would work where nothing stands in the way:
``test_process.test_what_hostile_code_attempts_is_real`` makes the same attempts in a process without any wall. What
reaches beyond one cell is tried against this process, a process of the machine, and a second cell of the same wall.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import secrets
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conformance import ALL, CHECKS, LONG, Ground, ask, check, echo, eventually, py, said, still_works
from test_lock import table

from tiltyard.cells import Cell, CellFileError, CellLost, Run

__all__ = ["ATTEMPTS", "CHECKS", "attempts"]

NO_FILES = "no file system wall: code can read and write what its user can"
NO_NETWORK = "no network wall: code can reach what its user can"
SAME_USER = "same user: code can do to the processes of its user what that user can"
NO_FILTER = "no filter of system calls: code can call what the kernel lets its user call"
REFUSED = {errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ESRCH, errno.ENOENT, errno.EROFS, errno.ENOTDIR}
"""What a wall may answer: not allowed, or not there."""


def numbers() -> dict[str, int]:
    """System calls of this machine, by name."""
    machine = platform.machine()
    if machine not in ("x86_64", "aarch64"):
        pytest.skip(f"the numbers of system calls on {machine} are not known here")
    kinds = ("refused", "allowed", "checked", "unknown")
    return {name: number for kind in kinds for name, number in table(machine, kind).items()}


TOOLS = """
import ctypes, errno, json, os, socket, stat, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    ctypes.set_errno(0)
    words = [a if isinstance(a, (bytes, ctypes.Array, ctypes._Pointer)) else ctypes.c_long(a) for a in args]
    value = libc.syscall(ctypes.c_long(NUMBERS[name]), *words)
    return 0 if value >= 0 else ctypes.get_errno()
def attempt(act):
    try: act()
    except OSError as error: return error.errno or -1
    return 0
def iov(address, size): return struct.pack('PN', address, size)
"""

# Each is what hostile code does, with a name that issue trackers would use. ``got`` maps attempts to errors, 0: it worked.
ATTEMPTS = {
    "ptrace": """
    for pid in PIDS:
        got[f'attach {pid}'] = call('ptrace', 16, pid, 0, 0)
        got[f'seize {pid}'] = call('ptrace', 0x4206, pid, 0, 0)
    """,
    "process_vm": """
    mine = ctypes.create_string_buffer(b'x' * 16)
    for pid in PIDS:
        at = there = iov(ctypes.addressof(mine), 16)  # a fork has it there too
        got[f'read {pid}'] = call('process_vm_readv', pid, at, 1, there, 1, 0)
        got[f'write {pid}'] = call('process_vm_writev', pid, at, 1, there, 1, 0)
    """,
    "descriptors of others": """
    for pid in PIDS:
        try: at = os.pidfd_open(pid)
        except OSError as error: got[f'getfd {pid}'] = error.errno; continue
        got[f'getfd {pid}'] = call('pidfd_getfd', at, 0, 0)
    """,
    "keyrings": """
    for name, ring in (('user', -4), ('session', -3), ('user session', -5), ('process', -2)):
        got[name] = call('add_key', b'user', b'tiltyard-hostile', b'secret', 6, ring)
    """,
    "io_uring": """
    got['setup'] = call('io_uring_setup', 8, ctypes.create_string_buffer(240))
    """,
    "userfaultfd": """
    got['all'] = call('userfaultfd', os.O_CLOEXEC | os.O_NONBLOCK)
    got['user mode only'] = call('userfaultfd', os.O_CLOEXEC | os.O_NONBLOCK | 1)
    """,
    "vsock": """
    got['stream'] = attempt(lambda: socket.socket(40, socket.SOCK_STREAM))
    got['datagram'] = attempt(lambda: socket.socket(40, socket.SOCK_DGRAM))
    """,
    "netlink": """
    for family in (0, 4, 9, 15, 16):  # route, sock_diag, audit, uevents, generic
        got[family] = attempt(lambda: socket.socket(16, socket.SOCK_RAW, family))
    """,
    "packets": """
    for name, family, kind in (('packet', 17, 3), ('raw', 2, 3), ('raw 6', 10, 3), ('crypto', 38, 5)):
        got[name] = attempt(lambda: socket.socket(family, kind, 0 if family != 2 else 1))
    """,
    "nested namespaces": """
    for bit in (1 << 7, 1 << 17, 1 << 25, 1 << 26, 1 << 27, 1 << 28, 1 << 29, 1 << 30):
        pid = os.fork()
        if pid == 0: os._exit(call('unshare', bit))
        got[f'unshare {bit:#x}'] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if bit != 1 << 7:
            told, tell = os.pipe()
            if os.fork() == 0:
                ctypes.set_errno(0)
                if libc.syscall(ctypes.c_long(NUMBERS['clone']), ctypes.c_long(bit | 17), *[ctypes.c_long(0)] * 4) < 0:
                    os.write(tell, bytes([ctypes.get_errno()]))
                else:
                    os.write(tell, b'\\0')
                os._exit(0)
            got[f'clone {bit:#x}'] = os.read(told, 1)[0]
            os.wait()
    for name in ('user', 'mnt', 'pid', 'net', 'ipc', 'uts', 'cgroup'):
        for pid in (1, 'self'):
            try: at = os.open(f'/proc/{pid}/ns/{name}', os.O_RDONLY)
            except OSError as error: got[f'setns {name} {pid}'] = error.errno
            else: got[f'setns {name} {pid}'] = call('setns', at, 0)
    """,
    "mounts": """
    os.makedirs('at', exist_ok=True)
    got['tmpfs'] = call('mount', b'x', b'at', b'tmpfs', 0, 0)
    got['proc'] = call('mount', b'x', b'at', b'proc', 0, 0)
    got['bind'] = call('mount', b'/', b'at', 0, 4096, 0)
    got['remount'] = call('mount', b'none', b'/', 0, 32 | 4096, 0)
    got['umount'] = call('umount2', b'/proc', 2)
    got['chroot'] = call('chroot', b'at')
    got['fsopen'] = call('fsopen', b'tmpfs', 0)
    got['open_tree'] = call('open_tree', -100, b'/', 1)
    """,
    "the machine's settings": """
    got['clock_settime'] = call('clock_settime', 0, struct.pack('qq', int(time.time()), 0))
    got['settimeofday'] = call('settimeofday', struct.pack('qq', int(time.time()), 0), 0)
    got['sethostname'] = call('sethostname', b'hostile', 7)
    got['reboot'] = call('reboot', 0xfee1dead, 672274793, 0, 0)
    got['bpf'] = call('bpf', 0, struct.pack('IIII', 1, 4, 4, 1) + bytes(100), 116)
    got['perf'] = call('perf_event_open', struct.pack('IIQ', 1, 112, 0) + bytes(96), 0, -1, -1, 0)
    """,
}


def attempts(what: str, pids: str) -> str:
    """Code that makes these attempts, on the processes that the expression ``pids`` names, and prints what came of each."""
    head = f"{TOOLS}\nNUMBERS, PIDS, got = {numbers()!r}, {pids}, {{}}\n"
    return head + textwrap.dedent(ATTEMPTS[what]) + "\nprint(json.dumps(got))\n"


def tried(cell: Cell, what: str, *others: int) -> dict[str, int]:
    """What came of these attempts in a cell, on every process but its own that it can name, and on ``others``."""
    seen = "{1, os.getppid(), *[int(n) for n in os.listdir('/proc') if n.isdigit()]}"
    found: dict[str, int] = json.loads(
        said(cell, attempts(what, f"({seen} | set({others})) - {{0, os.getpid()}}"))
    )
    return found


def all_refused(got: dict[str, int], *more: int) -> None:
    assert got, "nothing was attempted"
    assert set(got.values()) <= {*REFUSED, *more}, got


def answer(cell: Cell, code: str) -> Any:
    return json.loads(said(cell, f"{TOOLS}\nNUMBERS = {numbers()!r}\n" + textwrap.dedent(code)))


@contextlib.contextmanager
def somebody(marker: str) -> Iterator[int]:
    """A process of this machine that carries a marker in its environment."""
    env = {**os.environ, "TILTYARD_HOSTILE": marker}
    process = subprocess.Popen(["sleep", "1000"], env=env)
    try:
        # until it has begun, it is a copy of this process, with this one's environment
        assert eventually(lambda: marker.encode() in Path(f"/proc/{process.pid}/environ").read_bytes())
        yield process.pid
    finally:
        process.kill()
        process.wait()


# ------------------------------------------------------------------------------------------- files of the machine


@check(process=NO_FILES)
def the_machines_files_are_out_of_reach(g: Ground) -> None:
    cell = g.open()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        canary = folder / "canary"
        canary.write_text("secret")
        canary.chmod(0o666)
        got = answer(
            cell,
            f"""
            canary, got = {str(canary)!r}, {{}}
            ways = [canary, '../' * 30 + canary[1:], *(f'/proc/{{p}}/{{d}}{{canary}}' for p in (1, os.getppid(), 'self')
                                                       for d in ('root', 'cwd/..', 'cwd/../..'))]
            for n, way in enumerate(ways):
                for mode in ('r', 'r+', 'a', 'w'): got[f'{{mode}} {{way}}'] = attempt(lambda: open(way, mode).close())
                got[f'link {{way}}'] = attempt(lambda: os.link(way, f'hard{{n}}'))
                got[f'move {{way}}'] = attempt(lambda: os.rename(way, f'moved{{n}}'))
                got[f'mode {{way}}'] = attempt(lambda: os.chmod(way, 0))
                got[f'gone {{way}}'] = attempt(lambda: os.unlink(way))
            os.symlink(canary, 'soft')
            got['through a link'] = attempt(lambda: open('soft').close())
            print(json.dumps(got))
            """,
        )
        all_refused(got, errno.EXDEV)
        for path in ("soft", "soft/under"):
            with pytest.raises(CellFileError):
                cell.read(path, max_bytes=100)
        cell.write("soft", b"now a file of the workspace")
        assert canary.read_text() == "secret" and [p.name for p in folder.iterdir()] == ["canary"]


@check(process=NO_FILES)
def homes_and_checkouts_are_not_there(g: Ground) -> None:
    python = Path(sys.base_prefix)
    places = {
        str(Path.home()),
        str(Path(__file__).parents[2]),
        "/root",
        "/var/lib",
        "/etc/shadow",
        "/boot",
        "/srv",
        "/run",
    }
    code = f"""
    found = []
    for place in {sorted(places)!r}:
        if os.path.isdir(place): found += [f'{{place}}/{{name}}' for name in os.listdir(place)]
        elif os.path.exists(place): found.append(place)
    print(json.dumps(found))
    """
    # what an interpreter needs may lie in a home; and a container's own folder is of its engine
    strange = [
        p
        for p in answer(g.open(), code)
        if Path(p) not in (python, *python.parents) and not p.startswith("/run/")
    ]
    assert strange == []


# ------------------------------------------------------------------------------------------- other processes


@check(process=SAME_USER)
def ptrace_reaches_nobody(g: Ground) -> None:
    cell, other = g.open(), g.open()
    with echo(other) as (_, sock), somebody("ptrace") as pid:
        theirs = ask(sock, {"spawn": ["sleep", "1000"]})["pid"]
        all_refused(tried(cell, "ptrace", pid, os.getpid(), int(str(theirs))))
        assert ask(sock, {"echo": 1})["echo"] == 1  # it was neither stopped nor killed
    still_works(cell)


@check(process=SAME_USER)
def nobodys_memory_is_read_or_written(g: Ground) -> None:
    cell = g.open()
    with somebody("memory") as pid:
        all_refused(tried(cell, "process_vm", pid, os.getpid()), errno.EFAULT)
        got = answer(
            cell,
            f"""
            got = {{}}
            for pid in {{1, os.getppid(), {pid}, {os.getpid()}}} - {{0, os.getpid()}}:
                for name in ('mem', 'environ', 'maps', 'auxv', 'stack', 'syscall', 'pagemap'):
                    def look():
                        with open(f'/proc/{{pid}}/{{name}}', 'rb') as file:
                            if not file.read(1): raise OSError(2, 'nothing in it')
                    got[f'{{pid}} {{name}}'] = attempt(look)
                got[f'{{pid}} write'] = attempt(lambda: open(f'/proc/{{pid}}/mem', 'r+b').write(b'x'))
            print(json.dumps(got))
            """,
        )
        all_refused(got, errno.EIO)


@check(process=SAME_USER)
def nobodys_descriptors_are_taken(g: Ground) -> None:
    cell = g.open()
    with somebody("descriptors") as pid:
        all_refused(tried(cell, "descriptors of others", pid, os.getpid()), errno.EINVAL)
    got = answer(
        cell,
        """
        got = {}
        for pid in {1, os.getppid()} - {0, os.getpid()}:
            for name in ('fd', 'fdinfo', 'map_files'):
                got[f'{pid} {name}'] = attempt(lambda: os.listdir(f'/proc/{pid}/{name}'))
            for name in ('root', 'cwd', 'exe', 'fd/0', 'fd/3', 'ns/mnt'):
                got[f'{pid} {name}'] = attempt(lambda: os.readlink(f'/proc/{pid}/{name}'))
        print(json.dumps(got))
        """,
    )
    all_refused(got)


@check()
def a_run_has_no_descriptor_but_its_streams(g: Ground) -> None:
    code = """
    import os
    def is_open(fd):
        try: os.fstat(fd); return True
        except OSError: return False
    print([fd for fd in range(4096) if is_open(fd)])
    """
    assert said(g.open(), code) == "[0, 1, 2]"


@check(process="code can see the machine: its processes, users, clock")
def a_walk_through_proc_finds_nobody_else(g: Ground) -> None:
    cell = g.open()
    marker = f"hostile-{secrets.token_hex(8)}"
    with somebody(marker):
        got = answer(
            cell,
            f"""
            found, own = [], {{str(os.getpid()), 'self', 'thread-self'}}
            for at, folders, files in os.walk('/proc'):
                folders[:] = [f for f in folders if (at, f) not in {{('/proc', n) for n in own}} and f != 'map_files']
                for name in files + folders:
                    path = f'{{at}}/{{name}}'
                    try:
                        if os.path.islink(path): text = os.readlink(path)
                        elif stat.S_ISREG(os.lstat(path).st_mode) and name not in ('kmsg', 'mem', 'pagemap', 'kcore'):
                            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                            try: text = os.read(fd, 1 << 16).decode('latin-1')
                            finally: os.close(fd)
                        else: continue
                    except OSError: continue
                    if {marker!r} in text: found.append(path)
            print(json.dumps([found, len([n for n in os.listdir('/proc') if n.isdigit()])]))
            """,
        )
    assert got[0] == [] and got[1] < 16


@check(process=SAME_USER)
def proc_changes_and_reveals_nothing_of_the_kernel(g: Ground) -> None:
    got = answer(
        g.open(),
        """
        got = {}
        for name in ('sysrq-trigger', 'sys/kernel/core_pattern', 'sys/vm/drop_caches', 'sys/kernel/randomize_va_space',
                     'sys/user/max_user_namespaces', 'sys/kernel/hostname', 'sys/fs/binfmt_misc/register', 'irq/1/smp_affinity',
                     'self/uid_map', 'self/setgroups'):
            got[f'write {name}'] = attempt(lambda: os.write(os.open(f'/proc/{name}', os.O_WRONLY), b'0'))
        got['be spared'] = attempt(lambda: os.write(os.open('/proc/self/oom_score_adj', os.O_WRONLY), b'-1000'))
        for name in ('kcore', 'kmsg', 'vmallocinfo', 'slabinfo', 'timer_list'):
            def look():
                if not os.read(os.open(f'/proc/{name}', os.O_RDONLY | os.O_NONBLOCK), 16): raise OSError(2, 'empty')
            got[f'read {name}'] = attempt(look)
        print(json.dumps(got))
        """,
    )
    all_refused(got, errno.EINVAL, errno.EIO)


@check(process=SAME_USER)
def stopping_all_processes_harms_only_the_cell(g: Ground) -> None:
    cell, other = g.open(), g.open()
    code = """
    import os, signal
    for pid in (*range(1, 200), -1):
        if pid not in (os.getpid(), os.getpgid(0)):
            for number in (signal.SIGTERM, signal.SIGSTOP):
                try: os.kill(pid, number)
                except OSError: pass
    print('done')
    """
    with contextlib.suppress(CellLost):
        py(cell, code, wall_s=2.0)
        still_works(cell)
    still_works(other)


# ------------------------------------------------------------------------------------------- devices, sysfs


KNOWN_DEVICES = {"null", "zero", "full", "random", "urandom", "tty", "console", "ptmx"}


@check(process=NO_FILES)
def no_device_of_the_machine_is_had(g: Ground) -> None:
    got = answer(
        g.open(),
        """
        there = []
        for at, folders, files in os.walk('/dev'):
            for name in files:
                mode = os.lstat(f'{at}/{name}').st_mode
                if stat.S_ISBLK(mode) or stat.S_ISCHR(mode): there.append(f'{at}/{name}')
        got = {}
        for name in ('mem', 'kmem', 'port', 'kmsg', 'kvm', 'fuse', 'net/tun', 'vsock', 'vhost-vsock', 'userfaultfd',
                     'loop-control', 'loop0', 'mapper/control', 'vda', 'sda', 'nvme0n1', 'ram0', 'cpu/0/msr', 'uinput'):
            got[f'open {name}'] = attempt(lambda: os.open(f'/dev/{name}', os.O_RDWR | os.O_NONBLOCK))
        for folder in ('/workspace', '/tmp', os.path.expanduser('~'), '/dev', '/dev/shm'):
            for kind, major, minor in ((stat.S_IFBLK, 254, 0), (stat.S_IFBLK, 7, 0), (stat.S_IFCHR, 1, 1),
                                       (stat.S_IFCHR, 10, 232), (stat.S_IFCHR, 1, 5)):
                got[f'make {major}:{minor} in {folder}'] = attempt(
                    lambda: os.mknod(f'{folder}/node', 0o600 | kind, os.makedev(major, minor)))
        print(json.dumps([there, got]))
        """,
    )
    there, tries = got
    assert {path.removeprefix("/dev/") for path in there if not path.startswith("/dev/pts/")} <= KNOWN_DEVICES
    all_refused(tries)


@check()
def a_device_in_the_workspace_is_refused_or_no_file(g: Ground) -> None:
    cell = g.open()
    number = answer(
        cell, "print(json.dumps(attempt(lambda: os.mknod('zero', 0o666 | stat.S_IFCHR, os.makedev(1, 5)))))"
    )
    if number:
        assert number in REFUSED
        return
    assert g.wall.name == "process", "a wall that locks lets nobody make devices"
    assert [(e.path, e.kind) for e in cell.list(max_entries=9).entries] == [("zero", "device")]
    with pytest.raises(CellFileError, match="device"):
        cell.read("zero", max_bytes=10)
    assert cell.capture(**ALL).skipped == (("zero", "device"),)
    cell.write("zero", b"a file")
    assert cell.capture(**ALL).files == {"zero": b"a file"}


@check(process=NO_FILES)
def sysfs_takes_nothing(g: Ground) -> None:
    got = answer(
        g.open(),
        """
        can, seen = [], 0
        for at, folders, files in os.walk('/sys'):
            for name in files + folders:
                seen += 1
                if os.access(f'{at}/{name}', os.W_OK): can.append(f'{at}/{name}')
            if seen > 20000: break
        print(json.dumps([can, attempt(lambda: os.mkdir('/sys/fs/cgroup/hostile')),
                          attempt(lambda: open('/sys/fs/cgroup/cgroup.procs', 'w').write('0')),
                          attempt(lambda: open('/sys/power/state', 'w').write('mem'))]))
        """,
    )
    assert got[0] == []
    assert set(got[1:]) <= REFUSED


# ------------------------------------------------------------------------------------------- what cells could share


@check(process=SAME_USER)
def keyrings_carry_nothing_from_cell_to_cell(g: Ground) -> None:
    one, two = g.open(), g.open()
    tried(one, "keyrings")
    got = answer(
        two,
        """
        got = {'ask': call('request_key', b'user', b'tiltyard-hostile', 0, 0)}
        for ring in (-4, -3, -5, -2):
            got[f'find {ring}'] = call('keyctl', 10, ring, b'user', b'tiltyard-hostile', 0)
        print(json.dumps(got))
        """,
    )
    all_refused(got, errno.ENOKEY)


@check(process="no file system wall: /dev/shm and System V memory are the user's")
def shared_memory_carries_nothing_from_cell_to_cell(g: Ground) -> None:
    one, two = g.open(), g.open()
    name, key = f"tiltyard-hostile-{secrets.token_hex(8)}", secrets.randbelow(1 << 30) + 1
    ours = Path("/dev/shm") / f"{name}-ours"
    if Path("/dev/shm").is_dir():
        ours.write_text("secret")
        ours.chmod(0o666)
    try:
        made = answer(
            one,
            f"""
            print(json.dumps([attempt(lambda: open('/dev/shm/{name}', 'w').write('secret')),
                              call('shmget', {key}, 4096, 0o1666), call('semget', {key}, 1, 0o1666),
                              call('msgget', {key}, 0o1666)]))
            """,
        )
        assert made[0] == 0 and set(made[1:]) <= {0, *REFUSED}
        assert not (Path("/dev/shm") / name).exists()
        got = answer(
            two,
            f"""
            print(json.dumps({{'file': attempt(lambda: open('/dev/shm/{name}')),
                               'of the machine': attempt(lambda: open('/dev/shm/{name}-ours')),
                               'memory': call('shmget', {key}, 4096, 0), 'semaphores': call('semget', {key}, 1, 0),
                               'messages': call('msgget', {key}, 0)}}))
            """,
        )
        all_refused(got)
    finally:
        ours.unlink(missing_ok=True)


@check(process=NO_NETWORK)
def sockets_by_name_end_at_the_cell(g: Ground) -> None:
    """Abstract ones, and those with a path: the machine's, another cell's, and our own name of the same kind."""
    one, two = g.open(), g.open()
    name = f"tiltyard-hostile-{secrets.token_hex(8)}"
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX) as filed,
    ):
        Path(folder).chmod(0o777)
        abstract.bind(f"\0{name}")
        abstract.listen()
        filed.bind(f"{folder}/s")
        Path(f"{folder}/s").chmod(0o777)
        filed.listen()
        with echo(one) as (_, sock):
            python = said(one, "import sys; print(sys.executable)")
            listen = (
                f"import socket, time\ns = socket.socket(socket.AF_UNIX); s.bind('\\0{name}-one'); s.listen()"
            )
            listen += "\nt = socket.socket(socket.AF_UNIX); t.bind('/workspace/filed'); t.listen(); time.sleep(1000)"
            ask(sock, {"spawn": [python, "-c", listen]})
            assert eventually(lambda: "filed" in [e.path for e in one.list(max_entries=9).entries])
            got = answer(
                two,
                f"""
                def connect(to): return attempt(lambda: socket.socket(socket.AF_UNIX).connect(to))
                engines = [p for p in ('/var/run/docker.sock', '/run/docker.sock', '/run/systemd/private',
                                       '/run/dbus/system_bus_socket') if connect(p) == 0]
                print(json.dumps([connect('\\0{name}'), connect('\\0{name}-one'), connect({f"{folder}/s"!r}),
                                  connect('/workspace/filed'), len(engines)]))
                """,
            )
    assert set(got[:4]) <= {*REFUSED, errno.ECONNREFUSED} and got[4] == 0


# ------------------------------------------------------------------------------------------- the kernel's other doors


@check(process=NO_NETWORK)
def there_is_no_vsock(g: Ground) -> None:
    all_refused(tried(g.open(), "vsock"), errno.EAFNOSUPPORT, errno.ESOCKTNOSUPPORT)


@check(process=NO_NETWORK)
def there_is_no_netlink(g: Ground) -> None:
    all_refused(tried(g.open(), "netlink"), errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT)


@check(process=NO_NETWORK)
def there_are_no_raw_packets(g: Ground) -> None:
    all_refused(tried(g.open(), "packets"), errno.EAFNOSUPPORT, errno.ESOCKTNOSUPPORT)


@check(process=NO_NETWORK)
def loopback_is_not_the_machines(g: Ground) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        got = answer(
            g.open(),
            f"""
            def connect(to): return attempt(lambda: socket.create_connection((to, {port}), timeout=3))
            print(json.dumps([connect('127.0.0.1'), connect('0.0.0.0')]))
            """,
        )
    reasons = {errno.EAFNOSUPPORT, errno.ECONNREFUSED, errno.ENETUNREACH, errno.EADDRNOTAVAIL}
    assert set(got) <= {*reasons, *REFUSED, -1}  # -1: time-out


@check(process=NO_FILTER)
def there_is_no_io_uring(g: Ground) -> None:
    all_refused(tried(g.open(), "io_uring"))


@check(process=NO_FILTER)
def there_is_no_userfaultfd(g: Ground) -> None:
    all_refused(tried(g.open(), "userfaultfd"))


@check(process=NO_FILTER)
def no_namespace_is_made_or_entered(g: Ground) -> None:
    cell = g.open()
    all_refused(tried(cell, "nested namespaces"), errno.EINVAL)
    if said(cell, "import shutil; print(shutil.which('unshare') is not None)") == "True":
        for flag in ("--user", "--mount", "--net"):
            assert cell.run(Run(("unshare", flag, "true"), wall_s=LONG)).rc != 0


@check(process=SAME_USER)
def nothing_is_mounted(g: Ground) -> None:
    all_refused(tried(g.open(), "mounts"), errno.EINVAL, errno.EBUSY)


@check(process=SAME_USER)
def clocks_names_and_meters_are_the_machines(g: Ground) -> None:
    all_refused(tried(g.open(), "the machine's settings"), errno.EINVAL)


@check()
def setuid_programs_are_plain_ones(g: Ground) -> None:
    cell = g.open()
    got = answer(
        cell,
        """
        import shutil, subprocess
        status = dict(line.split(':\\t') for line in open('/proc/self/status').read().splitlines() if ':\\t' in line)
        ids = {}
        for name in ('su', 'mount', 'passwd', 'newgrp', 'chsh', 'sudo', 'fusermount', 'fusermount3', 'newuidmap'):
            path = shutil.which(name, path='/bin:/usr/bin:/sbin:/usr/sbin')
            if path is None or not os.stat(path).st_mode & stat.S_ISUID: continue
            # stopped before its first instruction is over, so that what it became can be seen
            told, tell = os.pipe()
            p = subprocess.Popen([path, '--no-such-option-of-it'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT)
            try:
                line = next(l for l in open(f'/proc/{p.pid}/status') if l.startswith('Uid:'))
                ids[name] = sorted(set(map(int, line.split()[1:])))
            except OSError: pass
            p.kill(); p.wait()
        print(json.dumps([status['NoNewPrivs'], ids, os.getuid(), attempt(lambda: os.setuid(0)), attempt(lambda: os.setgid(0)),
                          attempt(lambda: os.setgroups([0])), status['CapEff']]))
        """,
    )
    assert got[0] == "1"
    assert all(ids == [got[2]] for ids in got[1].values()), got
    if g.wall.name != "process":
        assert set(got[3:6]) <= {errno.EPERM, errno.EINVAL} and int(got[6], 16) == 0


# ------------------------------------------------------------------------------------------- bombs in odd places


@check()
def a_bomb_of_shared_pages_ends(g: Ground) -> None:
    """Anonymous memory that is shared is nobody's heap: no limit on a process's own data counts it."""
    cell = g.open(memory_bytes=128 << 20)
    code = """
    import mmap, time
    held = []
    for _ in range(200):
        m = mmap.mmap(-1, 4 << 20); held.append(m)
        for at in range(0, 4 << 20, 4096): m[at] = 1
        time.sleep(0.01)
    print('held')
    """
    try:
        result = py(cell, code)
    except CellLost as lost:
        # the kernel gives up on a process that dies with shared memory, and may take the keeper, too: the player's doing
        assert lost.during_run
        cell = g.open()
    else:
        assert result.rc != 0 and b"held" not in result.stdout, result
    still_works(cell)


@check(process=NO_FILES)
def a_bomb_in_shared_memory_ends(g: Ground) -> None:
    cell = g.open(disk_bytes=8 << 20)
    got = answer(
        cell,
        """
        total, number = 0, 0
        try:
            for n in range(64):
                with open(f'/dev/shm/{n}', 'wb', buffering=0) as file: total += file.write(bytes(1 << 20))
        except OSError as error: number = error.errno
        for name in os.listdir('/dev/shm'): os.unlink(f'/dev/shm/{name}')
        print(json.dumps([total, number]))
        """,
    )
    assert got[0] <= 8 << 20 and got[1] in (errno.ENOSPC, errno.EDQUOT)
    still_works(cell)


@check()
def a_hundred_thousand_files_are_no_trouble(g: Ground) -> None:
    """In one folder and in many: written by a run, listed, captured within caps, removed with the cell."""
    cell = g.open(disk_files=120_000, disk_bytes=256 << 20, memory_bytes=1 << 30)
    code = """
    import os
    os.mkdir('flat')
    for n in range(50_000): os.close(os.open(f'flat/f{n:05}', os.O_CREAT | os.O_WRONLY))
    for d in range(100):
        os.mkdir(f'd{d:02}')
        for n in range(500): os.close(os.open(f'd{d:02}/f{n:03}', os.O_CREAT | os.O_WRONLY))
    print(sum(len(f) for _, _, f in os.walk('.')))
    """
    assert said(cell, code, wall_s=4 * LONG, cpu_s=4 * LONG) == "100000"
    begin = time.monotonic()
    listing = cell.list(max_entries=1000)
    assert [e.path for e in listing.entries[:3]] == ["d00", "d00/f000", "d00/f001"]
    assert len(listing.entries) == 1000 and listing.left_out in (-1, 100_101 - 1000)
    assert cell.read("flat/f49999", max_bytes=1) == b""
    capture = cell.capture(max_file_bytes=10, max_bytes=10, max_files=4096, max_depth=9)
    assert len(capture.files) == 4096 and 0 < len(capture.skipped) < 5000
    assert time.monotonic() - begin < LONG
    still_works(cell)
    cell.close()
    assert time.monotonic() - begin < 2 * LONG


# ------------------------------------------------------------------------------------------- races with the file tools


@contextlib.contextmanager
def racing(cell: Cell, code: str, there: str = "") -> Iterator[None]:
    """A player's process that runs ``code`` over and over while the file tools work; it must get somewhere."""
    python = said(cell, "import sys; print(sys.executable)")
    script = f"import os, socket\nrounds, THERE = 0, {there!r}\ndef turn():\n"
    script += textwrap.indent(textwrap.dedent(code), "    ")
    script += """
while True:
    try: turn()
    except OSError: pass
    rounds += 1
    if rounds % 50 == 0:
        with open('.rounds', 'w') as file: file.write(str(rounds))
        os.rename('.rounds', 'rounds')
"""
    with echo(cell, wall_s=4 * LONG) as (_, sock):
        ask(sock, {"spawn": [python, "-c", script]})
        assert eventually(lambda: "rounds" in [e.path for e in cell.list(max_entries=99).entries])
        before = int(cell.read("rounds", max_bytes=99))
        yield
        assert eventually(lambda: int(cell.read("rounds", max_bytes=99)) > before + 100)


def turns(least: int = 200, seconds: float = 1.0) -> Iterator[int]:
    end, n = time.monotonic() + seconds, 0
    while n < least or time.monotonic() < end:
        yield n
        n += 1


AS_IT_WAS = [("file", "SECRET"), ("sub/file", "SECRET")]
HIDE = """
import os, sys
for path in ('file', 'sub/file'):
    os.makedirs(os.path.dirname(f'{sys.argv[1]}/{path}'), exist_ok=True)
    with open(f'{sys.argv[1]}/{path}', 'w') as file: file.write('SECRET')
"""
LOOK = """
import os, sys
top = sys.argv[1]
print(sorted((os.path.relpath(f'{at}/{n}', top), open(f'{at}/{n}').read()) for at, _, files in os.walk(top) for n in files))
"""


@contextlib.contextmanager
def outside(g: Ground, cell: Cell) -> Iterator[str]:
    """A folder outside the workspace, where the file tools would find it if they were led there: in the cell, or on this
    machine if they work from there. Nothing in it is changed."""
    with tempfile.TemporaryDirectory() as name:
        if g.wall.name == "process" or getattr(g.wall, "mode", "") == "run":
            (Path(name) / "sub").mkdir()
            for path in ("file", "sub/file"):
                (Path(name) / path).write_text("SECRET")
            yield name
            found = [
                (str(p.relative_to(name)), p.read_text())
                for p in sorted(Path(name).rglob("*"))
                if p.is_file()
            ]
        else:
            place = said(cell, "import os; print(os.path.expanduser('~/outside'))")
            said(cell, HIDE, place)
            yield place
            found = eval(said(cell, LOOK, place))
        assert found == AS_IT_WAS


def tools_see_only(cell: Cell, path: str, allowed: set[bytes]) -> None:
    """One turn of all file tools at ``path``: they refuse, or they see what the workspace has."""
    with contextlib.suppress(CellFileError):
        assert cell.read(path, max_bytes=100) in allowed
    with contextlib.suppress(CellFileError):
        cell.write(path, b"new")
    for entry in cell.list(max_entries=99).entries:
        assert "sub" not in entry.path, "a listing went through a link"


@check()
def races_of_symbolic_links_lead_nowhere(g: Ground) -> None:
    cell = g.open({"real/file": b"plain"})
    with outside(g, cell) as there:
        said(cell, f"import os; os.symlink({there!r}, 'link')")
        swap = """
        for a, b in (('real', 'aside'), ('link', 'real'), ('real', 'link'), ('aside', 'real')):
            try: os.rename(a, b)
            except OSError:
                import shutil
                for path in ('real', 'aside', 'link'):
                    os.unlink(path) if os.path.islink(path) else shutil.rmtree(path, ignore_errors=True)
                os.mkdir('real'); os.symlink(THERE, 'link')
                with open('real/file', 'w') as file: file.write('plain')
        """
        with racing(cell, swap, there):
            for _ in turns():
                tools_see_only(cell, "real/file", {b"plain", b"new", b""})
        assert b"SECRET" not in cell.capture(**ALL).files.values()


@check()
def races_of_a_link_for_a_file_lead_nowhere(g: Ground) -> None:
    cell = g.open({"file": b"plain"})
    with outside(g, cell) as there:
        swap = """
        os.symlink(f'{THERE}/file', 'a'); os.rename('a', 'file')
        with open('b', 'w') as file: file.write('plain')
        os.rename('b', 'file')
        """
        with racing(cell, swap, there):
            for _ in turns():
                tools_see_only(cell, "file", {b"plain", b"new", b""})
        assert b"SECRET" not in cell.capture(**ALL).files.values()


@check()
def races_of_hard_links_write_through_nothing(g: Ground) -> None:
    cell = g.open({"kept/one": b"KEPT", "file": b"plain"})
    swap = """
    os.link('kept/one', 'a'); os.rename('a', 'file')
    with open('b', 'w') as file: file.write('plain')
    os.rename('b', 'file')
    """
    with racing(cell, swap):
        for _ in turns():
            tools_see_only(cell, "file", {b"plain", b"new", b"KEPT", b""})
            assert cell.read("kept/one", max_bytes=10) == b"KEPT"


@check()
def races_of_renames_block_nothing(g: Ground) -> None:
    """A path is a file, a FIFO, a folder, a socket, a link and nothing, in turn."""
    cell = g.open({"spot": b"plain"})
    with outside(g, cell) as there:
        swap = """
        def put(make):
            make()
            try: os.rename('next', 'spot')
            except OSError:
                os.rename('spot', 'old'); os.rename('next', 'spot')
                os.rmdir('old') if os.path.isdir('old') and not os.path.islink('old') else os.unlink('old')
        def file():
            with open('next', 'w') as f: f.write('plain')
        def sock(): socket.socket(socket.AF_UNIX).bind('next')
        for name in ('next', 'old'):
            try: os.unlink(name)
            except OSError:
                try: os.rmdir(name)
                except OSError: pass
        for make in (file, lambda: os.mkfifo('next'), file, lambda: os.mkdir('next'), sock,
                     lambda: os.symlink(f'{THERE}/file', 'next')): put(make)
        """
        with racing(cell, swap, there):
            for _ in turns():
                tools_see_only(cell, "spot", {b"plain", b"new", b""})
                with contextlib.suppress(CellFileError):
                    cell.write("spot/under", b"new")
                with contextlib.suppress(CellFileError):
                    cell.read("spot/file", max_bytes=9)
        assert b"SECRET" not in cell.capture(**ALL).files.values()
