"""The kernel's locks, through ctypes: namespaces, mounts, capabilities, seccomp, Landlock, descriptors.

Every function here is one thin step that either holds or raises ``OSError`` naming the step; none falls back in
silence. Nothing is remembered between calls but numbers that belong to the machine. Linux on x86-64 and aarch64; on
anything else :func:`supported` says so and :func:`filter_program` refuses.

The C library is called with the interpreter's lock held (``PyDLL``): this code runs in single-threaded processes,
and a fork in mid-call must not leave a lock that nobody holds.
"""

# Paths here are text and bytes for system calls, in processes that must stay small: no pathlib.
# ruff: noqa: PTH208

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import struct
import sys
from collections.abc import Iterable

NEWNS, NEWCGROUP, NEWUTS, NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
NEWUSER, NEWPID, NEWNET = 0x10000000, 0x20000000, 0x40000000
PARENT = 0x00008000
"""The child's parent is the caller's."""
ANY_NAMESPACE = NEWNS | NEWCGROUP | NEWUTS | NEWIPC | NEWUSER | NEWPID | NEWNET

RDONLY, NOSUID, NODEV, NOEXEC = 1, 2, 4, 8
REMOUNT, BIND, REC, PRIVATE = 32, 4096, 16384, 1 << 18
DETACH = 2

CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SYS_PTRACE = 5, 6, 7, 19

_MACHINE = platform.machine()
_libc = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_ulong = ctypes.c_ulong


def supported() -> str | None:
    """None, or why this machine can't be locked by this module at all."""
    if sys.platform != "linux":
        return f"namespaces are a thing of Linux; this is {sys.platform}"
    if _MACHINE not in _ARCHES:
        return f"no system call filter is written for {_MACHINE}; there is one for {' and '.join(_ARCHES)}"
    return None


