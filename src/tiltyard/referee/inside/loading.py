"""A module of the current folder, imported as ``importlib.import_module`` would, without the search for it.

To a process that lives for some milliseconds the search is most of the work of an import. It is left out only where it
could find nothing else: for a plain module in a folder with nothing else of its name, which the standard library has not.
Bytecode that lies beside it is not looked at.
"""

# ruff: noqa: PTH109, PTH113, PTH208
from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys
from types import ModuleType


def load(name: str) -> ModuleType:
    """The module of that name; the current folder is the first on ``sys.path``. Raises what its code raises, or what an
    import of it would."""
    if not _is_plain(name):
        importlib.invalidate_caches()
        return importlib.import_module(name)
    path = f"{os.getcwd()}/{name}.py"
    with open(path, "rb") as file:
        source = file.read()
    loader = importlib.machinery.SourceFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec._initializing = True  # type: ignore[attr-defined]  # an import of it from itself is told apart by this
    sys.modules[name] = module
    try:
        exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    finally:
        spec._initializing = False  # type: ignore[attr-defined]
    return sys.modules.get(name, module)  # a module may put another one in its place


def _is_plain(name: str) -> bool:
    if not name.isidentifier() or name in sys.modules or name in sys.stdlib_module_names:
        return False
    beside = [entry for entry in os.listdir() if entry.partition(".")[0] == name]
    return beside == [f"{name}.py"] and os.path.isfile(f"{name}.py")
