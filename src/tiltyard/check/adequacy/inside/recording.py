"""What the hidden tests call the reference with: its functions and classes are wrapped, and the tests run once.

A trace is the list of operations of one test: ``(number, kind, receiver, name, args, kwargs)`` with arguments *frozen*,
which is a description from which ``playing.thaw`` makes a value like it as often as needed.
"""

from __future__ import annotations

import contextlib
import copy
import enum
import functools
import itertools
import random
import types
from typing import Any

from .basics import DICTS, LISTS, MAX_ITEMS, PLAIN, limited, silent
from .playing import shown

MAX_OPS = 60
_UNWRAPPED = frozenset(
    "__new__ __init_subclass__ __class_getitem__ __getattribute__ __getattr__ __setattr__ __delattr__ __del__ "
    "__set_name__ __reduce__ __reduce_ex__ __post_init__ __hash__ __repr__".split()
)


class Recorder:
    """Wraps the functions and classes of the task's modules, and notes the calls that come from outside."""

    def __init__(self, modules: Any) -> None:
        self.modules = modules
        self.depth = 0
        self.trace: list[Any] = []
        self.known: dict[int, int] = {}
        self.kept: list[Any] = []

    def begin(self) -> Any:
        self.trace, self.known, self.kept = [], {}, []

    def wrap(self) -> Any:
        done: dict[Any, Any] = {}
        for module in self.modules.values():
            for name, value in list(vars(module).items()):
                if getattr(value, "__module__", None) not in self.modules or value.__name__[:1] == "_":
                    continue  # what is private is seen by nobody but the program itself
                if isinstance(value, types.FunctionType):
                    if value not in done:
                        done[value] = self.function(value, ("call", value.__module__, value.__qualname__))
                    setattr(module, name, done[value])
                elif isinstance(value, type) and value not in done:
                    done[value] = value
                    if not issubclass(value, (enum.Enum, BaseException)):
                        self.patch(value)

    def patch(self, cls: Any) -> Any:
        for name, raw in list(vars(cls).items()):
            where = ("call", cls.__module__, f"{cls.__qualname__}.{name}")
            made = None
            if name in _UNWRAPPED or (name[0] == "_" and name[:2] != "__"):
                continue
            if name == "__init__":
                made = self.init(cls, raw)
            elif isinstance(raw, types.FunctionType):
                made = self.method(raw, name)
            elif isinstance(raw, staticmethod):
                made = staticmethod(self.function(raw.__func__, where))
            elif isinstance(raw, classmethod):
                made = classmethod(self.bound_to_class(raw.__func__, where))
            elif isinstance(raw, property) and raw.fget is not None:
                made = property(self.getter(raw.fget, name), raw.fset, raw.fdel, raw.__doc__)
            if made is not None:
                with contextlib.suppress(AttributeError, TypeError):
                    setattr(cls, name, made)
        if not any("__init__" in vars(c) for c in cls.__mro__ if c.__module__ in self.modules):
            raw = cls.__init__
            with contextlib.suppress(AttributeError, TypeError):
                cls.__init__ = self.init(cls, _nothing if raw is object.__init__ else raw)

    def note(self, kind: Any, receiver: Any, name: Any, args: Any, kwargs: Any) -> Any:
        """The number of the new operation, or None if it can't be played again."""
        if len(self.trace) >= MAX_OPS:
            return None
        number = len(self.trace)
        frozen = tuple(self.freeze(a) for a in args), {k: self.freeze(v) for k, v in kwargs.items()}
        self.trace.append((number, kind, receiver, name, *frozen))
        return number

    def made(self, number: Any, value: Any) -> Any:
        """The result of an operation, if later ones may be asked of it."""
        if number is not None and type(value).__module__ in self.modules and not isinstance(value, enum.Enum):
            self.known.setdefault(id(value), number)
            self.kept.append(value)

    def run(self, number: Any, call: Any) -> Any:
        self.depth += 1
        try:
            value = call()
        finally:
            self.depth -= 1
        self.made(number, value)
        return value

    def function(self, raw: Any, where: Any) -> Any:
        @functools.wraps(raw)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.depth:
                return raw(*args, **kwargs)
            args, kwargs = self.tee(args, kwargs)
            return self.run(self.note(where[0], None, where[1:], args, kwargs), lambda: raw(*args, **kwargs))

        return call

    def bound_to_class(self, raw: Any, where: Any) -> Any:
        @functools.wraps(raw)
        def call(cls: Any, *args: Any, **kwargs: Any) -> Any:
            if self.depth:
                return raw(cls, *args, **kwargs)
            args, kwargs = self.tee(args, kwargs)
            return self.run(
                self.note(where[0], None, where[1:], args, kwargs), lambda: raw(cls, *args, **kwargs)
            )

        return call

    def method(self, raw: Any, name: Any) -> Any:
        @functools.wraps(raw)
        def call(this: Any, *args: Any, **kwargs: Any) -> Any:
            if self.depth or id(this) not in self.known:
                return raw(this, *args, **kwargs)
            args, kwargs = self.tee(args, kwargs)
            number = self.note("method", self.known[id(this)], name, args, kwargs)
            return self.run(number, lambda: raw(this, *args, **kwargs))

        return call

    def getter(self, raw: Any, name: Any) -> Any:
        def get(this: Any) -> Any:
            if self.depth or id(this) not in self.known:
                return raw(this)
            return self.run(self.note("get", self.known[id(this)], name, (), {}), lambda: raw(this))

        return get

    def init(self, owner: Any, raw: Any) -> Any:
        @functools.wraps(raw)
        def call(this: Any, *args: Any, **kwargs: Any) -> Any:
            if self.depth or type(this).__module__ not in self.modules:
                return raw(this, *args, **kwargs)
            args, kwargs = self.tee(args, kwargs)
            number = self.note("call", None, (type(this).__module__, type(this).__qualname__), args, kwargs)
            self.run(number, lambda: raw(this, *args, **kwargs))
            self.made(number, this)

        return call

    def tee(self, args: Any, kwargs: Any) -> Any:
        """Iterators can't be copied: the first items are taken out, and put back in front."""
        args = tuple(_Iterator(a) if _is_iterator(a) else a for a in args)
        return args, {k: _Iterator(v) if _is_iterator(v) else v for k, v in kwargs.items()}

    def freeze(self, value: Any, depth: Any = 0) -> Any:
        """A description of a value from which ``thaw`` makes one like it, as often as needed."""
        kind = type(value)
        if kind in PLAIN:
            return ("v", value)
        if depth > 30:
            return ("o", value)
        if kind in LISTS:
            return ("l", kind, [self.freeze(v, depth + 1) for v in value])
        if kind in DICTS:
            items = [(self.freeze(k, depth + 1), self.freeze(v, depth + 1)) for k, v in value.items()]
            return ("d", kind, items, getattr(value, "default_factory", None))
        if kind is _Iterator:
            return ("i", [self.freeze(v, depth + 1) for v in value.seen])
        if id(value) in self.known:
            return ("ref", self.known[id(value)])
        if kind.__module__ in self.modules and isinstance(value, enum.Enum):
            return ("p", kind.__module__, f"{kind.__qualname__}.{value.name}")
        if getattr(value, "__module__", None) in self.modules and isinstance(
            value, (type, types.FunctionType)
        ):
            return ("p", value.__module__, value.__qualname__)
        try:
            return ("o", copy.deepcopy(value))
        except Exception:
            return ("o", value)


