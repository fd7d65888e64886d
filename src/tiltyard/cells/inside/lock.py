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
import signal
import struct
import sys
from collections.abc import Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NEWNS, NEWCGROUP, NEWUTS, NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
NEWUSER, NEWPID, NEWNET = 0x10000000, 0x20000000, 0x40000000
PARENT = 0x00008000
"""The child's parent is the caller's."""
ANY_NAMESPACE = NEWNS | NEWCGROUP | NEWUTS | NEWIPC | NEWUSER | NEWPID | NEWNET

RDONLY, NOSUID, NODEV, NOEXEC = 1, 2, 4, 8
REMOUNT, BIND, REC, PRIVATE = 32, 4096, 16384, 1 << 18
DETACH = 2

CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SYS_PTRACE = 5, 6, 7, 19

_MACHINE = os.uname().machine
_libc = ctypes.PyDLL(None, use_errno=True)
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


_KINDS = {"i": ctypes.c_int, "u": ctypes.c_uint, "l": ctypes.c_long, "L": _ulong, "p": ctypes.c_void_p}


def _function(name: str, arguments: str, result: str = "i") -> Any:
    """A function of the C library that takes plain numbers, addresses among them; None if it has none."""
    function = getattr(_libc, name, None)
    if function is not None:
        function.restype, function.argtypes = _KINDS[result], [_KINDS[kind] for kind in arguments]
    return function


_syscall = _function("syscall", "lllllll", "l")
_prctl = _function("prctl", "iLLLL")
_capset = _function("capset", "pp")
_mount = _function("mount", "pppLp")
_mount_words: Any = None
if _mount is not None:
    _mount_words = _libc["mount"]
    _mount_words.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, _ulong, ctypes.c_char_p]
_setfsuid, _setfsgid = _function("setfsuid", "u"), _function("setfsgid", "u")
_setgroups = _function("setgroups", "Lp")
_setresuid, _setresgid = _function("setresuid", "uuu"), _function("setresgid", "uuu")
_mkdir, _chown, _chdir = _function("mkdir", "pu"), _function("chown", "puu"), _function("chdir", "p")


class Prepared:
    """A call of the C library or the kernel with all that it needs, to be made any number of times.

    It is made before a fork and called after it: every object that a new process makes or touches costs it a page of
    memory, and there are dozens of such calls on the way to a cell. Arguments are numbers, and bytes for what is
    pointed to. Raises OSError naming the step.
    """

    __slots__ = ("args", "function", "kept", "step")

    def __init__(self, step: str, function: Any, *args: int | bytes) -> None:
        self.step = step
        self.function = function
        self.kept = [ctypes.create_string_buffer(a) for a in args if isinstance(a, bytes)]
        pointers = iter(self.kept)
        numbers = [ctypes.addressof(next(pointers)) if isinstance(a, bytes) else a for a in args]
        self.args = (*numbers, *[0] * (len(function.argtypes) - len(numbers)))

    def __call__(self) -> int:
        return _check(self.function(*self.args), self.step)


def carry_out(steps: Iterable[Prepared]) -> None:
    """One after the other, until one can't be done: then OSError, naming it."""
    for step in steps:
        if step.function(*step.args) < 0:
            _check(-1, step.step)


def _call(name: str, *args: int | bytes) -> int:
    """A system call that not every C library has a function for."""
    return _calling(name, *args)()


def _calling(name: str, *args: int | bytes) -> Prepared:
    return Prepared(name, _syscall, _arch().calls[name], *args)


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
    return _check_namespaces(
        _syscall(_arch().calls["clone"], flags | _SIGCHLD, 0, 0, *last, 0), "clone", flags
    )


def fork() -> int:
    """The C library's fork, without Python's hooks: 0 in the child. Only for a process with one thread."""
    return _check(_libc.fork(), "fork")


_SIGCHLD = int(signal.SIGCHLD)
_CHILD_TID = 0x01000000 | 0x00200000  # CLONE_CHILD_SETTID, CLONE_CHILD_CLEARTID
_tid_at: int | None = None


def _tid_address() -> int:
    global _tid_at
    if _tid_at is None:
        found = ctypes.c_void_p()
        failed = _prctl(40, ctypes.addressof(found), 0, 0, 0)  # PR_GET_TID_ADDRESS
        _tid_at = 0 if failed else (found.value or 0)
    return _tid_at


def dying_with_parent() -> Prepared:
    """SIGKILL for the calling process when the thread that forked it ends."""
    return Prepared("PR_SET_PDEATHSIG", _prctl, 1, int(signal.SIGKILL))


def dumpable(value: bool) -> Prepared:
    """Whether other processes of the same user may look into this one, and whether it owns its own /proc entries."""
    return Prepared("PR_SET_DUMPABLE", _prctl, 4, int(value))