def _check(result: int, step: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{step}: {os.strerror(number)}")
    return result


def _check_namespaces(result: int, step: str, flags: int) -> int:
    """As _check, in plain words where the kernel's are about something else."""
    number = ctypes.get_errno()
    if result < 0 and number in (errno.ENOSPC, errno.EUSERS):
        raise OSError(
            number, f"{step}: no more namespaces may be made here (see the sysctls user.max_*_namespaces)"
        )
    if result < 0 and number == errno.EPERM and flags & NEWUSER:
        raise OSError(number, f"{step}: this user may make no user namespace here")
    return _check(result, step)


def _call(name: str, *args: object) -> int:
    number = _arch().calls[name]
    return _check(_libc.syscall(ctypes.c_long(number), *args), name)


# ---------------------------------------------------------------- processes


def clone(flags: int) -> int:
    """Fork into new namespaces; 0 in the child. No hook of Python or of the C library runs, which halves its cost.

    Only for a process with one thread. The child's thread id is set for the C library where the kernel tells where
    it keeps it.
    """
    address = _tid_address()
    if address:
        flags |= _CHILD_TID  # or abort() would signal a thread of the parent
    last = (0, address) if _MACHINE == "aarch64" else (address, 0)
    arguments = [_ulong(value) for value in (flags | signal.SIGCHLD, 0, 0, *last)]
    result = _libc.syscall(ctypes.c_long(_arch().calls["clone"]), *arguments)
    if result > 0:
        # A call leaves the free memory that it took in the opposite order: every other child would begin in another
        # memory. One more puts it back. It is refused: no range of descriptors ends below its beginning.
        _libc.syscall(ctypes.c_long(_arch().calls["close_range"]), *arguments)
    return _check_namespaces(result, "clone", flags)


def fork() -> int:
    """The C library's fork, without Python's hooks: 0 in the child. Only for a process with one thread."""
    return _check(_libc.fork(), "fork")


_CHILD_TID = 0x01000000 | 0x00200000  # CLONE_CHILD_SETTID, CLONE_CHILD_CLEARTID
_tid_at: int | None = None


def _tid_address() -> int:
    global _tid_at
    if _tid_at is None:
        found = ctypes.c_void_p()
        failed = _libc.prctl(40, ctypes.byref(found), _ulong(0), _ulong(0), _ulong(0))  # PR_GET_TID_ADDRESS
        _tid_at = 0 if failed else (found.value or 0)
    return _tid_at


def die_with_parent() -> None:
    """SIGKILL for this process when the thread that forked it ends."""
    _prctl("PR_SET_PDEATHSIG", 1, int(signal.SIGKILL))


def set_dumpable(value: bool) -> None:
    """Whether other processes of the same user may look into this one, and whether it owns its own /proc entries."""
    _prctl("PR_SET_DUMPABLE", 4, int(value))


def set_name(name: str) -> None:
    """The process's name, at most 15 bytes of it."""
    _check(
        _libc.prctl(15, ctypes.c_char_p(name.encode()[:15]), _ulong(0), _ulong(0), _ulong(0)), "PR_SET_NAME"
    )


def overwrite_arguments(name: bytes) -> None:
    """Put ``name`` over the command line that others see of this process. Does nothing where it can't be found. A
    child looks where it is: what this process reads would shape its memory."""
    told, tell = os.pipe()
    pid = fork()
    if pid == 0:
        try:
            with open("/proc/self/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            os.write(tell, struct.pack("QQ", int(fields[45]), int(fields[46])))
        finally:
            os._exit(0)
    os.close(tell)
    said = os.read(told, 16)
    os.close(told)
    os.waitpid(pid, 0)
    if len(said) == 16:
        start, end = struct.unpack("QQ", said)
        if 0 < start < end:
            ctypes.memmove(start, name.ljust(end - start, b"\0")[: end - start - 1] + b"\0", end - start)


def fixed_addresses() -> bool:
    """From the next exec on, no address space randomisation: the same layout in every run. True if it is so already.
    Raises OSError where it is not allowed."""
    before = _check(_libc.personality(_ulong(0xFFFFFFFF)), "personality")
    if before & _ADDR_NO_RANDOMIZE:
        return True
    _check(_libc.personality(_ulong(before | _ADDR_NO_RANDOMIZE)), "personality")
    return False


_ADDR_NO_RANDOMIZE = 0x0040000


def close_others(kept: Iterable[int]) -> None:
    """Close every descriptor of this process but these."""
    first = 0
    for fd in sorted(set(kept)):
        if fd > first:
            _close_range(first, fd - 1)
        first = fd + 1
    _close_range(first, 0xFFFFFFFF)


def _close_range(first: int, last: int) -> None:
    try:
        _call("close_range", ctypes.c_uint(first), ctypes.c_uint(last), ctypes.c_uint(0))
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        for fd in [int(name) for name in os.listdir("/proc/self/fd")]:
            if first <= fd <= last:
                try:
                    os.close(fd)
                except OSError:
                    pass  # the listing's own


def pidfd_signal(pidfd: int, number: int) -> None:
    """Send a signal through a pidfd. Raises ProcessLookupError if the process has been reaped."""
    signal.pidfd_send_signal(pidfd, number)


def _prctl(step: str, option: int, value: int, other: int = 0) -> int:
    return _check(_libc.prctl(option, _ulong(value), _ulong(other), _ulong(0), _ulong(0)), step)


# ---------------------------------------------------------------- namespaces and mounts


def unshare(flags: int) -> None:
    _check_namespaces(_libc.unshare(flags), "unshare", flags)


def setns(fd: int, flags: int) -> None:
    _check(_libc.setns(fd, flags), "setns")


def set_hostname(name: str) -> None:
    raw = name.encode()
    _check(_libc.sethostname(raw, len(raw)), "sethostname")


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    _check(
        _libc.mount(
            source.encode(),
            os.fsencode(target),
            kind.encode() if kind else None,
            _ulong(flags),
            options.encode() if options else None,
        ),
        f"mount {kind or source} at {target}",
    )


def bind(source: str, target: str, *, device: bool = False) -> None:
    """Show ``source`` at ``target`` too, with what is mounted below it; read-only, unless it is a device."""
    _check(
        _libc.mount(os.fsencode(source), os.fsencode(target), None, _ulong(BIND | REC), None),
        f"bind {source} at {target}",
    )
    seal(target, NOSUID | NOEXEC if device else NOSUID | NODEV | RDONLY)


def seal(target: str, flags: int) -> None:
    """Set these flags on the mount at ``target`` and on all below it."""
    attributes = struct.pack("QQQQ", flags, 0, 0, 0)  # attributes have the same bits as the flags
    try:
        _call(
            "mount_setattr",
            ctypes.c_int(-100),
            ctypes.c_char_p(os.fsencode(target)),
            ctypes.c_uint(0x8000),  # AT_RECURSIVE
            ctypes.c_char_p(attributes),
            ctypes.c_size_t(len(attributes)),
        )
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        kept = os.statvfs(target).f_flag & (os.ST_NOEXEC | os.ST_NOATIME | os.ST_NODIRATIME | os.ST_RELATIME)
        mount("none", target, None, BIND | REMOUNT | flags | _mount_flags(kept))


def bind_as(source: str, target: str, namespace: int) -> None:
    """As :func:`bind`, read-only, with owners as the maps of a user namespace (a descriptor) have them: what belongs to
    an id of the inside is shown as its partner outside. Not every file system can be shown like this."""
    flags = 1 | os.O_CLOEXEC  # OPEN_TREE_CLONE
    at = _call("open_tree", ctypes.c_int(-100), ctypes.c_char_p(os.fsencode(source)), ctypes.c_uint(flags))
    try:
        attributes = struct.pack("QQQQ", _IDMAP | NOSUID | NODEV | RDONLY, 0, 0, namespace)
        _call(
            "mount_setattr",
            ctypes.c_int(at),
            ctypes.c_char_p(b""),
            ctypes.c_uint(0x1000),  # AT_EMPTY_PATH
            ctypes.c_char_p(attributes),
            ctypes.c_size_t(len(attributes)),
        )
        there = ctypes.c_char_p(os.fsencode(target))
        move = (ctypes.c_int(at), ctypes.c_char_p(b""), ctypes.c_int(-100), there, ctypes.c_uint(4))
        _call("move_mount", *move)  # MOVE_MOUNT_F_EMPTY_PATH
    finally:
        os.close(at)


_IDMAP = 0x00100000


def _mount_flags(kept: int) -> int:
    relatime = 1 << 21 if kept & os.ST_RELATIME else 0
    same = os.ST_NOEXEC | os.ST_NOATIME | os.ST_NODIRATIME  # the same bits in both calls
    return relatime | kept & same


def pivot(new_root: str, old_root: str) -> None:
    """Make ``new_root`` the root; what was the root appears at ``old_root``, a folder below the new one."""
    _check(
        _libc.syscall(
            ctypes.c_long(_arch().calls["pivot_root"]),
            ctypes.c_char_p(os.fsencode(new_root)),
            ctypes.c_char_p(os.fsencode(old_root)),
        ),
        f"pivot_root to {new_root}",
    )
    os.chdir("/")


def unmount(target: str) -> None:
    _check(_libc.umount2(os.fsencode(target), DETACH), f"umount {target}")


# ---------------------------------------------------------------- users and capabilities


def set_file_owner(uid: int, gid: int) -> None:
    """What this process makes belongs to ``uid`` and ``gid`` from now on. Its own capabilities over files go with
    it: raise them again with :func:`set_capabilities`."""
    _libc.setfsgid(gid)
    _libc.setfsuid(uid)
    if (_libc.setfsuid(uid), _libc.setfsgid(gid)) != (uid, gid):  # each returns the value before the call
        raise OSError(errno.EPERM, f"setfsuid to {uid}:{gid}: the ids did not change")


def set_capabilities(kept: Iterable[int]) -> None:
    """Hold exactly these capabilities, effective and permitted; none inheritable, so none survives an exec."""
    mask = sum(1 << cap for cap in kept)
    low, high = mask & 0xFFFFFFFF, mask >> 32
    header = struct.pack("Ii", 0x20080522, 0)
    data = struct.pack("6I", low, low, 0, high, high, 0)
    _check(_libc.capset(ctypes.c_char_p(header), ctypes.c_char_p(data)), "capset")


def no_new_privileges() -> None:
    """No exec may gain anything, neither by set-user-id nor by file capabilities, from now on and for children."""
    _prctl("PR_SET_NO_NEW_PRIVS", 38, 1)


# ---------------------------------------------------------------- the system call filter


class _Arch:
    """Numbers of one machine: its audit name, calls that this module makes, calls that the filter refuses."""

    def __init__(
        self, audit: int, calls: dict[str, int], refused: Iterable[int], checked: dict[str, int]
    ) -> None:
        self.audit = audit
        self.calls = calls
        self.refused = frozenset(refused)
        self.checked = checked


# The same numbers on every machine that Linux has gained since 2019 or so.
_REFUSED_EVERYWHERE = (
    *(425, 426, 427),  # io_uring: work that no filter sees
    *(
        428,
        429,
        430,
        431,
        432,
        433,
        442,
        457,
        458,
        467,
    ),  # open_tree, move_mount, fs*, mount_setattr, *mount, …attr
    *(438, 440, 448),  # pidfd_getfd, process_madvise, process_mrelease
    443,  # quotactl_fd
    447,  # memfd_secret
    450,  # set_mempolicy_home_node
    *(459, 460, 461),  # lsm_*
)
_AUDIT_X86_64 = 0xC000003E
_SCHED = ("sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr")
_NEWEST = 462  # mseal; what comes later is unknown here, and so refused

_COMMON = {
    "open_tree": 428,
    "move_mount": 429,
    "close_range": 436,
    "mount_setattr": 442,
    "landlock_create": 444,
    "landlock_add": 445,
}
_COMMON |= {"landlock_restrict": 446}

_ARCHES = {
    "x86_64": _Arch(
        _AUDIT_X86_64,
        {"clone": 56, "pivot_root": 155, "seccomp": 317} | _COMMON,
        (
            *(101, 310, 311, 312),  # ptrace, process_vm_readv, process_vm_writev, kcmp
            *(103, 153, 154, 172, 173),  # syslog, vhangup, modify_ldt, iopl, ioperm
            *(155, 161, 165, 166, 272, 308),  # pivot_root, chroot, mount, umount2, unshare, setns
            *(159, 164, 227, 305),  # adjtimex, settimeofday, clock_settime, clock_adjtime
            *(163, 167, 168, 169, 170, 171, 179),  # acct, swapon, swapoff, reboot, set…name, quotactl
            *(134, 136, 139, 156, 174, 177, 178, 180, 212, 236),  # uselib, ustat, sysfs, _sysctl, … vserver
            *(175, 176, 313, 246, 320),  # modules, kexec
            *(237, 238, 239, 256, 279),  # mbind, *_mempolicy, migrate_pages, move_pages
            *(248, 249, 250),  # keyrings: shared by all that have one uid
            *(278, 298, 300, 301, 303, 304),  # vmsplice, perf_event_open, fanotify, file handles
            *(321, 323),  # bpf, userfaultfd
            *(29, 30, 31, 64, 65, 66, 68, 69, 70, 71, 220),  # System V ipc: memory that belongs to no process
        ),
        {
            "clone": 56,
            "clone3": 435,
            "socket": 41,
            "socketpair": 53,
            "prlimit64": 302,
            "personality": 135,
            "ioctl": 16,
            "memfd_create": 319,
            "sched_setaffinity": 203,
            "sched_setscheduler": 144,
            "sched_setparam": 142,
            "sched_setattr": 314,
            "setpriority": 141,
            "ioprio_set": 251,
        },
    ),
    "aarch64": _Arch(
        0xC00000B7,
        {"clone": 220, "pivot_root": 41, "seccomp": 277} | _COMMON,
        (
            *(117, 270, 271, 272),
            *(116, 58),  # syslog, vhangup
            *(41, 51, 40, 39, 97, 268),
            *(171, 170, 112, 266),
            *(89, 224, 225, 142, 161, 162, 60),
            *(18, 42),  # lookup_dcookie, nfsservctl
            *(105, 106, 273, 104, 294),
            *(235, 236, 237, 238, 239),
            *(217, 218, 219),
            *(75, 241, 262, 263, 264, 265),
            *(280, 282),
            *(186, 187, 188, 189, 190, 191, 192, 193, 194, 195, 196, 197),  # System V ipc
        ),
        {
            "clone": 220,
            "clone3": 435,
            "socket": 198,
            "socketpair": 199,
            "prlimit64": 261,
            "personality": 92,
            "ioctl": 29,
            "memfd_create": 279,
            "sched_setaffinity": 122,
            "sched_setscheduler": 119,
            "sched_setparam": 118,
            "sched_setattr": 274,
            "setpriority": 140,
            "ioprio_set": 30,
        },
    ),
}


def _arch() -> _Arch:
    try:
        return _ARCHES[_MACHINE]
    except KeyError:
        raise OSError(errno.ENOSYS, f"{supported()}") from None


_Line = tuple[int, int, int, int]
_Code = list[_Line]
_LOAD, _JUMP, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x05, 0x15, 0x35, 0x45, 0x06
_ALLOW: _Line = (_RETURN, 0, 0, 0x7FFF0000)
_KILL: _Line = (_RETURN, 0, 0, 0x80000000)
_AF_UNIX, _TIOCSTI, _TIOCLINUX = 1, 0x5412, 0x541C


def _fail(number: int) -> _Line:
    return _RETURN, 0, 0, 0x00050000 | number


def filter_program(machine: str | None = None) -> bytes:
    """The filter that every process of a cell lives under, as the kernel takes it (an array of sock_filter).

    Refused with EPERM: what reaches other processes' memory, mounts, namespaces, the clock, the kernel's modules and
    keyrings, and what hides work from accounting. Refused as if the kernel did not know it (ENOSYS), so that callers
    fall back: ``clone3`` (its flags can't be looked at), ``memfd_create`` (memory in no cap of this user), and
    everything newer than this list. Sockets are of the local family only. Another machine's calls kill the process.
    """
    arch = _ARCHES[machine or _MACHINE]
    low = 16  # the first argument's low half, little endian; all that is looked at are ints to the kernel
    unix_only = [(_LOAD, 0, 0, low), (_EQUAL, 0, 1, _AF_UNIX), _ALLOW, _fail(errno.EAFNOSUPPORT)]
    own = [(_LOAD, 0, 0, low), (_EQUAL, 0, 1, 0), _ALLOW, _fail(errno.EPERM)]
    looked_at = {
        "clone": [(_LOAD, 0, 0, low), (_ANY_BIT, 0, 1, ANY_NAMESPACE), _fail(errno.EPERM), _ALLOW],
        "clone3": [_fail(errno.ENOSYS)],
        "memfd_create": [_fail(errno.ENOSYS)],
        "socket": unix_only,
        "socketpair": unix_only,
        # a process's own limits, priority and processors only, never the keeper's
        **dict.fromkeys(("prlimit64", *_SCHED), own),
        **{name: [(_LOAD, 0, 0, low + 8), *own[1:]] for name in ("setpriority", "ioprio_set")},
        # asking is fine
        "personality": [(_LOAD, 0, 0, low), (_EQUAL, 0, 1, 0xFFFFFFFF), _ALLOW, _fail(errno.EPERM)],
        "ioctl": [
            (_LOAD, 0, 0, low + 8),
            (_EQUAL, 1, 0, _TIOCSTI),
            (_EQUAL, 0, 1, _TIOCLINUX),
            _fail(errno.EPERM),
            _ALLOW,
        ],
    }
    decided: dict[int, _Code] = {number: [_fail(errno.EPERM)] for number in arch.refused}
    decided |= {number: [_fail(errno.EPERM)] for number in _REFUSED_EVERYWHERE}
    decided |= {arch.checked[name]: code for name, code in looked_at.items()}
    ranges: list[tuple[int, _Code]] = []
    for number in range(_NEWEST + 1):
        code = decided.get(number, [_ALLOW])
        if not ranges or ranges[-1][1] != code:
            ranges.append((number, code))
    ranges.append((_NEWEST + 1, [_fail(errno.ENOSYS)]))
    if arch.audit == _AUDIT_X86_64:
        ranges.append((0x40000000, [_KILL]))  # the numbers of the x32 ABI
    code = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, arch.audit), _KILL, (_LOAD, 0, 0, 0), *_search(ranges)]
    return b"".join(struct.pack("HBBI", *line) for line in code)


