"""A script in a cell against the same script under a plain interpreter: nobody can tell the difference."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from conformance import LONG

from tiltyard.cells import CellLimits, ProcessWall, Run
from tiltyard.cells.client import KeeperCell


@pytest.fixture(scope="module")
def cell() -> Iterator[KeeperCell]:
    with ProcessWall().open({}, CellLimits()) as cell:
        yield cell


SCRIPTS = {
    "nothing": "",
    "output": "print('x'); print('y', end='')",
    "exit code": "import sys; sys.exit(3)",
    "exit text": "raise SystemExit('words')",
    "exit none": "raise SystemExit(None)",
    "exit odd": "raise SystemExit([1, 2])",
    "exit words": "print(exit, quit)\nexit(2)",
    "error": "def f(x):\n    return 1 / x\n\nf(0)\n",
    "error in a class": "class A:\n    x = undefined\n",
    "chained": "try:\n    1/0\nexcept ZeroDivisionError as e:\n    raise ValueError('b') from e\n",
    "context": "try:\n    1/0\nexcept ZeroDivisionError:\n    {}['k']\n",
    "group": "raise ExceptionGroup('g', [ValueError(1), TypeError(2)])",
    "base exception": "class E(BaseException): pass\nraise E('x')",
    "keyboard interrupt": "raise KeyboardInterrupt",
    "syntax": "x = (1,\nfor",
    "indentation": "def f():\nx = 1\n",
    "latin": "# coding: latin-1\nprint(len('\xe9'))\n",
    "bom": "\ufeffprint('bom')",
    "future": "from __future__ import annotations\ndef f(x: undefined): pass\nprint(f.__annotations__)",
    "main names": "print(sorted(globals()))",
    "main values": "print(__name__, __file__, __package__, __spec__, __doc__, __cached__, type(__loader__).__name__)",
    "annotations": "x: int = 1\nprint(__annotations__)",
    "docstring": "'''doc'''\nprint(__doc__)",
    "main module": "import sys\nm = sys.modules['__main__']\nx = 5\nprint(m.x, vars(m) is globals(), m.__file__)",
    "pickled": "import pickle\nclass A:\n    pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)",
    "source": "import inspect\ndef f():\n    return 1  # here\nprint(inspect.getsource(f))",
    "argv": "import sys; print(sys.argv, sys.path[0])",
    "flags": "import sys; print(sys.flags.optimize, sys.flags.utf8_mode, sys.dont_write_bytecode)",
    "hook": "import sys\nsys.excepthook = lambda t, e, tb: print('hook', t, tb.tb_lineno, tb.tb_next)\n1/0",
    "hook fails": "import sys\ndef hook(*a): raise RuntimeError('in hook')\nsys.excepthook = hook\n1/0",
    "traceback module": "import traceback\ntry: 1/0\nexcept Exception: traceback.print_exc()",
    "frames": "import sys\nf = sys._getframe()\nprint(f.f_code.co_filename, f.f_lineno)",
    "atexit": "import atexit; atexit.register(print, 'bye'); 1/0",
    "thread error": "import threading\nt = threading.Thread(target=lambda: 1/0, name='T')\nt.start(); t.join()",
    "warning": "import warnings; warnings.warn('careful')",
    "recursion": "def f(): f()\ntry: f()\nexcept RecursionError: print('deep')",
    "stdin": "print(input(), input())",
    "eof": "input(); input(); input()",
    "multiprocessing": "import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n    m.set_start_method('spawn')\n    with m.Pool(2) as p: print(p.map(f, [1, 2, 3]))",
    "unittest": "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(1, 2)\nif __name__ == '__main__':\n    unittest.main(verbosity=0)",
    "dataclass": "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nprint(P(1))",
    "namedtuple": "from typing import NamedTuple, get_type_hints\nclass P(NamedTuple):\n    x: 'int'\nprint(get_type_hints(P))",
    "doctest": "def f():\n    '''\n    >>> f()\n    1\n    '''\n    return 1\nimport doctest; print(doctest.testmod())",
    "abort": "import os; os.abort()",
    "exec": "import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'print(1)'])",
    "stdout closed": "import sys; sys.stdout.close()",
    "late output": "import os, sys; sys.stdout.write('kept'); sys.stdout.flush(); os._exit(4)",
}


def plain(folder: Path, argv: list[str], stdin: bytes) -> tuple[int, bytes, bytes]:
    env = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-s", *argv], input=stdin, cwd=folder, env=env, capture_output=True, timeout=LONG
    )
    base = str(folder).encode()
    return done.returncode, done.stdout.replace(base, b"/workspace"), done.stderr.replace(base, b"/workspace")


def same(cell: KeeperCell, folder: Path, *argv: str) -> None:
    stdin = b"one\ntwo\n"
    expected = plain(folder, list(argv), stdin)
    got = cell.run(Run(("python", *argv), stdin, wall_s=LONG))
    assert (got.rc, normal(got.stdout), normal(got.stderr)) == (
        expected[0],
        normal(expected[1]),
        normal(expected[2]),
    )


def normal(text: bytes) -> bytes:
    """Without what differs from run to run: times."""
    lines = [b"Ran in" if line.startswith(b"Ran ") else line for line in text.splitlines(keepends=True)]
    return b"".join(lines).replace(sys.executable.encode(), b"python")


@pytest.mark.parametrize("name", SCRIPTS)
def test_as_under_a_plain_interpreter(cell: KeeperCell, tmp_path: Path, name: str) -> None:
    data = SCRIPTS[name].encode("latin-1" if name == "latin" else "utf-8")
    (tmp_path / "script.py").write_bytes(data)
    cell.write("script.py", data)
    same(cell, tmp_path, "script.py", "arg", "-x")


@pytest.mark.parametrize(
    "name", ["output", "error", "exit code", "argv", "main names", "syntax", "hook", "stdin"]
)
def test_code_as_under_a_plain_interpreter(cell: KeeperCell, tmp_path: Path, name: str) -> None:
    same(cell, tmp_path, "-c", SCRIPTS[name], "arg")


def test_modules_and_stdin_as_under_a_plain_interpreter(cell: KeeperCell, tmp_path: Path) -> None:
    module = textwrap.dedent(
        """
        import sys
        print(__name__, __package__, __spec__.name, sys.argv[1:], sys.path[0])
        1/0
        """
    )
    (tmp_path / "pkg").mkdir()
    for path, text in {"pkg/__init__.py": "", "pkg/__main__.py": module, "mod.py": module}.items():
        (tmp_path / path).write_text(text)
        cell.write(path, text.encode())
    same(cell, tmp_path, "-m", "mod", "x")
    same(cell, tmp_path, "-m", "pkg")
    same(cell, tmp_path, "none.py")
    same(cell, tmp_path, "-m", "no_such_module")


def test_a_script_in_a_folder_and_through_a_link(cell: KeeperCell, tmp_path: Path) -> None:
    for path, text in {
        "sub/main.py": "import sib, sys; print(sib.X, sys.path[0], __file__)",
        "sub/sib.py": "X = 1",
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
        cell.write(path, text.encode())
    same(cell, tmp_path, "sub/main.py")
    (tmp_path / "link.py").symlink_to("sub/main.py")
    cell.run(Run(("ln", "-s", "sub/main.py", "link.py"), wall_s=LONG))
    same(cell, tmp_path, "link.py")


def test_sources_that_are_no_text_end_like_syntax_errors(cell: KeeperCell) -> None:
    for data in (b"x = 1\0", b"# coding: nonsense\n", b"x = '\xff'\n"):
        cell.write("script.py", data)
        result = cell.run(Run(("python", "script.py"), wall_s=LONG))
        older = sys.version_info < (3, 11, 4) and b"null bytes" in result.stderr  # a ValueError then
        assert (
            result.rc == 1 and (b"SyntaxError" in result.stderr or older) and b"<cell>" not in result.stderr
        )


def test_who_looks_at_the_stack_sees_no_path_of_this_machine(cell: KeeperCell) -> None:
    cell.write("script.py", b"import traceback, inspect; traceback.print_stack(); print(inspect.stack())")
    result = cell.run(Run(("python", "script.py"), wall_s=LONG))
    assert result.rc == 0 and b"script.py" in result.stderr
    assert b"inside" not in result.stderr + result.stdout and b"tiltyard" not in result.stderr + result.stdout
