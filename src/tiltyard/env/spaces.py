"""Gymnasium spaces for what a coding agent reads and does: Unicode text, and tool calls.

``gymnasium.spaces.Text`` knows fixed alphabets only. Both spaces sample from their own seeded generator, compare by
value, and go to JSON and back. Importing this module teaches Gymnasium's shared memory to carry UnicodeText, so that
``vectorization_mode="async"`` works as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Space
from gymnasium.vector.utils import shared_memory

from tiltyard.tools import TOOLS, Call, Tool, parse_action

_SAMPLE = (
    "abcdefghijklmnopqrstuvwxyz0123456789ABCXYZ_()[]{}=+-*/<>.,:;'\"\n\n\t    "
    "äöüßéñçøłžαβγδЖдяשאمرนไहि中文字日本語한국어→≤∑√∞€😀🚀👩‍💻"
)


class UnicodeText(Space[str]):
    """Any valid Unicode text of up to ``max_length`` code points, newlines included; the empty text too."""

    def __init__(self, max_length: int, *, seed: int | np.random.Generator | None = None) -> None:
        if max_length < 0:
            raise ValueError(f"found max_length {max_length}; expected 0 or more")
        self.max_length = int(max_length)
        super().__init__(seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A text of random length, up to 200 characters of many scripts."""
        if mask is not None or probability is not None:
            raise ValueError("UnicodeText has no mask: a text has no fixed alphabet")
        length = int(self.np_random.integers(0, min(self.max_length, 200) + 1))
        return "".join(_SAMPLE[i] for i in self.np_random.integers(0, len(_SAMPLE), length))

    def contains(self, x: Any) -> bool:
        if not isinstance(x, str) or len(x) > self.max_length:
            return False
        try:
            x.encode("utf-8")
        except UnicodeEncodeError:  # a lone surrogate
            return False
        return True

    def to_jsonable(self, sample_n: Iterable[str]) -> list[str]:
        return list(sample_n)

    def from_jsonable(self, sample_n: list[Any]) -> list[str]:
        return [str(s) for s in sample_n]

    def __repr__(self) -> str:
        return f"UnicodeText({self.max_length})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnicodeText) and self.max_length == other.max_length

    __hash__ = None  # type: ignore[assignment]  # as Gymnasium's own spaces: mutable, compared by value


class ToolCallSpace(Space[dict[str, Any]]):
    """Calls of these tools, as dicts: ``{"tool": "view_file", "path": "solution.py"}``.

    A sample is always a call that the environment carries out: paths are drawn from ``paths`` and a few new names.
    """

    def __init__(
        self,
        tools: Sequence[Tool] = TOOLS,
        *,
        paths: Sequence[str] = ("solution.py",),
        seed: int | np.random.Generator | None = None,
    ) -> None:
        if not tools:
            raise ValueError("found no tools; expected at least one")
        self.tools, self.paths = tuple(tools), tuple(paths)
        super().__init__(seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> dict[str, Any]:
        """A legal call. ``mask`` (0 or 1 a tool) or ``probability`` (a number a tool) choose among the tools."""
        if mask is not None and probability is not None:
            raise ValueError("found both a mask and probabilities; expected one of them")
        weights = None
        if mask is not None or probability is not None:
            weights = np.asarray(mask if mask is not None else probability, dtype=np.float64)
            if weights.shape != (len(self.tools),) or not weights.sum() > 0 or (weights < 0).any():
                raise ValueError(
                    f"found {weights!r}; expected {len(self.tools)} weights, not all 0: one for each tool"
                )
            weights = weights / weights.sum()
        tool = self.tools[int(self.np_random.choice(len(self.tools), p=weights))]
        out: dict[str, Any] = {"tool": tool.name}
        for param in tool.params:
            if param.required or self.np_random.random() < 0.5:
                out[param.name] = self._value(param.name, param.type, param.minimum)
        if "start_line" in out and "end_line" in out:
            out["start_line"], out["end_line"] = sorted((out["start_line"], out["end_line"]))
        return out

    def _value(self, name: str, kind: str, minimum: int | None) -> str | int:
        if kind == "integer":
            return int(self.np_random.integers(minimum or 0, 100))
        if name == "path":
            names = (*self.paths, "notes.txt", "pkg/helper.py")
            return names[int(self.np_random.integers(len(names)))]
        length = int(self.np_random.integers(1, 80))
        return "".join(_SAMPLE[i] for i in self.np_random.integers(0, len(_SAMPLE), length))

    def contains(self, x: Any) -> bool:
        return type(x) is dict and isinstance(parse_action(x, self.tools), Call)

    def to_jsonable(self, sample_n: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        return [dict(s) for s in sample_n]

    def from_jsonable(self, sample_n: list[Any]) -> list[dict[str, Any]]:
        return [dict(s) for s in sample_n]

    def __repr__(self) -> str:
        return f"ToolCallSpace({', '.join(t.name for t in self.tools)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToolCallSpace) and self.tools == other.tools

    __hash__ = None  # type: ignore[assignment]


# -- Gymnasium's shared memory: for each environment the length, then the code points ----------------------------


@shared_memory.create_shared_memory.register(UnicodeText)
def _create(space: UnicodeText, n: int = 1, ctx: Any = None) -> Any:
    return ctx.Array("i", n * (space.max_length + 1))


class _LiveTexts(Sequence[str]):
    """The texts that are in the shared memory now. Gymnasium reads its observations object once and copies it after
    each step: a tuple made once would show the first texts for ever. A copy is a plain tuple."""

    def __init__(self, buffer: Any, n: int, width: int) -> None:
        self._rows = np.frombuffer(buffer, dtype=np.int32).reshape(n, width)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self)[index]
        row = self._rows[index]
        return row[1 : 1 + row[0]].tobytes().decode("utf-32-le")

    def __deepcopy__(self, memo: Any) -> tuple[str, ...]:
        return tuple(self)


@shared_memory.read_from_shared_memory.register(UnicodeText)
def _read(space: UnicodeText, shared_memory: Any, n: int = 1) -> _LiveTexts:
    return _LiveTexts(shared_memory.get_obj(), n, space.max_length + 1)


@shared_memory.write_to_shared_memory.register(UnicodeText)
def _write(space: UnicodeText, index: int, value: str, shared_memory: Any) -> None:
    row = np.frombuffer(shared_memory.get_obj(), dtype=np.int32)
    start = index * (space.max_length + 1)
    row[start] = len(value)
    row[start + 1 : start + 1 + len(value)] = np.frombuffer(value.encode("utf-32-le"), dtype=np.int32)