def _nothing(this: Any, *args: Any, **kwargs: Any) -> Any:
    """What ``object.__init__`` does."""


class _Iterator:
    def __init__(self, source: Any) -> None:
        self.seen = list(itertools.islice(source, MAX_ITEMS))
        self.all = itertools.chain(self.seen, source)

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return next(self.all)


def _is_iterator(value: Any) -> Any:
    return isinstance(value, (types.GeneratorType, itertools.count, map, filter, zip)) or (
        type(value) is type(iter([])) or type(value) is type(iter(()))
    )


def record(job: Any, modules: Any) -> Any:
    """The traces of the tests, each once."""
    recorder = Recorder(modules)
    recorder.wrap()
    main = modules[job["main"]]
    traces, seen = [], set()
    for code in job["tests"]:
        recorder.begin()
        names = {"__name__": "hidden_tests"}
        with contextlib.suppress(BaseException), limited(5.0), silent():
            exec(compile(job["prelude"], "<prelude>", "exec"), names)
            names.update({n: getattr(main, n) for n in job["entry"] if hasattr(main, n)})
            random.seed(0)
            exec(compile(code, "<test>", "exec"), names)
        # a test with a loop of single calls is many inputs; one that builds something up is one
        for trace in _parts(recorder.trace):
            key = shown(trace)
            if key not in seen:
                seen.add(key)
                traces.append(trace)
    return traces


def _parts(trace: Any) -> Any:
    if any(kind != "call" for _, kind, *_ in trace) or any(_refers(op) for op in trace):
        return [trace] if trace else []
    return [[op] for op in trace]


def _refers(op: Any) -> Any:
    def inside(frozen: Any) -> Any:
        kind = frozen[0]
        if kind == "l" or kind == "i":
            return any(inside(x) for x in frozen[-1])
        if kind == "d":
            return any(inside(k) or inside(v) for k, v in frozen[2])
        return kind == "ref"

    return any(inside(x) for x in (*op[4], *op[5].values()))
