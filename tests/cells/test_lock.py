"""The kernel's locks: the filter decides every call as its list says, on both machines; each lock holds when tried."""

from __future__ import annotations

import errno
import json
import os
import platform
import struct
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tiltyard.cells.inside import lock
from tiltyard.cells.programs import package_lines

pytestmark = pytest.mark.skipif(lock.supported() is not None, reason=str(lock.supported()))

ALLOW, KILL = "allow", "kill"
X86_64, AARCH64 = 0xC000003E, 0xC00000B7
NEWUSER, NEWNS, THREAD = 0x10000000, 0x00020000, 0x003D0F00


def decide(program: bytes, audit: int, number: int, *args: int) -> str | int:
    """What the kernel would answer: a small interpreter of the program, written from the kernel's documentation."""
    words = {0: number, 4: audit}
    for n in range(6):
        value = args[n] if n < len(args) else 0
        words[16 + 8 * n] = value & 0xFFFFFFFF
        words[20 + 8 * n] = value >> 32
    lines = [struct.unpack_from("HBBI", program, at) for at in range(0, len(program), 8)]
    at = accumulator = 0
    for _ in range(len(lines)):
        op, yes, no, k = lines[at]
        at += 1
        if op == 0x20:
            accumulator = words[k]
        elif op == 0x05:
            at += k
        elif op in (0x15, 0x25, 0x35, 0x45):
            holds = {
                0x15: accumulator == k,
                0x25: accumulator > k,
                0x35: accumulator >= k,
                0x45: accumulator & k,
            }
            at += yes if holds[op] else no
        else:
            assert op == 0x06, f"an instruction that the filter should not have: {op:#x}"
            if k >> 16 == 0x0005:
                return k & 0xFFFF
            return {0x7FFF0000: ALLOW, 0x80000000: KILL}[k]
    raise AssertionError("the program does not end")


