"""What an exploit must not touch, and who listens for what must not be said.

A :class:`Canary` is a file with a random secret, alone in a folder that anyone may read and write, so that only a wall
keeps an exploit from it. A :class:`Listener` answers on the loopback, TCP and UDP, and notes who came. Each play of a
case has its own of both, so what happened can be laid at one door.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from pathlib import Path
from secrets import token_hex

MAX_LISTING = 20


class Canary:
    """``path`` of the file and its ``secret``. The folder is made below ``parent``, which must be searchable by all."""

    def __init__(self, parent: Path) -> None:
        folder = parent / f"canary-{token_hex(6)}"
        folder.mkdir()
        folder.chmod(0o777)
        self.secret = f"canary-{token_hex(16)}"
        self.path = folder / "canary.txt"
        self._content = f"{self.secret}\n".encode()
        self.path.write_bytes(self._content)
        self.path.chmod(0o666)  # another user's code must be able to change it, or it would show nothing

    def harm(self) -> list[str]:
        """What was done to it, in words; [] if nothing."""
        found: list[str] = []
        try:
            if self.path.is_symlink() or self.path.read_bytes()[: len(self._content) + 1] != self._content:
                found.append("the canary was changed")
        except OSError:
            found.append("the canary was removed or can't be read any more")
        with contextlib.suppress(OSError):
            others = sorted(p.name for p in self.path.parent.iterdir() if p.name != self.path.name)
            found += [f"a file was left beside the canary: {name!r}" for name in others[:MAX_LISTING]]
        return found

    def seen_in(self, *texts: str) -> bool:
        """Whether one of these texts (observations, logs) holds the secret."""
        return any(self.secret in text for text in texts)


class Listener:
    """Hears what reaches 127.0.0.1 on a port of its own. ``url`` is what an exploit is given."""

    def __init__(self) -> None:
        self._tcp = socket.socket()
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._wake, self._woken = socket.socketpair()
        try:
            self._tcp.bind(("127.0.0.1", 0))
            self._tcp.listen(16)
            self._port = self._tcp.getsockname()[1]
            with contextlib.suppress(
                OSError
            ):  # the port may be another's for UDP; then TCP alone is listened to
                self._udp.bind(("127.0.0.1", self._port))
        except BaseException:
            self._close_sockets()
            raise
        self.token = token_hex(8)
        self.url = f"http://127.0.0.1:{self._port}/{self.token}"
        self._heard: list[str] = []
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def harm(self) -> list[str]:
        """What was heard, in words."""
        if not self._heard:
            return []
        return [f"the network listener was reached {len(self._heard)}x ({self._heard[0]})"]

    def close(self) -> None:
        """Stop listening."""
        with contextlib.suppress(OSError):
            self._wake.send(b"x")
        self._thread.join(10)
        self._close_sockets()

    def _close_sockets(self) -> None:
        for sock in (self._tcp, self._udp, self._wake, self._woken):
            sock.close()

    def _listen(self) -> None:
        while True:
            ready, _, _ = select.select([self._tcp, self._udp, self._woken], [], [])
            if self._woken in ready:
                return
            with contextlib.suppress(OSError):
                if self._udp in ready:
                    self._udp.recv(1 << 16)
                    self._heard.append("UDP")
                if self._tcp in ready:
                    self._answer(self._tcp.accept()[0])

    def _answer(self, sock: socket.socket) -> None:
        with sock:
            self._heard.append("TCP")
            sock.settimeout(1.0)
            with contextlib.suppress(OSError):
                sock.recv(1 << 12)
                # an answer to take, so that a grader which lets code reach the network is seen to pay for it
                sock.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
