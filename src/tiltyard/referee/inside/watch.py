"""What a submission tries in the process of its tests, noticed by an audit hook that can't be taken off again.

Flags are noted for a person to look at; they decide nothing. A flag is raised only where the code that does it stands in
a file of the submission's package, or for what nothing honest does (reading a process's memory). What is not seen:
native code, and Python code that runs with a file name of somebody else.
"""

from __future__ import annotations

import _thread
import sys
from collections.abc import Callable, Iterable
from typing import Any

_BY_EVENT = {
    "sys._getframe": "frames", "sys._current_frames": "frames", "sys._current_exceptions": "frames",
    "gc.get_objects": "gc", "gc.get_referrers": "gc", "gc.get_referents": "gc",
    "sys.settrace": "tracing", "sys.setprofile": "tracing", "sys.addaudithook": "tracing",
    "os.kill": "signals", "os.killpg": "signals", "signal.pthread_kill": "signals", "os.exec": "exec",
    "object.__setattr__": "patched_code", "object.__delattr__": "patched_code", "code.__new__": "patched_code",
    "function.__new__": "patched_code",
}  # fmt: skip
Facts = dict[tuple[str, str, str], int]
_FRAME_NAMES = frozenset({"tb_frame", "gi_frame", "cr_frame", "ag_frame"})
_WATCHED: dict[str, tuple[str, ...]] = {
    "_pytest.runner": (),
    "_pytest.reports": ("TestReport",),
    "_pytest.python": ("Function", "pytest_pyfunc_call"),
    "_pytest.unittest": ("TestCaseFunction",),
    "_pytest.outcomes": (),
    "pluggy._callers": (),
    "pluggy._hooks": ("HookCaller",),
    "unittest.case": ("TestCase", "_Outcome", "_AssertRaisesContext"),
    "builtins": (),
}
"""Modules, and of some only these names: what decides a test. To look at more would copy many pages of each fork."""
_known: list[Facts] = []
_OF_CLASSES = frozenset({"__abstractmethods__", "__dict__", "__weakref__"})
MAX_DEPTH = 40


def start(package: str, tests: Iterable[str], flags: set[str], tell: Callable[[], None]) -> None:
    """Install the hook. ``package`` is the folder (ending in a slash) whose files are the submission's, but for
    ``tests``, paths of files. Flags are put into ``flags``; ``tell`` is called for a new one, in this thread only."""
    own = frozenset(tests)
    getframe = sys._getframe
    get_ident, here = _thread.get_ident, _thread.get_ident()
    standard = tuple({sys.prefix, sys.base_prefix, "<frozen"})
    busy = False

    def is_package(frame: Any) -> bool:
        name = frame.f_code.co_filename
        return name.startswith(package) and name not in own and "/lib/python" not in name

    def by_package() -> bool:
        """Whether the nearest code that is not the standard library's is the package's."""
        frame: Any = getframe(3)
        depth = 0
        while frame is not None and depth < MAX_DEPTH:
            if is_package(frame):
                return True
            if not frame.f_code.co_filename.startswith(standard):
                return False
            frame, depth = frame.f_back, depth + 1
        return False

    def look(event: str, args: tuple[Any, ...]) -> None:
        flag = _BY_EVENT.get(event)
        if flag is not None:
            if is_package(getframe(2)):
                flags.add(flag)
        elif event == "object.__getattr__":
            if args[1] in _FRAME_NAMES and is_package(getframe(2)):
                flags.add("frames")
        elif event == "open":
            path = args[0]
            if type(path) is bytes:
                path = path.decode("utf-8", "replace")
            if type(path) is str:
                if path.startswith("/proc/") and by_package():
                    flags.add("proc")
                elif path.rpartition("/")[2] in names and by_package():
                    flags.add("read_tests")
        elif (
            event.startswith("ctypes.") or (event == "import" and args[0] in ("ctypes", "_ctypes"))
        ) and by_package():
            flags.add("ctypes")

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal busy
        if busy:
            return
        busy = True
        known = len(flags)
        try:
            look(event, args)
            if len(flags) > known and get_ident() == here:
                tell()
        except Exception:
            pass  # a hook that raises would stop what it only watches
        finally:
            busy = False

    names = frozenset(path.rpartition("/")[2] for path in own)
    sys.addaudithook(hook)


def warm_up() -> None:
    """Called by a fork server: where pytest is loaded, look at it now."""
    if "pytest" in sys.modules:
        _known[:] = [_look()]


def facts() -> Facts:
    """What decides a test consists of these objects, by identity."""
    return _known[0] if _known else _look()


def _look() -> Facts:
    out: Facts = {}
    for name, only in _WATCHED.items():
        if name not in sys.modules:
            continue
        names = vars(sys.modules[name])
        for key in only or tuple(names):
            value = names.get(key)
            if key == "_":
                continue
            out[name, "", key] = id(value)
            if isinstance(value, type) and value.__module__ == name and name != "builtins":
                for part, member in tuple(vars(value).items()):
                    if not part.startswith("_abc_") and part not in _OF_CLASSES:
                        out[name, key, part] = id(member)
    return out


def changed(before: Facts, now: Callable[[], Facts] = _look) -> set[str]:
    """Flags for what is no longer what it was."""
    after = now()
    out = set()
    for place, value in before.items():
        if after.get(place) != value:
            top = place[0].partition(".")[0]
            out.add(f"patched_{'pytest' if top in ('_pytest', 'pytest', 'pluggy') else top}")
    return out
