"""What the solution may ask of the objects that a test hands to it, and which exceptions may come out of it.

A test may pass a callback, a file-like object or an instance of a class of its own. The solution gets a stand-in; what
it does with that is executed in the examiner, beside the hidden tests. So: functions may be called and nothing else;
of other objects only public names, operators and iteration; never a frame, code object, module, traceback or type
internals, however they are reached.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Container
from typing import Any

from .describe import SPECIAL
from .link import ProtocolError

_HIDDEN_TYPES = (
    types.FrameType, types.CodeType, types.ModuleType, types.TracebackType, types.CellType, types.GetSetDescriptorType,
    types.MemberDescriptorType,
)  # fmt: skip
_HIDDEN_PREFIXES = ("gi_", "cr_", "ag_", "f_", "tb_", "co_", "func_")
_HIDDEN_NAMES = frozenset({"mro"})
_READABLE = frozenset({"__name__", "__qualname__", "__doc__", "__signature__"})
FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.MethodWrapperType,
    types.MethodDescriptorType,
)
_READERS = (
    getattr, setattr, delattr, vars, dir, eval, exec, compile, globals, locals, open, breakpoint, __import__,
    str.format, str.format_map,
)  # fmt: skip
_CLOSED = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
_GENERATOR_METHODS = frozenset({"send", "throw", "close", "asend", "athrow", "aclose"})

STEERING_NAMES = frozenset({"SkipTest", "_ShouldStop", "_UnexpectedSuccess"})
_EXCEPTION_MODULES = [
    "json",
    "json.decoder",
    "decimal",
    "fractions",
    "queue",
    "struct",
    "binascii",
    "csv",
    "configparser",
    "statistics",
    "subprocess",
    "asyncio",
    "asyncio.exceptions",
    "asyncio.queues",
    "socket",
    "ssl",
    "zlib",
    "gzip",
    "lzma",
    "zipfile",
    "tarfile",
    "shutil",
    "re",
    "copy",
    "pickle",
    "uuid",
    "ipaddress",
    "urllib.error",
    "urllib.parse",
    "http.client",
    "email.errors",
    "xml.parsers.expat",
    "xml.etree.ElementTree",
    "zoneinfo",
    "zoneinfo._common",
    "dataclasses",
    "enum",
    "calendar",
    "argparse",
    "getopt",
    "locale",
    "threading",
    "concurrent.futures",
    "concurrent.futures._base",
    "contextlib",
    "tokenize",
    "io",
    "sqlite3",
    "string",
    "types",
    "weakref",
    "graphlib",
    "tomllib",
    "select",
]


class Refused(ProtocolError):
    """The solution's side asked an object of the test for something that no solution needs."""


def may_export(value: Any) -> None:
    """Refused: this object of the examiner must not be reachable from the solution."""
    if isinstance(value, _HIDDEN_TYPES):
        raise Refused(f"a {type(value).__name__} of the examiner")


def may_address(item: Any) -> None:
    """Refused: the solution may ask things of the test's objects, never of data that it made up.

    ``"{0.__globals__}".format(callback)``, executed here, would read out the hidden tests.
    """
    tag = item[0] if type(item) is list and item else None
    if tag == "M":
        may_address(item[1])
    elif tag not in ("m", "k", "nt", "e"):
        raise Refused("a question to plain data")


def may_call(called: Any) -> None:
    """Refused: the solution may not call this function of the examiner with arguments of its own."""
    if any(called is reader for reader in _READERS):
        raise Refused("a function that reads the inside of objects")


def may_name(name: str, function: bool) -> bool:
    """Whether the solution may ask a test's object for an attribute of this name; of functions hardly any."""
    if name in _READABLE:
        return True
    return not (
        function or name.startswith("_") or name.startswith(_HIDDEN_PREFIXES) or name in _HIDDEN_NAMES
    )


def may_get(target: Any, name: Any) -> None:
    """Refused: the solution may not read this attribute of an object of the examiner."""
    if type(name) is not str:
        raise Refused("an attribute whose name is no text")
    if name in _READABLE:
        return
    if isinstance(target, _CLOSED) and name not in _GENERATOR_METHODS:
        raise Refused("the inside of a generator")
    if isinstance(target, FUNCTIONS):
        raise Refused("the inside of a function")
    if not may_name(name, False):
        raise Refused("a private attribute")


def may_set(target: Any, name: Any, home: Container[str]) -> None:
    """Refused: the solution may not write this attribute. ``home`` holds the module names of the tests."""
    may_get(target, name)
    if isinstance(target, type) or type(target).__module__ not in home:
        raise Refused("writing to an object that is not of a test's own class")


def may_special(target: Any, name: Any) -> None:
    """Refused: the solution may not use this operator."""
    if name not in SPECIAL or (
        isinstance(target, type) and name not in ("__str__", "__repr__", "__hash__", "__eq__", "__ne__")
    ):
        raise Refused("an operator that is none")


def standard_exception(module: Any, name: Any) -> type[Exception] | None:
    """The exception class of the standard library of this name, if it is one that may come from a solution."""
    if type(module) is not str or type(name) is not str or module not in _EXCEPTION_MODULES:
        return None
    if module not in sys.modules:
        __import__(module)
    found = getattr(sys.modules.get(module), name, None)
    ok = isinstance(found, type) and issubclass(found, Exception) and found.__name__ not in STEERING_NAMES
    return found if ok else None