def _search(ranges: list[tuple[int, _Code]]) -> _Code:
    """Code that finds the range a number is in, in as few steps as can be: the kernel tries every number when the
    filter is installed, and most calls pass through it."""
    if len(ranges) == 1:
        return ranges[0][1]
    middle = len(ranges) // 2
    below, above = _search(ranges[:middle]), _search(ranges[middle:])
    first = ranges[middle][0]
    if len(below) <= 0xFF:
        return [(_AT_LEAST, len(below), 0, first), *below, *above]
    return [(_AT_LEAST, 0, 1, first), (_JUMP, 0, 0, len(below)), *below, *above]


class Filter:
    """A filter ready to be installed; made once, used after every fork."""

    def __init__(self, program: bytes) -> None:
        self._program = ctypes.create_string_buffer(program, len(program))
        self._header = ctypes.create_string_buffer(
            struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(self._program))
        )

    def install(self) -> None:
        """For this process and all that it will fork. Needs :func:`no_new_privileges` before."""
        for flags in (4, 0):  # SPEC_ALLOW: no slower branches for it; old kernels don't know the flag
            try:
                _call("seccomp", ctypes.c_uint(1), ctypes.c_uint(flags), self._header)
                return
            except OSError as error:
                if not flags or error.errno != errno.EINVAL:
                    raise


