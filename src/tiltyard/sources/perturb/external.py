"""The names that belong to Python and its standard library: what a task's own names must not be taken for.

Modules of the standard library are imported here, to be asked for what they hold, but for those that do something when
they are imported; a task's own modules, and packages of others, never are.
"""

from __future__ import annotations

import builtins
import collections.abc
import importlib
import io
import keyword
import sys
import types
from collections.abc import Iterable
from functools import lru_cache

_NOT_IMPORTED = frozenset(
    "antigravity this idlelib turtledemo turtle tkinter lib2to3 test ensurepip venv pydoc_data _pyrepl pty tty "
    "__main__ msilib winreg winsound msvcrt nt curses crypt nis ossaudiodev spwd".split()
)
_RETURNED = frozenset(
    "hexdigest digest update copy block_size digest_size line_num dialect tm_year tm_mon tm_mday tm_hour tm_min tm_sec "
    "st_size st_mode st_mtime returncode columns lines param node join strpath ensure mkdir chdir read write readlines "
    "basename dirname check listdir relto fspath".split()
)
"""Attributes of objects whose class no module names."""
FIXTURES = frozenset(
    "tmp_path tmp_path_factory tmpdir tmpdir_factory capsys capfd capsysbinary capfdbinary caplog monkeypatch request "
    "recwarn cache pytestconfig record_property record_testsuite_property doctest_namespace mocker benchmark "
    "event_loop testdir pytester".split()
)
"""Parameters that pytest and its usual plugins fill in."""
HOOKS = (
    "test", "Test", "pytest_", "visit_", "leave_", "depart_", "do_", "handle_", "setup_", "teardown_", "setUp", "tearDown",
)  # fmt: skip
"""Beginnings of names that are called by what they are called."""
BUILTINS = frozenset(dir(builtins)) | frozenset(keyword.kwlist) | frozenset(keyword.softkwlist)
STDLIB = frozenset(sys.stdlib_module_names)


def _dir(value: object) -> list[str]:
    try:
        return dir(value)
    except Exception:  # a lazy module that can't be looked at
        return []


@lru_cache(maxsize=1)
def _always() -> frozenset[str]:
    """Attributes of what every program has without an import."""
    found = set(_RETURNED)
    for module in (builtins, types, collections.abc, io):
        for name in _dir(module):
            value = getattr(module, name, None)
            found.update(_dir(value if isinstance(value, type) else type(value)))
    return frozenset(found)


@lru_cache(maxsize=512)
def _of_module(module: str) -> frozenset[str] | None:
    """The names in a module and the attributes of what is in it; None if it can't be looked at."""
    root = module.partition(".")[0]
    if root != "pytest" and (root not in STDLIB or root in _NOT_IMPORTED):
        return None
    try:
        found = importlib.import_module(module)
    except Exception:  # a platform's own, or no module at all
        return None
    names = set(_dir(found))
    for name in _dir(found):
        value = getattr(found, name, None)
        names.update(_dir(value if isinstance(value, type) else type(value)))
    return frozenset(names)


def attributes(modules: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The attributes that objects of Python and of these modules have, and the modules that could not be asked."""
    found, unknown = set(_always()), set()
    for module in modules:
        names = _of_module(module)
        if names is None:
            root = _of_module(module.rpartition(".")[0]) if "." in module else None
            names = root
        if names is None:
            unknown.add(module)
        else:
            found |= names
    return frozenset(found), frozenset(unknown)


def exported(module: str) -> frozenset[str] | None:
    """What ``from module import *`` binds; None if that can't be said."""
    if _of_module(module) is None:
        return None
    found = sys.modules.get(module)
    every = getattr(found, "__all__", None) or [n for n in _dir(found) if not n.startswith("_")]
    return frozenset(map(str, every))
