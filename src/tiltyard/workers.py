"""Many jobs on several processes: handed out one by one, survived when a worker dies, stopped by signals.

Promises: every job comes back exactly once, as :class:`Done` or :class:`Lost` with the reason, in the order in which
they end; a worker that dies or stops answering costs the job it was at, and is replaced; no worker outlives the
generator, however it is left, nor the process that made it. Never: shares anything between jobs, or retries one.

Workers are processes because a thread can't be killed, and because the Python side of an episode (the codec, the
records) would serialise under the GIL. On Linux they are forked, which takes milliseconds and needs neither a
picklable player nor a guarded ``__main__``; elsewhere they are spawned. ``workers=0`` does the jobs in this process.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Protocol, Self

from tiltyard.errors import ArenaError, TiltyardError, UsageError

POLL_S = 0.1
GRACE_S = 5.0
"""What jobs in flight, and then their workers, are given after the first Ctrl-C."""
MAX_WORKERS = 512
shared: list[Callable[[], AbstractContextManager[None]]] = []
"""What is entered before more workers are started than there are processors, and left when all have ended: a room that
has something which workers can have in common puts it here. With a processor for each, what they share would have to go
from one to the other."""


class Handler(Protocol):
    """What a worker does with a job. Made once a worker, so that it can keep what is costly (a wall, an env)."""

    def __call__(self, job: Any, /) -> Any: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Done:
    """The job's result."""

    job: int
    value: Any


@dataclass(frozen=True, slots=True)
class Lost:
    """The job was lost: its worker died, hung or failed. ``reason`` names no pid, time or address."""

    job: int
    reason: str


class Interrupted(KeyboardInterrupt):
    """A run was stopped by a signal. ``partial`` is its result so far (of the same type as the whole one), complete
    in itself; ``signum`` is the signal, SIGINT or SIGTERM, None if it was asked for otherwise."""

    def __init__(self, partial: Any, signum: int | None) -> None:
        super().__init__("interrupted")
        self.partial = partial
        self.signum = signum

    @property
    def exit_code(self) -> int:
        """128 and the signal's number, as shells have it: 130 for Ctrl-C, 143 for SIGTERM."""
        return 128 + (self.signum or signal.SIGINT)


class Progress(Protocol):
    """Who shows how far a long job is. Called in the caller's thread only."""

    def begin(self, total: int) -> None: ...
    def advance(self, result: Any) -> None: ...
    def end(self) -> None: ...


class Stop:
    """SIGINT and SIGTERM as a count, while in its ``with``: one asks to stop cleanly, two at once.

    Handlers are set in the main thread only, for Python allows no other; elsewhere ``ask`` is the way to stop.
    """

    def __init__(self) -> None:
        self.count = 0
        self.signum: int | None = None
        self._before: dict[int, Any] = {}

    def ask(self, signum: int | None = None) -> None:
        self.count += 1
        self.signum = self.signum if self.signum is not None else signum

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._signalled)
        return self

    def _signalled(self, signum: int, _frame: FrameType | None) -> None:
        self.ask(signum)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._before.clear()


def work(
    jobs: Sequence[Any],
    make: Callable[[], Handler],
    *,
    workers: int,
    stop: Stop | None = None,
    deadline_s: Callable[[Any], float] | None = None,
) -> Iterator[Done | Lost]:
    """Do all jobs on ``workers`` processes and yield how each ended. Ends early after ``stop`` was asked.

    Where there are fewer processors, only so many work until these are seen to be idle, as they are when jobs wait for
    something: more would take turns on a processor, and each turn costs what is in its caches.

    ``make`` is called once in each worker. ``deadline_s(job)`` is the wall-clock in seconds after which a worker
    that has not finished it is killed. Raises UsageError for an impossible number of workers, ArenaError or what
    ``make`` raised if no worker could be got ready.
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or not 0 <= workers <= MAX_WORKERS:
        raise UsageError(f"{workers!r} workers; expected a whole number from 1 to {MAX_WORKERS}")
    stop = stop if stop is not None else Stop()
    if workers == 0:
        yield from _here(jobs, make, stop)
        return
    with ExitStack() as stack:

        def in_common() -> None:
            for share in shared:
                common.enter_context(share())

        common = stack.enter_context(ExitStack())
        crew = _Crew(jobs, make, min(workers, max(1, len(jobs))), stop, deadline_s, in_common)
        stack.callback(crew.end)
        yield from crew.results()


def usable_cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def idle_s() -> float | None:
    """How many seconds the processors that this process may use have been idle, all together, since the system began;
    None where that can't be known. Linux: /proc/stat."""
    try:
        lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
        ticks = {f[0]: int(f[4]) + int(f[5]) for f in map(str.split, lines) if f and f[0].startswith("cpu")}
        return sum(ticks[f"cpu{core}"] for core in os.sched_getaffinity(0)) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, KeyError, AttributeError):
        return None


