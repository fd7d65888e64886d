"""Lines with a chained seal, from a process that will be hostile in a moment.

The key comes over the control socket before any submitted code is loaded and lives in a closure from then on. That
authenticates nothing against code that searches the process for it (that has been done); it makes a forgery from
outside the closure visible, and whoever goes looking for the key trips over ``watch``.
"""

from __future__ import annotations

import os
from _blake2 import blake2s  # hashlib brings a library of four megabytes into every fork server
from collections.abc import Callable


def sealed_writer(fd: int, key: bytes) -> Callable[[str], None]:
    """What writes one line of text to ``fd``, with the seal of its number and content. b"": without one."""
    count = 0
    write, blake = os.write, blake2s

    def say(text: str) -> None:
        nonlocal count
        line = text.encode("ascii")
        if key:
            count += 1
            line += b" " + blake(b"%d " % count + line, key=key, digest_size=16).hexdigest().encode()
        line += b"\n"
        while line:
            line = line[write(fd, line) :]

    return say


def plain(text: str) -> str:
    """A path or a reason as it may stand in a line: no quotes, no backslashes, printable ASCII."""
    return "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else "?" for c in text[:400])
