"""A cell that has no keeper: its first process becomes one program, and the cell ends with it.

For grading, where a cell serves one program and no file is ever asked for: a fork and a conversation less. The owner
sends one frame: the job, the files of the workspace, and the program's descriptors. What it hears is that the program
has begun, or why not; how it ends, it sees by the pidfd that comes with that word. Limits that a keeper would watch
(wall-clock, and memory where the kernel does not add it up) are the owner's to keep.
"""

from __future__ import annotations

import os
import time

from . import bare, files, lock, perform, run, twin, wire
from .run import Job
from .twin import ForkStarter, high

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from .bare import Socket

ANSWER_S = 60.0
MAX_FILES = 1 << 30
_STDIO = 3


def live(sock: Socket, starter: ForkStarter) -> NoReturn:
    """Become the program that the owner sends. Raises OSError, files.FileError or wire.WireError until it is begun."""
    header, block, fds = wire.receive(sock, deadline=_soon(), max_block=MAX_FILES, take_fds=True)
    files.write_new(starter.workspace, header["files"], block)
    del block
    job = Job.from_header(header)
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    kept = [high(os.pidfd_open(os.getpid())), high(os.dup(sock.fileno()))]
    mail = bare.Socket(fileno=kept[1])
    try:
        run.settle(starter.workspace, (), ())
        perform.interpreters_signals()
        run.place([null] * _STDIO + fds)
        lock.close_others([*range(_STDIO + len(fds)), *kept, starter.landlock])
        starter.locks.be_python()
        twin.become_player(starter, job)
        starter.locks.die_with_parent()  # again, for a change of ids undoes it
        wire.send(mail, {"ready": True}, deadline=_soon(), fds=kept[:1])
    except (OSError, wire.WireError) as error:
        wire.refuse(mail, "arena", f"a program can't be set up: {error}")
        os._exit(1)
    os.close(kept[0])
    mail.close()
    perform.perform(job, list(range(_STDIO, _STDIO + len(fds))))


def _soon() -> float:
    return time.monotonic() + ANSWER_S
