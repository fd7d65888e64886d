"""Messages as frames: length in bytes (decimal digits), ``:``, the text in UTF-8, ``,``."""

from __future__ import annotations

DIGITS = b"0123456789"


class FrameError(ValueError):
    """The bytes are no frames; the decoder can't go on."""


def encode(text: str) -> bytes:
    """One message as a frame."""
    return f"{len(text)}:{text},".encode()


class Decoder:
    """Takes bytes in pieces of any size and returns messages.

    The length has no sign, no space, and no leading zero (but ``0`` itself is a length); it is at most ``limit``.
    FrameError as soon as the bytes fed so far can't be the beginning of frames: a length that is malformed or over
    the limit (the digits so far count, the colon needn't be there), another byte than a comma after the text, text
    that is not UTF-8 (when the frame is complete). The messages before it in the same piece are lost. After a
    FrameError every further ``feed`` raises FrameError.
    """

    def __init__(self, limit: int = 65536) -> None:
        self.limit = limit
        self._buffer = b""
        self._broken = False

    @property
    def pending(self) -> int:
        """How many bytes wait for the rest of their frame."""
        return len(self._buffer)

    def feed(self, piece: bytes) -> list[str]:
        """All messages that are complete with this piece."""
        if self._broken:
            raise FrameError("the stream is broken")
        self._buffer += piece
        messages = []
        try:
            message = self._next()
            if message:
                messages.append(message)
        except FrameError:
            self._broken = True
            raise
        return messages

    def _next(self) -> str | None:
        """Cut the first frame off the buffer, or return None if it isn't complete."""
        digits, colon, rest = self._buffer.partition(b":")
        if not digits:
            return None
        if not colon or not digits.isdigit() or (digits[0] == DIGITS[0] and len(digits) > 1):
            raise FrameError("bad length")
        length = int(digits)
        if len(rest) < length + 1:
            return None
        if length > self.limit:
            raise FrameError("message too long")
        if rest[length : length + 1] != b",":
            raise FrameError("no comma after the text")
        try:
            text = rest[:length].decode()
        except UnicodeDecodeError as error:
            raise FrameError("not UTF-8") from error
        self._buffer = rest[length + 1 :]
        return text
