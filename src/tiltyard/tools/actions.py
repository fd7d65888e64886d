"""From anything at all to a checked call, or to a text that says what is wrong with it.

Promises: never raises for what it is given, whatever its type or methods do (a KeyboardInterrupt passes: it is the
user's); takes only exact plain data out of it; bounded in time and memory by the caps below. The same action always
gives the same call, the same canonical form and the same text.

Accepted: ``{"tool": NAME, ARGUMENT: …}``; OpenAI's ``{"type": "function", "function": {"name", "arguments"}}`` and
``{"type": "function_call", "name", "arguments"}``; Anthropic's ``{"type": "tool_use", "name", "input"}``; MCP's
``{"name", "arguments"}``; an SDK's object with those attributes; and each of these as a JSON string.
"""

from __future__ import annotations

import difflib
import json
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tiltyard.tools import text
from tiltyard.tools.definitions import ALL, TOOLS, Param, Tool, find

MAX_CHARS = 64 << 20
"""Characters in one action, all texts together."""
MAX_FIELDS = 64
REFUSED = "invalid"
"""The only field of the canonical form of a refused action; see :class:`Refusal`."""

EXAMPLE = '{"tool": "view_file", "path": "solution.py"}'
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Call:
    """A checked call: a tool that exists, every required argument, each of its type, nothing else."""

    tool: str
    arguments: Mapping[str, str | int]

    @property
    def canonical(self) -> str:
        """The action as JSON, the same bytes in whatever form it came."""
        return _dump({"tool": self.tool, **self.arguments})

    @property
    def chars(self) -> int:
        return len(self.canonical)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Not a call; ``message`` is for the player. ``chars`` is how long the action was, where that can be told.

    Its canonical form is an action that is refused in the same words, so that a record of it replays exactly.
    """

    message: str
    chars: int = 0

    @property
    def canonical(self) -> str:
        return _dump({REFUSED: self.message, "chars": self.chars})


def _dump(data: Any) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


class _Bad(Exception):
    """Control flow: this is not a call, and here is why."""


def parse_action(action: object, tools: tuple[Tool, ...] = TOOLS) -> Call | Refusal:
    """A :class:`Call`, or a :class:`Refusal` whose message says what was found and what was expected."""
    chars = 0
    try:
        if issubclass(type(action), str):
            chars = len(plain := _str(action))
            action = _from_json(plain, "the action")
            if issubclass(type(action), str):
                raise _Bad("found a JSON string that holds only a text; expected one that holds an object")
        if issubclass(type(action), dict):
            fields = _fields(action, "the action")
            if (
                set(fields) == {REFUSED, "chars"}
                and type(fields[REFUSED]) is str
                and type(fields["chars"]) is int
            ):
                return Refusal(fields[REFUSED][:4000], max(0, fields["chars"]))
            name, arguments = _unwrap(fields)
        else:
            name, arguments = _from_object(action)
        return _check(name, arguments, tools)
    except _Bad as bad:
        message = str(bad)
    except BaseException as error:  # a hostile object's own exception, whatever its class
        if isinstance(error, KeyboardInterrupt) or type(error).__module__.startswith("tiltyard."):
            raise  # the user, or a worker's signal, wants this process to end
        message = f"found {_kind(action)} that can't be read ({_type_name(type(error))})"
    message = f"Invalid action: {message}. An action is an object such as {EXAMPLE}. Nothing was done."
    return Refusal(text.cut_middle(text.safe(message), 4000), chars or len(message))


def canonical(action: object) -> str:
    """The one JSON text under which an action is recorded."""
    return parse_action(action, ALL).canonical


# -- taking plain data out of anything ---------------------------------------------------------------------------


def _str(value: object) -> str:
    """The exact str of a str or of a subclass, calling none of its methods."""
    plain = str.__str__(value)
    if len(plain) > MAX_CHARS:
        raise _Bad(f"found a text of {len(plain)} characters; expected at most {MAX_CHARS}")
    return plain


def _type_name(kind: type) -> str:
    name = type.__dict__["__name__"].__get__(
        kind
    )  # not through the class, which may have a metaclass of its own
    return text.name(name, 60)


def _kind(value: object) -> str:
    """What a value is, in words, without calling anything of it."""
    kind = type(value)
    if value is None:
        return "nothing (null)"
    if value is True or value is False:
        return str(value).lower()
    if kind is str:
        return f"the text {text.name(json.dumps(_brief(value), ensure_ascii=False), 80)}"
    if kind is int or kind is float:
        return f"the number {_number(value)}"
    if kind in (bytes, bytearray):
        return text.plural(len(value), "byte")  # type: ignore[arg-type]
    if kind in (list, tuple, set, frozenset):
        return f"a {kind.__name__} of {text.plural(len(value), 'item')}"  # type: ignore[arg-type]
    if issubclass(kind, dict):
        return "an object"
    return f"a value of type {_type_name(kind)}"


def _brief(value: Any) -> str:
    plain = _str(value)
    return plain if len(plain) <= 60 else plain[:59] + "…"


def _number(value: Any) -> str:
    if type(value) is int and value.bit_length() > 200:  # its digits could take minutes
        return f"of {value.bit_length()} bits"
    return repr(value)


def _from_json(source: str, what: str) -> Any:
    try:
        return json.loads(source)
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else text.safe(str(error))
        shown = text.name(json.dumps(_brief(source), ensure_ascii=False), 80)
        raise _Bad(f"found the text {shown} for {what}, which is not JSON ({why})") from None


def _fields(value: Any, what: str) -> dict[str, Any]:
    """A dict's items with exact string keys. Hash and equality of hostile keys are never asked."""
    size = dict.__len__(value)
    if size > MAX_FIELDS:
        raise _Bad(f"found {size} fields in {what}; expected at most {MAX_FIELDS}")
    out: dict[str, Any] = {}
    for key, item in dict.items(value):
        if not issubclass(type(key), str):
            raise _Bad(f"found {_kind(key)} as the name of a field of {what}; expected a text")
        out[_str(key)] = _str(item) if issubclass(type(item), str) else item
    return out