def naming(name: str) -> Prepared:
    """The calling process's name, at most 15 bytes of it."""
    return Prepared("PR_SET_NAME", _prctl, 15, name.encode()[:15])


def die_with_parent() -> None:
    """See :func:`dying_with_parent`."""
    dying_with_parent()()


def set_dumpable(value: bool) -> None:
    """See :func:`dumpable`."""
    dumpable(value)()


def set_name(name: str) -> None:
    """See :func:`naming`."""
    naming(name)()


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


_CLOSE_RANGE = 436


def _close_range(first: int, last: int) -> None:
    try:
        _check(_syscall(_CLOSE_RANGE, first, last, 0, 0, 0, 0), "close_range")
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


# ---------------------------------------------------------------- namespaces and mounts


def unshare(flags: int) -> None:
    _check_namespaces(_libc.unshare(flags), "unshare", flags)


def setns(fd: int, flags: int) -> None:
    _check(_libc.setns(fd, flags), "setns")


def set_hostname(name: str) -> None:
    raw = name.encode()
    _check(_libc.sethostname(raw, len(raw)), "sethostname")


def mounting(source: str, target: str, kind: str | None, flags: int, options: str = "") -> Prepared:
    """A mount, as the system call of this name takes it."""
    step = f"mount {kind or source} at {target}"
    words = (kind.encode() if kind else 0, flags, options.encode() if options else 0)
    return Prepared(step, _mount, source.encode(), os.fsencode(target), *words)


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """See :func:`mounting`."""
    mounting(source, target, kind, flags, options)()


def mount_tmpfs(target: str, options: str) -> None:
    """An empty file system in memory. ``options`` differ from cell to cell: no buffer is made for them."""
    words = (b"cell", os.fsencode(target), b"tmpfs", NOSUID | NODEV, options.encode())
    _check(_mount_words(*words), f"mount tmpfs at {target}")


def bind(source: str, target: str, *, device: bool = False) -> None:
    """Show ``source`` at ``target`` too, with what is mounted below it; read-only, unless it is a device."""
    Prepared(f"bind {source} at {target}", _mount, os.fsencode(source), os.fsencode(target), 0, BIND | REC)()
    seal(target, NOSUID | NOEXEC if device else NOSUID | NODEV | RDONLY)


_HERE = -100
"""AT_FDCWD."""


def seal(target: str, flags: int) -> None:
    """Set these flags on the mount at ``target`` and on all below it."""
    attributes = struct.pack("QQQQ", flags, 0, 0, 0)  # attributes have the same bits as the flags
    try:
        _call(
            "mount_setattr", _HERE, os.fsencode(target), 0x8000, attributes, len(attributes)
        )  # AT_RECURSIVE
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        kept = os.statvfs(target).f_flag & (os.ST_NOEXEC | os.ST_NOATIME | os.ST_NODIRATIME | os.ST_RELATIME)
        mount("none", target, None, BIND | REMOUNT | flags | _mount_flags(kept))


def bind_as(source: str, target: str, namespace: int) -> None:
    """As :func:`bind`, read-only, with owners as the maps of a user namespace (a descriptor) have them: what belongs to
    an id of the inside is shown as its partner outside. Not every file system can be shown like this."""
    flags = 1 | os.O_CLOEXEC  # OPEN_TREE_CLONE
    at = _call("open_tree", _HERE, os.fsencode(source), flags)
    try:
        attributes = struct.pack("QQQQ", _IDMAP | NOSUID | NODEV | RDONLY, 0, 0, namespace)
        _call("mount_setattr", at, b"", 0x1000, attributes, len(attributes))  # AT_EMPTY_PATH
        _call("move_mount", at, b"", _HERE, os.fsencode(target), 4)  # MOVE_MOUNT_F_EMPTY_PATH
    finally:
        os.close(at)


_IDMAP = 0x00100000


def _mount_flags(kept: int) -> int:
    relatime = 1 << 21 if kept & os.ST_RELATIME else 0
    same = os.ST_NOEXEC | os.ST_NOATIME | os.ST_NODIRATIME  # the same bits in both calls
    return relatime | kept & same


def pivot(new_root: str, old_root: str) -> None:
    """Make ``new_root`` the root; what was the root appears at ``old_root``, a folder below the new one."""
    try:
        _call("pivot_root", os.fsencode(new_root), os.fsencode(old_root))
    except OSError as error:
        raise OSError(error.errno, f"pivot_root to {new_root}: {os.strerror(error.errno or 0)}") from None
    os.chdir("/")


def unmount(target: str) -> None:
    _check(_libc.umount2(os.fsencode(target), DETACH), f"umount {target}")


# ---------------------------------------------------------------- users and capabilities


def becoming(uid: int, gid: int) -> list[Prepared]:
    """All ids of the calling process become these, for good if it may not change them back."""
    return [
        Prepared(f"setresgid to {gid}", _setresgid, gid, gid, gid),
        Prepared(f"setresuid to {uid}", _setresuid, uid, uid, uid),
    ]


