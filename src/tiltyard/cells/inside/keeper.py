"""The keeper: first process of a cell, and the only one that its owner speaks to.

``serve(sock, workspace, starter)`` answers one request after the other, single-threaded: file operations from inside
the workspace, runs, started programs, capture. When the socket ends (closed, or the owner died, by whatever signal)
it kills everything in the cell and returns. It never gives a player's process its socket, and never waits for one
longer than told. Requests are trusted (they come from the cell's owner); what it finds in the cell is not.

``main`` is the keeper of the process wall: an interpreter of its own, with the cell's folder made and removed by it.
"""

# pathlib would cost each fresh interpreter some milliseconds:
# ruff: noqa: PTH102
from __future__ import annotations

import errno
import os
import select
import signal
import sys
import time

from . import bare, files, procs, pump, tree, wire
from .run import Job, ProcessStarter, StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    from .bare import Socket
    from .copying import Copying
    from .run import Starter

    Answer = tuple[dict[str, Any], bytes]

ANSWER_S = 60.0
MAX_REQUEST_BLOCK = 1 << 30
CPU_SHARE = 0.6
"""The kernel enforces the limit by ticks and reports by the clock; on a virtual machine they differ by a fifth."""
_FULL = (errno.ENOSPC, errno.EDQUOT)


class _Leader:
    """The first process of a run or of a started program."""

    __slots__ = ("cpu_s", "job", "pid", "rc", "until")

    def __init__(self, pid: int, job: Job, until: float) -> None:
        self.pid = pid
        self.job = job
        self.until = until
        self.rc: int | None = None
        self.cpu_s = 0.0


