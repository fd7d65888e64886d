"""A program that tells what it was given: for checking that a wall starts programs as it promises.

It reads frames from its first descriptor and answers each: ``{"echo": …}`` comes back as it is; ``{"tell": true}``
with what the process has (arguments, environment, folder, descriptors); ``{"exit": N}`` ends it; ``{"spawn": ARGV}``
starts a command that it doesn't wait for; ``{"hold": N}`` takes N bytes of memory. It ends with its descriptor.
"""

from __future__ import annotations

import os
import socket
import sys
import time

from . import wire

FOREVER = 1e9


def main(fds: list[int]) -> None:
    sock = socket.socket(fileno=fds[0])
    held: list[bytearray] = []
    while True:
        try:
            request, block, _ = wire.receive(sock, deadline=time.monotonic() + FOREVER, max_block=64 << 20)
        except wire.Closed:
            return
        answer: dict[str, object] = {"echo": request.get("echo")}
        if "tell" in request:
            answer |= {"argv": sys.argv, "env": dict(os.environ), "cwd": os.getcwd(), "fds": fds}  # noqa: PTH109
            answer["open"] = [fd for fd in range(256) if _is_open(fd)]
        if "exit" in request:
            sys.exit(request["exit"])
        if "spawn" in request:
            import subprocess  # here, for a fork server loads this module, too

            answer["pid"] = subprocess.Popen(request["spawn"], start_new_session=True).pid
        if "hold" in request:
            try:
                held.append(bytearray(request["hold"]))
                answer["held"] = True
            except MemoryError:
                answer["held"] = False
        wire.send(sock, answer, block, deadline=time.monotonic() + FOREVER)


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True
