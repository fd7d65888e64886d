"""How a process inside a cell becomes what it is to be: a program of an ``inside`` folder, or the player's script.

The process has made the package ``_tiltyard`` whose path is the list of inside folders (``tiltyard.cells.programs``
has the lines; a fork server has it anyway). ``become(kind, rest, fds)`` then does one job:

``program``  rest = (NAME,):      ``_tiltyard.NAME.main(fds)`` with the list of its descriptors
``tool``     rest = (NAME, ARGS): ``_tiltyard.NAME.main([ARGS…])``
``script``   rest = (PATH, ARGS), ``code``: (TEXT, ARGS), ``module``: (NAME, ARGS), ``stdin``: (ARGS): as ``python PATH``,
``-c TEXT``, ``-m NAME`` and ``python -`` would: same ``sys.argv``, ``sys.path``, ``__main__``, tracebacks without our
frames, exit codes, and no trace of ``_tiltyard`` in ``sys.modules``. It raises SystemExit as a script's end.
"""

# pathlib would cost each fresh interpreter some milliseconds:
# ruff: noqa: PTH100, PTH109, PTH120
from __future__ import annotations

import builtins
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType
    from typing import NoReturn

PACKAGE = "_tiltyard"
OURS: tuple[str, ...] = ()
"""Names of all our modules, where a fork server has put them down: to look for them would touch every name there is."""
WORDS: dict[str, object] = {}
"""What ``site_words`` gives, where a fork server has it ready."""


def launch() -> None:
    """The whole of a fresh interpreter's work: ``argv`` is KIND, the number of descriptors from 3 on, and REST."""
    kind, count, *rest = sys.argv[1:]
    become(kind, rest, list(range(3, 3 + int(count))))


def become(kind: str, rest: Sequence[str], fds: list[int]) -> None:
    """Do one job in this process. Returns or raises as the job's code does."""
    if kind in ("program", "tool"):
        sys.argv = list(rest)
        module = __import__(f"{PACKAGE}.{rest[0]}", fromlist=["main"])
        module.main(fds if kind == "program" else list(rest[1:]))
        return
    _forget()
    vars(builtins).update(WORDS or site_words())
    if kind == "module":
        _run_module(rest[0], list(rest[1:]))
    elif kind == "script":
        _run(rest[0], None, [rest[0], *rest[1:]])
    elif kind == "code":
        _run("<string>", rest[0], ["-c", *rest[1:]])
    else:
        _run("<stdin>", sys.stdin.read(), ["-", *rest])


def _forget() -> None:
    """Nothing of ours is found by the code that comes next, nor where it lay."""
    for folder in getattr(sys.modules.get(PACKAGE), "__path__", ()):
        sys.path_importer_cache.pop(folder, None)
    for name in OURS or [n for n in sys.modules if n == PACKAGE or n.startswith(PACKAGE + ".")]:
        del sys.modules[name]


def site_words() -> dict[str, object]:
    """``exit`` and its like, which programs use and ``-S`` leaves out; none where they are there already."""
    if hasattr(builtins, "exit"):
        return {}
    from _sitebuiltins import Quitter, _Helper

    return {
        "exit": Quitter("exit", "Ctrl-D (i.e. EOF)"),
        "quit": Quitter("quit", "Ctrl-D (i.e. EOF)"),
        "help": _Helper(),
    }


def _main_names(filename: str, is_file: bool) -> dict[str, object]:
    """The names of ``__main__`` as they are when a script starts, in the module object that was there already."""
    names = sys.modules["__main__"].__dict__
    builtins = names["__builtins__"]
    names.clear()
    names.update(__name__="__main__", __doc__=None, __package__=None, __loader__=None, __spec__=None)
    names.update(__annotations__={}, __builtins__=builtins)
    if is_file:
        from importlib.machinery import SourceFileLoader

        names.update(__loader__=SourceFileLoader("__main__", filename), __file__=filename, __cached__=None)
    return names


def _run(filename: str, text: str | None, argv: list[str]) -> None:
    import os

    sys.argv = argv
    is_file = text is None
    if is_file:
        filename = os.path.abspath(filename)
        sys.path.insert(0, os.path.dirname(os.path.realpath(filename)))
    else:
        sys.path.insert(0, "")
    names = _main_names(filename, is_file)
    try:
        code = _compile(filename, text)
    except OSError as error:
        what = f"python: can't open file {filename!r}: [Errno {error.errno}] {error.strerror}"
        print(what, file=sys.stderr)
        raise SystemExit(2) from None
    except (SyntaxError, ValueError) as error:
        failure: BaseException = error.with_traceback(None)
    else:
        try:
            exec(code, names)
            return
        except SystemExit:
            raise
        except BaseException as error:
            failure = _without_us(error)
    _report(failure)


def _without_us(error: BaseException) -> BaseException:
    trace = error.__traceback__
    return error.with_traceback(trace.tb_next if trace else None)


def _compile(filename: str, text: str | None) -> CodeType:
    if text is not None:
        return compile(text, filename, "exec", dont_inherit=True)
    import io

    with io.open_code(filename) as file:
        return compile(file.read(), filename, "exec", dont_inherit=True)


def _report(error: BaseException) -> NoReturn:
    """As the interpreter does for an exception that nothing caught: the hook, then exit code 1 (or death by SIGINT).
    Called while no exception is handled, or the hook's own would have this one as its context."""
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    failure: BaseException | None = None
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except SystemExit:
        raise
    except BaseException as other:
        failure = _without_us(other)
    if failure is not None:
        print("Error in sys.excepthook:", file=sys.stderr)
        sys.__excepthook__(type(failure), failure, failure.__traceback__)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(type(error), error, error.__traceback__)
    if isinstance(error, KeyboardInterrupt):
        _die_by_sigint()
    raise SystemExit(1)


def _die_by_sigint() -> None:
    import atexit
    import os
    import signal

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


def _run_module(name: str, args: list[str]) -> None:
    import os
    import runpy

    sys.argv = ["-m", *args]
    sys.path.insert(0, os.getcwd())
    try:
        runpy._run_module_as_main(name)  # type: ignore[attr-defined]  # what ``python -m`` itself calls
        return
    except SystemExit:
        raise
    except BaseException as error:
        failure = _without_us(error)
    _report(failure)


# Our frames are below the script's, for all who look at the stack: no path of this machine shall be seen there.
for _function in (launch, become, _run, _run_module):
    _function.__code__ = _function.__code__.replace(co_filename="<cell>")