def work_all(
    jobs: Sequence[Any],
    make: Callable[[], Handler],
    keep: Callable[[int, Any], None],
    lost: Callable[[Any, str], Any],
    *,
    workers: int,
    deadline_s: Callable[[Any], float],
    progress: Progress | None,
) -> Stop | None:
    """``work`` with its own Stop, and with ``progress`` shown. ``keep`` gets each job's number and value as it ends;
    ``lost(job, reason)`` makes the value of one that was lost. Returns the Stop if it was asked for before all were
    done."""
    if progress is not None:
        progress.begin(len(jobs))
    done = 0
    try:
        with Stop() as stop:
            for result in work(jobs, make, workers=workers, stop=stop, deadline_s=deadline_s):
                value = result.value if isinstance(result, Done) else lost(jobs[result.job], result.reason)
                keep(result.job, value)
                done += 1
                if progress is not None:
                    progress.advance(value)
    finally:
        if progress is not None:
            progress.end()
    return stop if done < len(jobs) else None


def _here(jobs: Sequence[Any], make: Callable[[], Handler], stop: Stop) -> Iterator[Done | Lost]:
    handler = make()
    try:
        for number, job in enumerate(jobs):
            if stop.count:
                return
            yield Done(number, handler(job))
    finally:
        handler.close()


@dataclass(eq=False)
class _Worker:
    process: Any
    link: Connection
    queue: deque[int] = field(default_factory=deque)
    """The jobs it was sent; it is at the first one."""
    since: float = 0.0
    ready: bool = False
    core: int | None = None


class _IdleWatch:
    """Whether processors are idle though every worker has something to do: then what it has to do is to wait."""

    WINDOW_S = 0.1
    SHARE = 0.15
    """Of the time of all processors; 0.02 are idle when each has a worker at short jobs."""
    TIMES = 2

    def __init__(self) -> None:
        self.begin_again()

    def begin_again(self) -> None:
        self._since: tuple[float, float] | None = None
        self._times = 0

    def sees_idling(self) -> bool:
        """Called often; True after ``TIMES`` windows in a row."""
        now = time.monotonic()
        if self._since is not None and now - self._since[0] < self.WINDOW_S:
            return False
        before, idle = self._since, idle_s()
        if idle is None:
            return True
        self._since = now, idle
        if before is not None:
            share = (idle - before[1]) / (now - before[0]) / usable_cores()
            self._times = self._times + 1 if share > self.SHARE else 0
        return self._times >= self.TIMES