class Keeper:
    def __init__(
        self,
        sock: Socket,
        workspace: str,
        starter: Starter,
        *,
        hide: bytes = b"",
        own_disk: bool = False,
        owner_pidfd: int = -1,
        upper: int = -1,
        beside: Mapping[str, str] | None = None,
    ) -> None:
        self.sock = sock
        self.path = workspace
        self.beside = dict(beside or {})
        self.root = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.starter = starter
        self.hide = hide
        self.own_disk = own_disk
        self.upper = upper
        born = os.fstat(self.root)
        self.player = born.st_uid, born.st_gid
        """Whose the files are that are made here."""
        self.copying: Copying | None = None
        self.leaders: dict[int, _Leader] = {}
        """Those that live, by pid."""
        self.programs: list[_Leader] = []
        """All that were started, by the number that the owner knows them by: a pid may come back."""
        self._next_look = 0.0
        self._used: tuple[int, int] | None = None
        """Bytes and files in the workspace, as far as it is known without looking."""
        self.owner = {sock.fileno(): 0}
        if owner_pidfd >= 0:
            self.owner[owner_pidfd] = select.POLLIN
        self.wake, self._wake_in = os.pipe()
        self.ops: dict[str, Callable[[dict[str, Any], bytes, list[int]], Answer]] = {
            "read": self.op_read,
            "write": self.op_write,
            "put": self.op_put,
            "list": self.op_list,
            "capture": self.op_capture,
            "run": self.op_run,
            "start": self.op_start,
            "poll": self.op_poll,
            "kill": self.op_kill,
            "pack": self.op_pack,
            "unpack": self.op_unpack,
        }

    # ---------------------------------------------------------------------------------------- the loop

    def serve(self) -> None:
        for fd in (self.wake, self._wake_in):
            os.set_blocking(fd, False)
        bare.on_signal(bare.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_in, warn_on_full_buffer=False)
        try:
            while True:
                self._wait_for_request()
                header, block, fds = wire.receive(
                    self.sock, deadline=_soon(), max_block=MAX_REQUEST_BLOCK, take_fds=True
                )
                answer, block = self._answer(header, block, fds)
                answer["id"] = header.get("id")
                wire.send(self.sock, answer, block, deadline=_soon())
        except (wire.WireError, pump.OwnerGone):
            pass
        finally:
            self.kill_all()
            signal.set_wakeup_fd(-1)
            bare.on_signal(bare.SIGCHLD, bare.DEFAULT)
            for fd in (self.root, self.wake, self._wake_in):
                os.close(fd)

    def _wait_for_request(self) -> None:
        """Until the owner speaks, keep an eye on the programs that were started."""
        poll = select.poll()
        for fd, events in self.owner.items():
            poll.register(fd, events or select.POLLIN)
        poll.register(self.wake, select.POLLIN)
        while True:
            self._look_after_programs()
            ends = [leader.until - time.monotonic() for leader in self.leaders.values()]
            pause = min([pump.TICK_S, *ends]) if ends else None
            for fd, _ in poll.poll(None if pause is None else int(max(0.0, pause) * 1000) + 1):
                if fd == self.wake:
                    pump.drain(self.wake)
                elif fd == self.sock.fileno():
                    return
                else:
                    raise pump.OwnerGone

    def _look_after_programs(self) -> None:
        before = list(self.leaders.values())
        self.reap()
        if len(self.leaders) < len(before):
            self.kill_strays()  # what an ended program left behind
        now = time.monotonic()
        look = now >= self._next_look
        if look:
            self._next_look = now + pump.TICK_S
        for leader in before:
            if leader.rc is None and (now >= leader.until or (look and self.starter.excess(leader.job))):
                self.kill_leader(leader)

    def _answer(self, header: dict[str, Any], block: bytes, fds: list[int]) -> Answer:
        try:
            if self.copying is not None and (self.copying.over or header["op"] not in ("pack", "unpack")):
                self._end_copying()
            return self.ops[header["op"]](header, block, fds)
        except files.FileError as error:
            return {"error": "file", "text": str(error)}, b""
        except StartError as error:
            return {"error": "file" if error.players else "arena", "text": str(error)}, b""
        except OSError as error:
            if error.errno in _FULL and self.own_disk:
                return {
                    "error": "file",
                    "text": "no space is left in the workspace; remove something first",
                }, b""
            return {"error": "arena", "text": f"{header.get('op')}: {error.strerror or error}"}, b""
        except (KeyError, ValueError, TypeError, MemoryError) as error:
            return {"error": "arena", "text": f"{header.get('op')}: {type(error).__name__}: {error}"}, b""
        finally:
            for fd in fds:
                os.close(fd)

    # ------------------------------------------------------------------------------------- processes

    def reap(self) -> bool:
        """Collect what has ended; False if this process has no child any more."""
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            leader = self.leaders.pop(pid, None)
            if leader is not None:
                leader.rc = os.waitstatus_to_exitcode(status)
                leader.cpu_s = used.ru_utime + used.ru_stime

    def kill_all(self) -> None:
        self._kill(frozenset())

    def kill_strays(self) -> None:
        """Kill what no living program stands above."""
        self._kill(self.leaders.keys())

    def kill_leader(self, leader: _Leader) -> None:
        self._kill({pid for pid, other in self.leaders.items() if other is not leader})

    def _kill(self, spare: Collection[int]) -> None:
        if not self.starter.kill(self.reap, spare):
            raise OSError(errno.EBUSY, "a process of the cell can't be killed; it hangs in the kernel")

    def op_run(self, header: dict[str, Any], block: bytes, fds: list[int]) -> Answer:
        job = Job.from_header(header)
        size = header["output_bytes"]
        self._workspace()
        begin = time.monotonic()
        until = begin + header["wall_s"]
        self._used = None
        stdin, out, err, theirs = _pipes()
        try:
            try:
                pid = self.starter.start(job, theirs, [])
            except BaseException:
                os.close(stdin)
                raise
            finally:
                for fd in theirs:
                    os.close(fd)
            leader = self.leaders[pid] = _Leader(pid, job, until)
            streams = [pump.Stream(fd, size, self.hide) for fd in (out, err)]
            why = pump.pump(
                owner=self.owner,
                wake=self.wake,
                stdin=stdin,
                data=block,
                streams=streams,
                until=until,
                quiet_s=header.get("quiet_s"),
                ended=lambda: not self.reap() or leader.rc is not None,
                tick=lambda: self._tick(job),
            )
            seconds = time.monotonic() - begin
            self.kill_leader(leader)
            for stream in streams:
                stream.drain()
        finally:
            os.close(out)
            os.close(err)
        rc = leader.rc if why == "" and leader.rc is not None else -bare.SIGKILL
        out_of_cpu = rc == -bare.SIGKILL and job.cpu_s is not None and leader.cpu_s > CPU_SHARE * job.cpu_s
        said = streams[0].finish()
        cried = streams[1].finish(f"\n[killed: {why}]\n".encode() if why else b"")
        answer = {
            "rc": rc,
            "timed_out": why is None or out_of_cpu,
            "seconds": seconds,
            "out": len(said),
            "dropped": [s.kept.dropped for s in streams],
        }
        return answer, said + cried

    def _tick(self, job: Job) -> str | None:
        for leader in list(self.leaders.values()):
            if leader.job is not job and time.monotonic() >= leader.until:
                self.kill_leader(leader)
        return self.starter.excess(job)

    def op_start(self, header: dict[str, Any], block: bytes, fds: list[int]) -> Answer:
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._workspace()
            job = Job.from_header(header)
            pid = self.starter.start(job, (null, null, null), fds)
        finally:
            os.close(null)
        leader = self.leaders[pid] = _Leader(pid, job, time.monotonic() + header["wall_s"])
        self.programs.append(leader)
        self._used = None
        return {"program": len(self.programs) - 1}, b""

    def op_poll(self, header: dict[str, Any], block: bytes, fds: list[int]) -> Answer:
        """The exit status of a program, after waiting for at most ``wait_s``, or None."""
        leader = self.programs[header["program"]]
        until = time.monotonic() + header["wait_s"]
        self._look_after_programs()
        while leader.rc is None and (left := until - time.monotonic()) > 0:
            poll = select.poll()
            poll.register(self.wake, select.POLLIN)
            if poll.poll(int(min(left, pump.TICK_S) * 1000) + 1):
                pump.drain(self.wake)
            self._look_after_programs()
        return {"rc": leader.rc}, b""

    def op_kill(self, header: dict[str, Any], block: bytes, fds: list[int]) -> Answer:
        leader = self.programs[header["program"]]
        if leader.rc is None:
            self.kill_leader(leader)
        return {"rc": leader.rc}, b""

    # ----------------------------------------------------------------------------------------- files

    def _workspace(self) -> int:
        """The descriptor of the workspace; a new folder if the player has removed it, and open to its owner: where that is
        the player, nothing could run in it any more."""
        if self.own_disk:
            return self.root
        found = os.fstat(self.root)
        if found.st_mode & 0o100 == 0:
            files.lift(self.root, b".")
        if found.st_nlink == 0:
            try:
                os.mkdir(self.path, 0o755)
                fresh = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except OSError as error:
                raise files.FileError(f"the workspace was removed ({error.strerror})") from None
            os.dup2(fresh, self.root, inheritable=False)
            os.close(fresh)
        return self.root

    def op_read(self, header: dict[str, Any], block: bytes, fds: list[int]) -> Answer:
        return {}, files.read(self._workspace(), header["path"], header["max_bytes"])

    def op_write(self, header: dict[str, Any], block: bytes, fds: list[int]) -> Answer:
        self._check_room(len(block), header.get("disk_bytes"), header.get("disk_files"))
        files.write(self._workspace(), header["path"], block)
        return {}, b""

    def _check_room(self, size: int, most_bytes: int | None, most_files: int | None) -> None:
        """FileError if the workspace would hold more than it may, where the disk itself doesn't say so."""
        if self.own_disk or most_bytes is None or most_files is None:
            return
        used = self._used
        if used is None or used[0] + size > most_bytes or used[1] >= most_files:
            used = tree.usage(self._workspace(), most_files + 16)
        if used[0] + size > most_bytes:
            raise files.FileError(
                f"no space is left: all files together may have {most_bytes} bytes; remove something"
            )
        if used[1] >= most_files:
            raise files.FileError(f"no space is left: there may be {most_files} files; remove something")
        self._used = used[0] + size, used[1] + 1

    def op_put(self, header: dict[str, Any], block: bytes, fds: list[int]) -> Answer:
        """Several files at once: ``files`` is a list of [path, size], the block their bytes, one after the other.
        ``fresh``: nothing else was ever in the workspace. ``gone``: files that are to be removed before."""
        for path in header.get("gone", ()):
            files.remove(self._workspace(), path)
        write_all = files.write_new if header.get("fresh") else files.write_each
        write_all(self._workspace(), header["files"], block)
        return {}, b""

    def op_list(self, header: dict[str, Any], block: bytes, fds: list[int]) -> Answer:
        entries, left_out = tree.listing(self._workspace(), header["max_entries"])
        return {"entries": entries, "left_out": left_out}, b""

    def op_capture(self, header: dict[str, Any], block: bytes, fds: list[int]) -> Answer:
        self.kill_all()
        names = ("max_file_bytes", "max_bytes", "max_files", "max_depth")
        caps = {name: header[name] for name in names}
        kept: list[str] = []
        if self.upper >= 0:
            found, skipped, kept = tree.changes(self._workspace(), self.upper, **caps)
        else:
            found, skipped = tree.capture(self._workspace(), **caps)
        answer = {"files": [[path, len(data)] for path, data in found], "skipped": skipped, "kept": kept}
        return answer, b"".join(data for _, data in found)

    # ---------------------------------------------------------------------------------------- copies

    def op_pack(self, header: dict[str, Any], block: bytes, fds: list[int]) -> Answer:
        """The next piece of what the cell holds: see ``pack``. ``first``: of a new copy."""
        if header["first"]:
            self._end_copying()
            self.kill_all()
            if self.starter.reborn:
                raise files.FileError("its runs begin in another memory than those of a new cell")
        return self._begun_copying().pack(header)

    def op_unpack(self, header: dict[str, Any], block: bytes, fds: list[int]) -> Answer:
        """Lay out the next piece of what another cell held, in a cell that has nothing yet."""
        self._used = None
        return self._begun_copying().unpack(header, block)

    def _begun_copying(self) -> Copying:
        from .copying import Copying  # in a fork server it is there; other keepers need it seldom

        if self.copying is None:
            self.copying = Copying(
                self._workspace(),
                self.upper,
                self.beside,
                player=self.player,
                own_disk=self.own_disk,
                not_in=self.hide,
            )
        return self.copying

    def _end_copying(self) -> None:
        copying, self.copying = self.copying, None
        if copying is not None:
            copying.end()