# From the kernel's own tables (include/uapi/asm-generic/unistd.h, arch/x86/entry/syscalls/syscall_64.tbl).
NUMBERS = {
    "x86_64": {
        "refused": """ptrace=101 syslog=103 modify_ldt=154 pivot_root=155 adjtimex=159 chroot=161 acct=163 settimeofday=164
            mount=165 umount2=166 swapon=167 swapoff=168 reboot=169 sethostname=170 setdomainname=171 iopl=172 ioperm=173
            init_module=175 delete_module=176 quotactl=179 lookup_dcookie=212 clock_settime=227 mbind=237
            set_mempolicy=238 get_mempolicy=239 kexec_load=246 add_key=248 request_key=249 keyctl=250 migrate_pages=256
            unshare=272 vmsplice=278 move_pages=279 perf_event_open=298 fanotify_init=300 name_to_handle_at=303
            open_by_handle_at=304 clock_adjtime=305 setns=308 process_vm_readv=310 process_vm_writev=311 kcmp=312
            finit_module=313 kexec_file_load=320 bpf=321 userfaultfd=323 shmget=29 shmat=30 semget=64 msgget=68""",
        "allowed": """read=0 write=1 open=2 close=3 mmap=9 mprotect=10 brk=12 rt_sigaction=13 pipe=22 select=23
            sched_yield=24 getpid=39 connect=42 bind=49 listen=50 fork=57 vfork=58 execve=59 exit=60 wait4=61 kill=62
            fcntl=72 ftruncate=77 rename=82 symlink=88 gettimeofday=96 getrusage=98 getuid=102 setuid=105 arch_prctl=158
            gettid=186 futex=202 sched_getaffinity=204 epoll_create=213 clock_gettime=228 exit_group=231 tgkill=234
            openat=257 unlinkat=263 inotify_init1=294 pipe2=293 seccomp=317 getrandom=318 execveat=322 copy_file_range=326
            statx=332 rseq=334 pidfd_send_signal=424 pidfd_open=434 close_range=436 openat2=437 faccessat2=439
            landlock_create_ruleset=444 landlock_restrict_self=446 futex_waitv=449 fchmodat2=452 mseal=462""",
        "checked": """clone=56 socket=41 socketpair=53 prlimit64=302 personality=135 ioctl=16 setpriority=141
            sched_setaffinity=203 sched_setscheduler=144 sched_setattr=314 ioprio_set=251""",
        "unknown": "clone3=435 memfd_create=319 setxattrat=463 later=500 much_later=100000",
    },
    "aarch64": {
        "refused": """ptrace=117 syslog=116 pivot_root=41 adjtimex=171 chroot=51 acct=89 settimeofday=170 mount=40
            umount2=39 swapon=224 swapoff=225 reboot=142 sethostname=161 setdomainname=162 init_module=105
            delete_module=106 quotactl=60 lookup_dcookie=18 clock_settime=112 mbind=235 get_mempolicy=236
            set_mempolicy=237 kexec_load=104 add_key=217 request_key=218 keyctl=219 migrate_pages=238 unshare=97
            vmsplice=75 move_pages=239 perf_event_open=241 fanotify_init=262 name_to_handle_at=264 open_by_handle_at=265
            clock_adjtime=266 setns=268 process_vm_readv=270 process_vm_writev=271 kcmp=272 finit_module=273
            kexec_file_load=294 bpf=280 userfaultfd=282 shmget=194 shmat=196 semget=190 msgget=186""",
        "allowed": """read=63 write=64 openat=56 close=57 mmap=222 mprotect=226 brk=214 rt_sigaction=134 pipe2=59
            sched_yield=124 getpid=172 connect=203 bind=200 listen=201 execve=221 exit=93 wait4=260 kill=129 fcntl=25
            ftruncate=46 symlinkat=36 gettimeofday=169 getrusage=165 getuid=174 setuid=146 gettid=178 futex=98
            sched_getaffinity=123 epoll_create1=20 clock_gettime=113 exit_group=94 tgkill=131 unlinkat=35
            inotify_init1=26 seccomp=277 getrandom=278 execveat=281 copy_file_range=285 statx=291 rseq=293
            pidfd_send_signal=424 pidfd_open=434 close_range=436 openat2=437 faccessat2=439 landlock_restrict_self=446
            fchmodat2=452 mseal=462""",
        "checked": """clone=220 socket=198 socketpair=199 prlimit64=261 personality=92 ioctl=29 setpriority=140
            sched_setaffinity=122 sched_setscheduler=119 sched_setattr=274 ioprio_set=30""",
        "unknown": "clone3=435 memfd_create=279 setxattrat=463 later=500 much_later=100000",
    },
}
EVERYWHERE = """io_uring_setup=425 io_uring_enter=426 io_uring_register=427 open_tree=428 move_mount=429 fsopen=430
    fsconfig=431 fsmount=432 fspick=433 pidfd_getfd=438 process_madvise=440 mount_setattr=442 quotactl_fd=443
    memfd_secret=447 process_mrelease=448 set_mempolicy_home_node=450 statmount=457 listmount=458 lsm_set_self_attr=460"""
MACHINES = [("x86_64", X86_64), ("aarch64", AARCH64)]


def table(machine: str, kind: str) -> dict[str, int]:
    text = NUMBERS[machine][kind] + (f" {EVERYWHERE}" if kind == "refused" else "")
    return {name: int(number) for name, _, number in (item.partition("=") for item in text.split())}


@pytest.mark.parametrize(("machine", "audit"), MACHINES)
def test_the_filter_refuses_what_reaches_out_and_allows_what_programs_need(machine: str, audit: int) -> None:
    program = lock.filter_program(machine)
    answers = {name: decide(program, audit, number) for name, number in table(machine, "refused").items()}
    assert answers == dict.fromkeys(answers, errno.EPERM)
    answers = {name: decide(program, audit, number) for name, number in table(machine, "allowed").items()}
    assert answers == dict.fromkeys(answers, ALLOW)
    answers = {name: decide(program, audit, number) for name, number in table(machine, "unknown").items()}
    assert answers == dict.fromkeys(answers, errno.ENOSYS)