class _Crew:
    """The parent's side: who is at what."""

    def __init__(
        self,
        jobs: Sequence[Any],
        make: Callable[[], Handler],
        size: int,
        stop: Stop,
        deadline_s: Callable[[Any], float] | None,
        in_common: Callable[[], None],
    ) -> None:
        """``in_common`` is called before there are more workers than processors."""
        self.jobs, self.make, self.size, self.stop, self.deadline_s = jobs, make, size, stop, deadline_s
        self.in_common = in_common
        self.watch = _IdleWatch()
        cores = usable_cores()
        self.few = cores if size > cores and idle_s() is not None else None
        """How many work as long as these leave no processor idle; None: all may."""
        if size > cores and self.few is None:
            in_common()
        self.waiting = deque(range(len(jobs)))
        self.workers: list[_Worker] = []
        self.leaving: list[_Worker] = []
        self.context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
        self.failures = 0
        """Workers in a row that did not get ready."""

    def results(self) -> Iterator[Done | Lost]:
        stop_at: float | None = None
        while self.waiting or any(worker.queue for worker in self.workers):
            if self.stop.count:
                stop_at = stop_at if stop_at is not None else time.monotonic() + GRACE_S
                if self.stop.count > 1 or time.monotonic() > stop_at or not self._in_flight():
                    return
            else:
                self._let_all_work_if_idle()
                self._fill()
            links = [worker.link for worker in self.workers]
            heard = wait(links, timeout=POLL_S) if links else []
            for worker in list(self.workers):
                if worker.link in heard or not worker.process.is_alive():
                    yield from self._hear(worker)
                elif self._overdue(worker):
                    yield from self._lose(worker, self._overdue(worker))

    def _in_flight(self) -> bool:
        return any(worker.ready and worker.queue for worker in self.workers)

    def _fill(self) -> None:
        """Replace who is missing, and give work to who has none. One job is sent ahead while many are left, so that
        a worker does not wait for us; towards the end not, so that none sits behind a slow one."""
        size = self.size if self.few is None else min(self.size, self.few)
        missing = min(size, len(self.waiting) + sum(1 for w in self.workers if w.queue)) - len(self.workers)
        for _ in range(missing):
            self.workers.append(self._start())
        for depth in (1, 2) if len(self.waiting) > 2 * size else (1,):
            for worker in self.workers:
                if self.waiting and len(worker.queue) < depth:
                    self._send(worker)

    def _let_all_work_if_idle(self) -> None:
        if self.few is None:
            return
        at_work = any(w.ready for w in self.workers) and all(w.queue for w in self.workers)
        if self.waiting and at_work and self.watch.sees_idling():
            self.few = None
            self.in_common()
        elif not at_work:
            self.watch.begin_again()

    def _send(self, worker: _Worker) -> None:
        if not worker.queue:
            worker.since = time.monotonic()
        worker.queue.append(self.waiting.popleft())
        with suppress(OSError):  # it died: noticed, and its job lost, when we next listen to it
            worker.link.send(worker.queue[-1])

    def _start(self) -> _Worker:
        ours, theirs = self.context.Pipe()
        inherited = [worker.link for worker in self.workers] + [ours] if self._forks else []
        core = self._free_core()
        process = self.context.Process(  # type: ignore[attr-defined]
            target=_main, args=(theirs, inherited, self.make, self.jobs, os.getpid(), core), daemon=False
        )
        try:
            with warnings.catch_warnings():
                # Python 3.12 warns of fork beside threads. A child that got stuck would be killed at its deadline
                warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
                process.start()
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise UsageError(
                f"the player can't be sent to a worker process ({error}); define it at the top level of a module, "
                "name it, or use workers=0"
            ) from None
        except OSError as error:
            raise ArenaError(f"no worker process could be started: {error}") from None
        finally:
            theirs.close()
        return _Worker(process, ours, core=core)

    def _free_core(self) -> int | None:
        """The core with the fewest workers. A worker and its cells stay on one: what a worker costs is then the same
        however many there are, and nothing of an episode waits for a process that wakes up on another core."""
        if not hasattr(os, "sched_getaffinity"):
            return None
        busy = Counter(worker.core for worker in self.workers)
        return min(sorted(os.sched_getaffinity(0)), key=lambda core: busy[core])

    @property
    def _forks(self) -> bool:
        return self.context.get_start_method() == "fork"

    def _hear(self, worker: _Worker) -> Iterator[Done | Lost]:
        """All that a worker has said. It may have said something and died since: what it finished counts."""
        while True:
            try:
                alive = worker.process.is_alive()  # asked first: it may say its last word and die in between
                if not worker.link.poll():
                    if alive:
                        return
                    raise EOFError
                kind, value = worker.link.recv()
            except (EOFError, OSError):
                yield from self._lose(worker, None)
                return
            except Exception as error:  # half a message, or one that can't be unpickled
                yield from self._lose(worker, f"the worker's answer can't be read ({type(error).__name__})")
                return
            if kind == "ready":
                worker.ready, self.failures = True, 0
                worker.since = time.monotonic()
            elif kind == "unready":
                self._unready(worker, value)
                return
            else:
                job = worker.queue.popleft()
                worker.since = time.monotonic()
                if self.stop.count:
                    self._dismiss(worker)
                else:
                    self._fill()
                yield Done(job, value) if kind == "done" else Lost(job, value)
                if self.stop.count:
                    return

    def _unready(self, worker: _Worker, error: Exception) -> None:
        """It could not get ready. Its jobs go back; after three in a row there is no point in another."""
        self._drop(worker)
        self.failures += 1
        if isinstance(error, UsageError) or (self.failures >= 3 and not self.workers):
            raise error
        if self.failures >= 3:
            self.size = len(self.workers)  # the others go on without it
        time.sleep(0.1)

    def _lose(self, worker: _Worker, reason: str | None) -> Iterator[Lost]:
        head = worker.queue.popleft() if worker.queue else None
        was_ready = worker.ready
        self._drop(worker)
        if not was_ready and head is not None:
            # it died before it could begin: nobody's job is lost, unless that goes on
            self.failures += 1
            if self.failures < 3:
                self.waiting.appendleft(head)
                return
        if head is not None:
            yield Lost(head, reason or f"the worker died ({_how(worker.process.exitcode)})")

    def _dismiss(self, worker: _Worker) -> None:
        """Ask a worker to end after a stop, whatever it was sent ahead."""
        self.workers.remove(worker)
        self.leaving.append(worker)
        _ask_to_end(worker)

    def _drop(self, worker: _Worker) -> None:
        self.workers.remove(worker)
        self.waiting.extendleft(reversed(worker.queue))
        worker.queue.clear()
        _kill(worker)

    def _overdue(self, worker: _Worker) -> str | None:
        if self.deadline_s is None or not worker.queue:
            return None
        limit = self.deadline_s(self.jobs[worker.queue[0]])
        if time.monotonic() - worker.since <= limit:
            return None
        return f"the worker did not finish within {limit:.0f} s and was killed"

    def end(self) -> None:
        """End all workers: the idle are told, the others terminated, and killed after the grace or a second Ctrl-C."""
        for worker in self.workers:
            _ask_to_end(worker)
        until = time.monotonic() + GRACE_S
        for worker in self.leaving + self.workers:
            while worker.process.is_alive() and time.monotonic() < until and self.stop.count < 2:
                worker.process.join(0.05)
            _kill(worker)
        self.workers.clear()
        self.leaving.clear()