# ---------------------------------------------------------------- Landlock

_READ = 1 << 0 | 1 << 2 | 1 << 3  # execute, read_file, read_dir
_WRITE_FILE, _TRUNCATE, _IOCTL = 1 << 1, 1 << 14, 1 << 15


def landlock_abi() -> int:
    """The version of Landlock in this kernel; 0 if it has none or it is turned off."""
    try:
        return _call("landlock_create", None, ctypes.c_size_t(0), ctypes.c_uint(1))
    except OSError:
        return 0


def landlock_ruleset(abi: int, writable: Iterable[str], devices: Iterable[str]) -> int:
    """A ruleset's descriptor: read anything below /, write below ``writable``, read and write ``devices``.

    From version 4 on no TCP; from 6 on no abstract socket and no signal may leave the group of processes that
    restricts itself. Build it after the mounts that it names: rules hold on to inodes.
    """
    handled = (1 << 13) - 1
    handled |= (1 << 13 if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0) | (_IOCTL if abi >= 5 else 0)
    attributes = struct.pack("QQQ", handled, 3 if abi >= 4 else 0, 3 if abi >= 6 else 0)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    ruleset = _call("landlock_create", ctypes.c_char_p(attributes), ctypes.c_size_t(size), ctypes.c_uint(0))
    rules = [("/", _READ), *((path, handled) for path in writable)]
    rules += [(path, (1 << 2 | _WRITE_FILE | _TRUNCATE | _IOCTL) & handled) for path in devices]
    for path, access in rules:
        at = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            rule = struct.pack("=Qi", access, at)
            _call(
                "landlock_add",
                ctypes.c_int(ruleset),
                ctypes.c_int(1),
                ctypes.c_char_p(rule),
                ctypes.c_uint(0),
            )
        finally:
            os.close(at)
    return ruleset


def landlock_restrict(ruleset: int) -> None:
    """Hold this process and all that it will fork to a ruleset. Needs :func:`no_new_privileges` before."""
    _call("landlock_restrict", ctypes.c_int(ruleset), ctypes.c_uint(0))