def without_groups() -> Prepared:
    """No supplementary group."""
    return Prepared("setgroups", _setgroups)


def making(folder: str, uid: int = -1, gid: int = -1) -> list[Prepared]:
    """A folder, with an owner if one is named."""
    path = os.fsencode(folder)
    steps = [Prepared(f"mkdir {folder}", _mkdir, path, 0o755)]
    return steps if uid < 0 else [*steps, Prepared(f"chown {folder}", _chown, path, uid, gid)]


def entering(folder: str) -> Prepared:
    """Make it the current folder."""
    return Prepared(f"chdir to {folder}", _chdir, os.fsencode(folder))


def set_file_owner(uid: int, gid: int) -> None:
    """What this process makes belongs to ``uid`` and ``gid`` from now on. Its own capabilities over files go with
    it: raise them again with :func:`holding`."""
    _setfsgid(gid)
    _setfsuid(uid)
    if (_setfsuid(uid), _setfsgid(gid)) != (uid, gid):  # each returns the value before the call
        raise OSError(errno.EPERM, f"setfsuid to {uid}:{gid}: the ids did not change")


def holding(kept: Iterable[int]) -> Prepared:
    """Hold exactly these capabilities, effective and permitted; none inheritable, so none survives an exec."""
    mask = sum(1 << cap for cap in kept)
    low, high = mask & 0xFFFFFFFF, mask >> 32
    header = struct.pack("Ii", 0x20080522, 0)
    return Prepared("capset", _capset, header, struct.pack("6I", low, low, 0, high, high, 0))


def gaining_nothing() -> Prepared:
    """No exec may gain anything, neither by set-user-id nor by file capabilities, from now on and for children."""
    return Prepared("PR_SET_NO_NEW_PRIVS", _prctl, 38, 1)


def no_new_privileges() -> None:
    """See :func:`gaining_nothing`."""
    gaining_nothing()()


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
        header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(self._program))
        # SPEC_ALLOW: no slower branches for it; old kernels don't know the flag
        self._ways = [_calling("seccomp", 1, flags, header) for flags in (4, 0)]

    def install(self) -> None:
        """For this process and all that it will fork. Needs :func:`no_new_privileges` before."""
        first, second = self._ways
        try:
            first()
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            second()


# ---------------------------------------------------------------- Landlock

_READ = 1 << 0 | 1 << 2 | 1 << 3  # execute, read_file, read_dir
_WRITE_FILE, _TRUNCATE, _IOCTL = 1 << 1, 1 << 14, 1 << 15


def landlock_abi() -> int:
    """The version of Landlock in this kernel; 0 if it has none or it is turned off."""
    try:
        return _call("landlock_create", 0, 0, 1)
    except OSError:
        return 0


class Landlock:
    """A ruleset ready to be made: read anything below /, write below ``writable``, read and write ``devices``.

    From version 4 (``abi``) on no TCP; from 6 on no abstract socket and no signal may leave the group of processes that
    restricts itself.
    """

    def __init__(self, abi: int, writable: Iterable[str], devices: Iterable[str]) -> None:
        handled = (1 << 13) - 1
        handled |= (1 << 13 if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0) | (_IOCTL if abi >= 5 else 0)
        attributes = struct.pack("QQQ", handled, 3 if abi >= 4 else 0, 3 if abi >= 6 else 0)
        size = 8 if abi < 4 else 16 if abi < 6 else 24
        self._create = _calling("landlock_create", attributes, size, 0)
        rules = [("/", _READ), *((path, handled) for path in writable)]
        rules += [(path, (1 << 2 | _WRITE_FILE | _TRUNCATE | _IOCTL) & handled) for path in devices]
        self._rules = [
            (path, ctypes.create_string_buffer(struct.pack("=Qi", a, -1), 12)) for path, a in rules
        ]
        self._add = [_arch().calls["landlock_add"], *(ctypes.addressof(rule) for _, rule in self._rules)]

    def make(self) -> int:
        """The ruleset's descriptor. Called after the mounts that it names: rules hold on to inodes."""
        ruleset = self._create()
        add, *addresses = self._add
        for (path, rule), address in zip(self._rules, addresses):  # noqa: B905  (Python 3.9)
            at = os.open(path, os.O_PATH | os.O_CLOEXEC)
            try:
                struct.pack_into("i", rule, 8, at)
                _check(_syscall(add, ruleset, 1, address, 0, 0, 0), "landlock_add")
            finally:
                os.close(at)
        return ruleset


def landlock_restrict(ruleset: int) -> None:
    """Hold this process and all that it will fork to a ruleset. Needs :func:`no_new_privileges` before."""
    _check(_syscall(_COMMON["landlock_restrict"], ruleset, 0, 0, 0, 0, 0), "landlock_restrict")
