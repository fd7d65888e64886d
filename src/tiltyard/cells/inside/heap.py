"""Where the forks of a server will put what they make: side by side, in memory that is not in use yet.

After some thousand imports the free places of an interpreter's heap are scattered over all of it, and each one that a
fork takes costs it a copy of the page around. :func:`fill` takes those places up, once, in the server: from then on new
objects lie next to each other at the end of the heap. It costs the server what was free, some hundred kilobytes.

It knows how CPython's allocator and the C library's hand out memory, and is only about speed: with others it takes up
some memory to no use.
"""

from __future__ import annotations

import ctypes
import sys

POOL = 16 << 10 if sys.version_info >= (3, 10) else 4 << 10
"""CPython hands out objects of one size from pools, which begin with a header of ``HEAD`` bytes."""
HEAD = 48
STEP = 16
SMALL = 512
"""Objects up to this size come from pools."""
MOST = 4096
_LARGE = (1 << 16, 1 << 15, 1 << 14, 1 << 13, 1 << 12, 1 << 11)
_kept: list[object] = []


def fill() -> None:
    """Take up what is free. For a process with one thread."""
    _fill_pools()
    _fill_the_rest()


def _fill_pools() -> None:
    """For each size, until a pool is new: its header and its first objects are on one page then."""
    for size in range(STEP, SMALL + 1, STEP):
        for _ in range(MOST):
            found = _object_of(size)
            _kept.append(found)
            if id(found) % POOL == HEAD:
                break


def _object_of(size: int) -> object:
    """One that takes this much, and that no collector has to look at."""
    if size == STEP:
        return object()
    if size == 2 * STEP:
        return 1 << (30 + len(_kept) % 20)
    return bytes(size - bytes.__basicsize__)


class _Info(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks".split()
    ]
    _fields_ += [("fordblks", ctypes.c_size_t), ("keepcost", ctypes.c_size_t)]


def _fill_the_rest() -> None:
    """Of what is larger: from the largest size down, until it comes from the end of the heap, which was never in use."""
    libc = ctypes.PyDLL(None)
    if not hasattr(libc, "mallinfo2"):
        return
    libc.mallinfo2.restype = _Info
    libc.sbrk.restype = libc.malloc.restype = ctypes.c_void_p
    libc.sbrk.argtypes, libc.malloc.argtypes = [ctypes.c_long], [ctypes.c_size_t]
    end = libc.sbrk(0) - libc.mallinfo2().keepcost
    for size in (*_LARGE, *range(1032, 23, -STEP)):
        beyond = 0
        for _ in range(MOST):
            at = libc.malloc(size)
            beyond = beyond + 1 if at is None or at >= end else 0
            if beyond == 2:
                break
