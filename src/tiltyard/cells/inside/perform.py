"""One job, done in this process, and ended as an interpreter ends: the work of a forked run.

A fork of a warm interpreter has no interpreter's end of its own: the exit code, the message, exit handlers, joined
threads, flushed streams and dropped objects are made here, in the interpreter's order. Nothing is printed that
``python`` would not print, and no frame of ours is in a traceback.
"""

from __future__ import annotations

import gc
import os
import sys
from types import CodeType, FunctionType, ModuleType

from . import bare, boot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

    from .run import Job


OURS_DEEP = 40
"""Room for our own calls below a tool, which sees to the depth of a player's code itself."""
RECURSION = 1000
"""How deep a script may call: the interpreter's own limit, counted from the script's first frame."""
NAMELESS = "<cell>"
"""The file that our frames name: they are below a script's, for all who look, and no path of this machine shall be."""


def nameless(*modules: ModuleType) -> None:
    """Take the path out of all functions of these modules. Frames that run already keep theirs: call it early."""
    for module in modules:
        for holder in (module, *(v for v in vars(module).values() if isinstance(v, type))):
            if getattr(holder, "__module__", module.__name__) == module.__name__:
                for value in list(vars(holder).values()):
                    function = getattr(value, "__func__", value)
                    if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                        function.__code__ = _nameless(function.__code__)


def _nameless(code: CodeType) -> CodeType:
    consts = tuple(_nameless(c) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_filename=NAMELESS, co_consts=consts)


def _depth() -> int:
    """Calls on the stack below a script: ours until here, and two of ``boot`` with the interpreter's own between."""
    depth, frame = 3, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    return depth


_start: dict[str, str] = {}
"""The environment that all runs are forked with."""


def prepare() -> None:
    """What every run would do for itself, done once in the server: each page of memory that a run need not touch makes
    it faster."""
    boot.OURS = tuple(n for n in sys.modules if n == boot.PACKAGE or n.startswith(f"{boot.PACKAGE}."))
    boot.WORDS = boot.site_words()
    os.environ.pop("LD_BIND_NOW", None)
    _start.update(os.environ)


def interpreters_signals() -> None:
    """Signals as an interpreter has them from its start."""
    bare.on_signal(bare.SIGINT, bare.interrupt)
    for number in (bare.SIGPIPE, bare.SIGXFSZ):
        bare.on_signal(number, bare.IGNORE)


def _environment(env: Mapping[str, str]) -> None:
    before = _start or dict(os.environ)
    for name in before.keys() - env.keys():
        del os.environ[name]
    for name, value in env.items():
        if before.get(name) != value:
            os.environ[name] = value


def perform(job: Job, fds: list[int]) -> NoReturn:
    """Do the job in this process and end it as the interpreter would: code, message, exit handlers, streams."""
    _environment(job.env)
    sys.orig_argv[:] = ["python", *job.rest]
    sys.setrecursionlimit(RECURSION + (_depth() if job.kind != "tool" else OURS_DEEP))
    me = os.getpid()
    code = 0
    try:
        boot.become(job.kind, job.rest, fds)
    except SystemExit as end:
        code = _exit_code(end)
    except KeyboardInterrupt as error:
        _show(error)
        code = -bare.SIGINT
    except BaseException as error:
        _show(error)
        code = 1
    if os.getpid() != me and job.kind in ("program", "tool"):
        os._exit(code & 0xFF)
    code = _finish(code)
    if code < 0:
        bare.on_signal(-code, bare.DEFAULT)
        os.kill(os.getpid(), -code)
    os._exit(code & 0xFF)


def _exit_code(end: SystemExit) -> int:
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code & 0xFF
    try:
        sys.stdout.flush()
        print(end.code, file=sys.stderr)
    except Exception:
        pass
    return 1


def _show(error: BaseException) -> None:
    """The traceback, without the frames that are ours."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == NAMELESS:
        trace = trace.tb_next
    sys.excepthook(type(error), error.with_traceback(trace), trace)


def _finish(code: int) -> int:
    """Threads joined, exit handlers run, streams flushed, the script's objects dropped: in the interpreter's order."""
    import atexit

    threading = sys.modules.get("threading")
    if threading is not None:
        try:
            threading._shutdown()
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
    atexit._run_exitfuncs()
    code = _flush(code)
    names = getattr(sys.modules.get("__main__"), "__dict__", {})
    for private in (True, False):
        for name in list(names):
            if (name[:1] == "_" and name[:2] != "__") == private and name != "__builtins__":
                names[name] = None
    gc.collect()
    return _flush(code)


def _flush(code: int) -> int:
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except BaseException:
            if stream is sys.stdout and code == 0:
                code = 120
    return code
