"""The container wall by name: ``container:WORD,WORD,…``, as ``--wall`` takes it and records keep it.

A word is a mode (``keeper``, ``exec``, ``run``), an engine (``docker``, ``podman``), ``runtime=NAME`` (the engine's name
of it: ``runsc`` is gVisor), ``image=NAME`` (with a ``python3`` of its own) or ``cpus=NUMBER``. What is not said is as
``ContainerWall`` has it.
"""

from __future__ import annotations

from typing import Any

from tiltyard.errors import UsageError

_WORDS = {
    "keeper": "mode",
    "exec": "mode",
    "run": "mode",
    "docker": "engine",
    "podman": "engine",
}
_NAMED = ("runtime", "image", "cpus")
EXPECTED = (
    f"{', '.join(_WORDS)}, {', '.join(f'{name}=…' for name in _NAMED)}, as in 'container:exec,runtime=runsc'"
)


def options(words: str) -> dict[str, Any]:
    """The arguments of a ``ContainerWall``, from what follows the colon. UsageError for a word that is none."""
    found: dict[str, Any] = {}
    for word in words.split(",") if words else ():
        name, equals, value = word.partition("=")
        if not equals and word in _WORDS:
            name, value = _WORDS[word], word
        elif name not in _NAMED or not value:
            raise UsageError(f"found {word!r} in the wall 'container:{words}'; expected words of {EXPECTED}")
        if name in found:
            raise UsageError(
                f"found {word!r} in the wall 'container:{words}', which has said its {name}; expected it once"
            )
        found[name] = _cpus(value, words) if name == "cpus" else value
    return found


def _cpus(value: str, words: str) -> float:
    try:
        cpus = float(value)
    except ValueError:
        cpus = -1.0
    if not 0 <= cpus <= 1024:
        raise UsageError(
            f"found cpus={value} in the wall 'container:{words}'; expected a number of processors"
        )
    return cpus