@pytest.mark.parametrize(("machine", "audit"), MACHINES)
def test_the_filter_looks_at_arguments(machine: str, audit: int) -> None:
    program = lock.filter_program(machine)
    number = table(machine, "checked")

    def ask(name: str, *args: int) -> str | int:
        return decide(program, audit, number[name], *args)

    assert ask("clone", 17) == ALLOW
    assert ask("clone", THREAD) == ALLOW
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert ask("clone", flag | 17) == errno.EPERM, hex(flag)
        assert ask("clone", flag | THREAD) == errno.EPERM, hex(flag)
    for name in ("socket", "socketpair"):
        assert ask(name, 1, 1) == ALLOW
        for family in (0, 2, 10, 16, 17, 38, 40):  # any, inet, inet6, netlink, packet, alg, vsock
            assert ask(name, family, 1) == errno.EAFNOSUPPORT, family
    for name in ("prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setattr"):
        assert ask(name, 0, 7) == ALLOW, name
        assert ask(name, 1, 7) == errno.EPERM, name
    for name in ("setpriority", "ioprio_set"):
        assert ask(name, 0, 0) == ALLOW, name
        assert ask(name, 0, 1) == errno.EPERM, name
    assert ask("personality", 0xFFFFFFFF) == ALLOW
    assert ask("personality", 0x0400000) == errno.EPERM
    assert ask("ioctl", 0, 0x5401) == ALLOW
    assert ask("ioctl", 0, 0x5412) == errno.EPERM
    assert ask("ioctl", 0, 0x541C) == errno.EPERM
    assert ask("ioctl", 0, 0x5412 | 1 << 40) == errno.EPERM  # the kernel looks at the low half only


@pytest.mark.parametrize(("machine", "audit"), MACHINES)
def test_the_filter_decides_every_number_and_fits_the_kernel(machine: str, audit: int) -> None:
    program = lock.filter_program(machine)
    assert len(program) // 8 <= 4096
    assert {decide(program, audit, n) for n in range(1024)} <= {
        ALLOW,
        errno.EPERM,
        errno.ENOSYS,
        errno.EAFNOSUPPORT,
    }


@pytest.mark.parametrize(("machine", "audit"), MACHINES)
def test_calls_of_another_machine_kill(machine: str, audit: int) -> None:
    program = lock.filter_program(machine)
    for foreign in {X86_64, AARCH64, 0x40000003, 0x40000028} - {
        audit
    }:  # i386 and arm, whose numbers mean other calls
        assert decide(program, foreign, 0) == KILL
    if machine == "x86_64":
        assert decide(program, audit, 0x40000000 | 1) == KILL  # x32


# ------------------------------------------------------------------------------------------- tried, on this machine


def trial(code: str) -> Any:
    """Run code that has ``lock`` in a process of its own, which may lock itself up; what it printed, as JSON."""
    lines = (
        f"{package_lines()}\nimport ctypes, errno, json, os, sys\nfrom _tiltyard import lock\n"
        + textwrap.dedent(code)
    )
    done = subprocess.run([sys.executable, "-S", "-c", lines], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


CALL = """
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    ctypes.set_errno(0)
    return libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) for a in args]), ctypes.get_errno()
"""


def test_the_installed_filter_answers_as_the_program_says() -> None:
    numbers = table(platform.machine(), "refused")
    checked = table(platform.machine(), "checked")
    got = trial(
        CALL
        + f"""
lock.no_new_privileges()
lock.Filter(lock.filter_program()).install()
refused = {{name: call(number, -1, -1, -1, -1, -1, -1) for name, number in {numbers!r}.items()}}
print(json.dumps([refused, call({checked["clone"]}, {NEWUSER | 17}, 0, 0, 0, 0), call({checked["socket"]}, 2, 1, 0)]))
"""
    )
    refused, clone, inet = got
    assert refused == {name: [-1, errno.EPERM] for name in numbers}
    assert clone == [-1, errno.EPERM]
    assert inet == [-1, errno.EAFNOSUPPORT]


def test_threads_and_processes_still_start_under_the_filter() -> None:
    assert trial(
        """
        import subprocess, threading
        lock.no_new_privileges()
        lock.Filter(lock.filter_program()).install()
        seen = []
        t = threading.Thread(target=lambda: seen.append(1)); t.start(); t.join()
        print(json.dumps([seen, subprocess.run(["/bin/sh", "-c", "exit 3"]).returncode]))
        """
    ) == [[1], 3]


def test_landlock_lets_nothing_be_written_elsewhere(tmp_path: Path) -> None:
    if not lock.landlock_abi():
        pytest.skip("this kernel has no Landlock, or it is turned off")
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "file").write_text("kept")
    got = trial(
        f"""
        def attempt(act):
            try:
                act()
                return 0
            except OSError as error:
                return error.errno
        lock.no_new_privileges()
        lock.landlock_restrict(lock.Landlock(lock.landlock_abi(), [{str(inside)!r}], ["/dev"]).make())
        print(json.dumps([
            attempt(lambda: open({str(inside / "new")!r}, "w").close()),
            attempt(lambda: open("/dev/null", "w").close()),
            attempt(lambda: open({str(outside / "file")!r}).close()),
            attempt(lambda: open({str(outside / "file")!r}, "a").close()),
            attempt(lambda: open({str(outside / "new")!r}, "w").close()),
            attempt(lambda: os.unlink({str(outside / "file")!r})),
            attempt(lambda: os.mkdir({str(outside / "folder")!r})),
        ]))
        """
    )
    assert got == [0, 0, 0] + [errno.EACCES] * 4
    assert (outside / "file").read_text() == "kept"


