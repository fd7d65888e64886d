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

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType

PACKAGE = "_tiltyard"


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
    _site_words()
    if kind == "module":
        _run_module(rest[0], list(rest[1:]))
    elif kind == "script":
        _run(rest[0], None, [rest[0], *rest[1:]])
    elif kind == "code":
        _run("<string>", rest[0], ["-c", *rest[1:]])
    else:
        _run("<stdin>", sys.stdin.read(), ["-", *rest])


def _forget() -> None:
    """Nothing of ours is found by the code that comes next."""
    for name in [n for n in sys.modules if n == PACKAGE or n.startswith(PACKAGE + ".")]:
        del sys.modules[name]


def _site_words() -> None:
    """``exit`` and its like, which programs use and ``-S`` leaves out."""
    import builtins

    if hasattr(builtins, "exit"):
        return
    from _sitebuiltins import Quitter, _Helper

    words = {
        "exit": Quitter("exit", "Ctrl-D (i.e. EOF)"),
        "quit": Quitter("quit", "Ctrl-D (i.e. EOF)"),
        "help": _Helper(),
    }
    for name, value in words.items():
        setattr(builtins, name, value)


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
        _report(error.with_traceback(None))
    try:
        exec(code, names)
    except Exception as error:
        trace = error.__traceback__
        _report(error.with_traceback(trace.tb_next if trace else None))
    except SystemExit:
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        trace = error.__traceback__
        _report(error.with_traceback(trace.tb_next if trace else None))


def _compile(filename: str, text: str | None) -> CodeType:
    if text is not None:
        return compile(text, filename, "exec", dont_inherit=True)
    import io

    with io.open_code(filename) as file:
        return compile(file.read(), filename, "exec", dont_inherit=True)


def _report(error: BaseException) -> None:
    """As the interpreter does for an exception that nothing caught: the hook, then exit code 1."""
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    sys.excepthook(type(error), error, error.__traceback__)
    raise SystemExit(1) from None


def _run_module(name: str, args: list[str]) -> None:
    import os
    import runpy

    sys.argv = ["-m", *args]
    sys.path.insert(0, os.getcwd())
    try:
        runpy._run_module_as_main(name)  # type: ignore[attr-defined]  # what ``python -m`` itself calls
    except Exception as error:
        trace = error.__traceback__
        _report(error.with_traceback(trace.tb_next if trace else None))