# -- the forms an action comes in --------------------------------------------------------------------------------


def _unwrap(fields: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """(name, arguments) of any of the accepted forms."""
    if "tool" in fields:
        return fields["tool"], {k: v for k, v in fields.items() if k != "tool"}
    if "function" in fields:
        inner = fields["function"]
        if not issubclass(type(inner), dict):
            raise _Bad(f"found {_kind(inner)} as 'function'; expected an object with 'name' and 'arguments'")
        inside = _fields(inner, "'function'")
        return inside.get("name"), _arguments(inside.get("arguments", _MISSING), "arguments")
    if fields.get("type") == "tool_use" or ("name" in fields and "input" in fields):
        return fields.get("name"), _arguments(fields.get("input", _MISSING), "input")
    if "name" in fields:
        return fields["name"], _arguments(fields.get("arguments", _MISSING), "arguments")
    have = ", ".join(text.name(k, 40) for k in sorted(fields)[:8])
    raise _Bad(
        f"found an object with {'the fields ' + have if have else 'no fields'}; expected one with 'tool'"
    )


def _arguments(value: Any, field: str) -> dict[str, Any]:
    if value is _MISSING or value is None or value == "":
        return {}
    if issubclass(type(value), str):
        value = _from_json(_str(value), f"'{field}'")
    if value is None:
        return {}
    if not issubclass(type(value), dict):
        raise _Bad(f"found {_kind(value)} as '{field}'; expected an object with the tool's arguments")
    return _fields(value, f"'{field}'")


def _from_object(value: object) -> tuple[Any, dict[str, Any]]:
    """An SDK's tool call: OpenAI's (.function.name, .function.arguments) or Anthropic's (.name, .input)."""
    if value is None or type(value).__module__ == "builtins":
        raise _Bad(f"found {_kind(value)}; expected one action")
    function = _attribute(value, "function")
    if function is not _MISSING and function is not None:
        if issubclass(type(function), dict):
            return _unwrap({"function": function})
        name = _attribute(function, "name")
        return _name(name), _arguments(_attribute(function, "arguments"), "arguments")
    name = _attribute(value, "name")
    if name is not _MISSING:
        for field in ("input", "arguments"):
            if (arguments := _attribute(value, field)) is not _MISSING:
                return _name(name), _arguments(arguments, field)
    raise _Bad(f"found {_kind(value)}; expected one action")


def _name(value: Any) -> Any:
    return _str(value) if issubclass(type(value), str) else value


def _attribute(value: object, name: str) -> Any:
    try:
        return getattr(value, name)
    except AttributeError:
        return _MISSING


# -- is it a call that can be carried out? -----------------------------------------------------------------------


def _check(name: Any, given: dict[str, Any], tools: tuple[Tool, ...]) -> Call:
    names = ", ".join(t.name for t in tools)
    if type(name) is not str:
        raise _Bad(f"found {_kind(name)} as the name of a tool; expected one of {names}")
    tool = find(name, tools)
    if tool is None:
        near = difflib.get_close_matches(name[:60], [t.name for t in tools], n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise _Bad(
            f"found no tool named {text.name(json.dumps(_brief(name), ensure_ascii=False), 80)}{hint}; expected one of {names}"
        )
    known = {p.name for p in tool.params}
    extra = sorted(set(given) - known)
    if extra:
        shown = ", ".join(repr(text.name(k, 40)) for k in extra[:4])
        raise _Bad(
            f"found the unknown {'argument' if len(extra) == 1 else 'arguments'} {shown}; expected {tool.signature}"
        )
    arguments: dict[str, str | int] = {}
    for p in tool.params:
        value = given.get(p.name, _MISSING)
        if value is _MISSING or (value is None and not p.required):
            if p.required:
                raise _Bad(f"found no argument '{p.name}'; expected {tool.signature}")
            continue
        arguments[p.name] = _CONVERT[p.type](value, p)
    return Call(tool.name, arguments)


def _to_text(value: Any, param: Param) -> str:
    if param.lines and type(value) in (list, tuple):
        return "\n".join(_to_text(item, replace(param, lines=False)) for item in value)
    if not issubclass(type(value), str):
        raise _Bad(f"found {_kind(value)} as '{param.name}'; expected a text")
    plain = _str(value)
    try:
        plain.encode("utf-8")
    except UnicodeEncodeError as error:
        raise _Bad(
            f"found a lone surrogate (U+{ord(plain[error.start]):04X}) at character {error.start + 1} of "
            f"'{param.name}'; expected valid Unicode text"
        ) from None
    return plain


def _to_integer(value: Any, param: Param) -> int:
    kind = type(value)
    number: int | None = None
    if kind is float:
        number = int(value) if value.is_integer() else None  # JSON has one kind of number; NaN is no integer
    elif kind is not bool and not issubclass(kind, (str, bytes)):
        try:
            number = int(operator.index(value))
        except TypeError:
            number = None
    if number is None:
        raise _Bad(f"found {_kind(value)} as '{param.name}'; expected a whole number")
    if not -(1 << 53) <= number <= 1 << 53:
        raise _Bad(f"found the number {_number(number)} as '{param.name}'; expected a smaller one")
    if param.minimum is not None and number < param.minimum:
        raise _Bad(f"found {number} as '{param.name}'; expected {param.minimum} or more")
    return number


_CONVERT: dict[str, Callable[[Any, Param], str | int]] = {"string": _to_text, "integer": _to_integer}