def serve(
    sock: Socket,
    workspace: str,
    starter: Starter,
    *,
    hide: bytes = b"",
    own_disk: bool = False,
    upper: int = -1,
    beside: Mapping[str, str] | None = None,
) -> None:
    """Keep the cell until its owner is gone; then everything in it is dead. ``hide`` is taken out of what runs print;
    ``own_disk``: a full disk is the player's doing, for nobody else can fill it; ``upper`` is the folder of what was
    changed, where the workspace is an overlay; ``beside``: the other folders that a player can write to, by name and
    path, which are copied with the workspace."""
    Keeper(sock, workspace, starter, hide=hide, own_disk=own_disk, upper=upper, beside=beside).serve()


def _pipes() -> tuple[int, int, int, tuple[int, int, int]]:
    """Our ends of a run's stdin, stdout and stderr, and its three ends."""
    made: list[int] = []
    try:
        for _ in range(3):
            made.extend(os.pipe())
    except OSError:
        for fd in made:
            os.close(fd)
        raise
    return made[1], made[2], made[4], (made[0], made[3], made[5])


def _soon() -> float:
    return time.monotonic() + ANSWER_S


# --------------------------------------------------------------------------------------------- the process wall


def main(argv: Sequence[str]) -> None:
    """argv: the descriptor of the socket, the owner's pid. What else it must know comes as a first frame."""
    sock = bare.Socket(fileno=int(argv[0]))
    os.set_inheritable(sock.fileno(), False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)
    os.umask(0o022)  # whatever the owner's is: what lies in a workspace has the same modes everywhere
    try:
        header, _, _ = wire.receive(sock, deadline=_soon(), max_block=0)
    except wire.WireError:
        return
    base = header["base"]
    try:
        try:
            owner = _pidfd_of_parent(int(argv[1]))
            procs.become_reaper()
            workspace = header["workspace"] or _make_folders(base)
            watched = os.open(base or workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            starter = ProcessStarter(header["python"], watched)
            own = () if header["elsewhere"] or not base else ("home", "tmp")
            beside = {name: f"{base}/{name}" for name in own}
            keeper = Keeper(
                sock, workspace, starter, hide=os.fsencode(base), owner_pidfd=owner, beside=beside
            )
            starter.workspace = keeper.root
            if header.get("player"):
                _be_owner(workspace, header["player"])
                keeper.player = tuple(header["player"])
        except OSError as error:
            at = f" {error.filename!r}" if error.filename else ""
            wire.send(sock, {"error": "arena", "text": f"{error.strerror}{at}"}, deadline=_soon())
            return
        wire.send(sock, {"ready": os.getpid()}, deadline=_soon())
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 2)  # last words went to the owner while it listened for them
        os.close(null)
        keeper.serve()
    except (wire.WireError, pump.OwnerGone):
        pass
    finally:
        if base:
            if header.get("player"):
                _be_owner(None, (0, 0))
            tree.remove(base)


def _be_owner(workspace: str | None, ids: Sequence[int]) -> None:
    """As root: what is done to files from now on is done as this user, whose the workspace is."""
    from . import lock  # costs a keeper milliseconds that most do not need

    if workspace is not None:
        os.chown(workspace, *ids)
    lock.set_file_owner(*ids)


def _leave(*_: object) -> None:
    """SIGTERM: as if the owner were gone; the cell must not outlive its keeper."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise pump.OwnerGone


def _pidfd_of_parent(pid: int) -> int:
    """A descriptor that tells when the owner ends, or -1 where there is no such thing: then the end of the socket
    tells, unless a child of the owner has kept a copy of it."""
    try:
        fd = os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1
    if os.getppid() != pid:  # it ended before, and the number may be another's
        sys.exit(1)
    return fd


def _make_folders(base: str) -> str:
    os.mkdir(base, 0o700)
    for name in ("workspace", "home", "tmp"):
        os.mkdir(f"{base}/{name}", 0o755)
    return f"{base}/workspace"