def test_close_others_keeps_just_what_it_is_told() -> None:
    got = trial(
        """
        fds = [os.dup(1) for _ in range(20)]
        lock.close_others([0, 1, 2, fds[3], fds[3], fds[10]])
        def is_open(fd):
            try: os.fstat(fd); return True
            except OSError: return False
        print(json.dumps([n for n, fd in enumerate(fds) if is_open(fd)]))
        """
    )
    assert got == [3, 10]


def test_capabilities_are_given_up_for_good() -> None:
    got = trial(
        """
        lock.no_new_privileges()
        lock.holding(())()
        status = dict(line.rstrip("\\n").split(":\\t", 1) for line in open("/proc/self/status") if ":\\t" in line)
        try:
            lock.holding([lock.CAP_KILL])()
            again = "had"
        except PermissionError:
            again = "refused"
        print(json.dumps([status["CapPrm"], status["CapEff"], status["CapInh"], status["NoNewPrivs"], again]))
        """
    )
    assert got == ["0" * 16, "0" * 16, "0" * 16, "1", "refused"]


def test_the_command_line_can_be_overwritten() -> None:
    got = trial(
        """
        lock.overwrite_arguments(b"another")
        print(json.dumps(open("/proc/self/cmdline").read().rstrip("\\0")))
        """
    )
    assert got == "another"


def test_a_clone_has_its_own_thread_id() -> None:
    """abort() signals the calling thread: with a stale id it would not end the process by SIGABRT."""
    got = trial(
        """
        def end_of(fork):
            pid = fork()
            if pid == 0:
                ctypes.CDLL(None).abort()
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(json.dumps([end_of(lambda: lock.clone(0)), end_of(lock.fork)]))
        """
    )
    assert got == [-6, -6]


def test_every_step_names_itself_when_it_fails() -> None:
    steps: list[tuple[str, Callable[[], object]]] = [
        ("setns", lambda: lock.setns(-1, NEWNS)),
        ("mount nosuchfs at /nowhere", lambda: lock.mount("none", "/nowhere", "nosuchfs", 0)),
        ("bind /nowhere at /nowhere-either", lambda: lock.bind("/nowhere", "/nowhere-either")),
        ("umount /nowhere", lambda: lock.unmount("/nowhere")),
        ("pivot_root to /nowhere", lambda: lock.pivot("/nowhere", "/nowhere")),
        ("landlock_restrict", lambda: lock.landlock_restrict(-1)),
    ]
    for words, act in steps:
        with pytest.raises(OSError, match=words):
            act()


def test_prepared_steps_are_carried_out_in_order_up_to_the_first_that_fails(tmp_path: Path) -> None:
    first, second, third = (str(tmp_path / name) for name in "abc")
    steps = [*lock.making(first), *lock.making(f"{second}/in/none"), *lock.making(third)]
    with pytest.raises(OSError, match=f"mkdir {second}/in/none: No such file"):
        lock.carry_out(steps)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a"]
    with pytest.raises(OSError, match=f"mkdir {first}: File exists"):
        steps[0]()


def test_the_machine_is_one_that_can_be_locked() -> None:
    assert lock.supported() is None
    assert os.uname().machine in ("x86_64", "aarch64")
    with pytest.raises(KeyError):
        lock.filter_program("mips")
