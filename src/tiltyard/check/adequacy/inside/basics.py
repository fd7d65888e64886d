"""What the driver's parts share: limits, silence, forks. Standard library only."""

from __future__ import annotations

import contextlib
import io
import json
import os
import select
import signal
import sys
import time
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any

MAX_ITEMS = 300
ASLEEP_S = 10.0
MAX_TEXT = 300
PLAIN = (type(None), bool, int, float, complex, str, bytes, range)
LISTS = (list, tuple, set, frozenset, deque)
DICTS = (dict, OrderedDict, defaultdict, Counter)


class OutOfTime(BaseException):
    """No Exception, so that no ``except Exception`` of a task swallows it."""


@contextlib.contextmanager
def limited(cpu_s: Any) -> Any:
    """OutOfTime after this much processor time, which a busy machine doesn't stretch; or, asleep, much later."""

    def ring(*_: Any) -> Any:
        raise OutOfTime

    timers = (
        (signal.SIGPROF, signal.ITIMER_PROF, cpu_s),
        (signal.SIGALRM, signal.ITIMER_REAL, ASLEEP_S + cpu_s),
    )
    before = [signal.signal(number, ring) for number, _, _ in timers]
    for _, timer, seconds in timers:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


@contextlib.contextmanager
def silent() -> Any:
    before = sys.stdout, sys.stderr, sys.stdin
    sys.stdout, sys.stderr, sys.stdin = io.StringIO(), io.StringIO(), io.StringIO()
    try:
        yield
    finally:
        sys.stdout, sys.stderr, sys.stdin = before


def in_fork(act: Any, seconds: Any) -> Any:
    """What ``act`` returns in a child, as JSON carries it; None if it died or did not end."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            os.setpgid(0, 0)
            data = json.dumps(act()).encode()
            while data:
                data = data[os.write(writer, data) :]
        finally:
            os._exit(0)
    os.close(writer)
    parts, end = [], time.monotonic() + seconds
    while True:
        left = end - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            break
        part = os.read(reader, 1 << 16)
        if not part:
            break
        parts.append(part)
    os.close(reader)
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    try:
        return json.loads(b"".join(parts))
    except ValueError:
        return None