def _ask_to_end(worker: _Worker) -> None:
    with suppress(OSError):
        worker.link.send(None)
    if worker.queue:
        worker.process.terminate()


def _kill(worker: _Worker) -> None:
    with suppress(Exception):
        worker.process.kill()
    worker.process.join()
    worker.link.close()


def _how(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        try:
            name = signal.Signals(-exitcode).name
        except ValueError:
            name = f"signal {-exitcode}"
        return f"killed by {name}" + (", out of memory?" if name == "SIGKILL" else "")
    return f"exit status {exitcode}"


# -- in the worker ---------------------------------------------------------------------------------------------------


class Terminated(BaseException):
    """SIGTERM from the parent. No Exception, so that a player's ``except Exception`` does not keep it alive."""


def _terminate(_signum: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated


def _main(
    link: Connection,
    inherited: list[Connection],
    make: Callable[[], Handler],
    jobs: Sequence[Any],
    parent: int,
    core: int | None,
) -> None:
    """A worker's life: make the handler, then job after job until told to end."""
    # Ctrl-C goes to the whole group; the parent decides what it means.
    # A handler that does nothing, for an ignored signal would stay ignored in every program that a cell runs.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, _terminate)
    with suppress(OSError):
        os.setpgid(0, 0)  # nor may Ctrl-C reach the cells
    signal.set_wakeup_fd(-1)
    for other in inherited:  # else a sibling would keep our parent's end open after the parent is gone
        other.close()
    _die_with(parent)
    _quiet()
    if core is not None:
        with suppress(OSError):  # it may have been taken from us meanwhile
            os.sched_setaffinity(0, {core})
    handler: Handler | None = None
    try:
        try:
            handler = make()
            gc.freeze()  # what was loaded stays: to go through all of it again and again is a tenth of a worker's time
        except Exception as error:
            link.send(("unready", _sendable(error)))
            return
        link.send(("ready", None))
        while (number := link.recv()) is not None:
            link.send(_one(handler, jobs[number]))
    except (Terminated, EOFError, BrokenPipeError, ConnectionResetError):
        pass
    finally:
        if handler is not None:
            handler.close()


def _one(handler: Handler, job: Any) -> tuple[str, Any]:
    try:
        value = handler(job)
        pickle.dumps(value)
        return ("done", value)
    except Exception as error:
        traceback.print_exc()  # on stderr: a handler does not raise, so this is a bug that wants its traceback
        return ("lost", f"the worker failed: {type(error).__name__}: {error}")


def _sendable(error: Exception) -> Exception:
    if isinstance(error, TiltyardError):
        with suppress(Exception):
            pickle.loads(pickle.dumps(error))
            return error
    return ArenaError(f"a worker could not get ready: {type(error).__name__}: {error}")


def _die_with(parent: int) -> None:
    """Linux: be killed when the parent dies, also when it is killed while we are busy. Elsewhere the closed link
    ends us after the job."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)


def _quiet() -> None:
    """What a player prints goes to stderr, for stdout carries a command's result alone; and nobody reads stdin."""
    with suppress(OSError):
        os.dup2(2, 1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
    sys.stdout = sys.stderr
