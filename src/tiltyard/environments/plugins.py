"""Which plugins of pytest an environment has, as a task must name them: sessions load none by themselves."""

from __future__ import annotations

import configparser
from pathlib import Path

from tiltyard.environments.building import build
from tiltyard.environments.model import Environment
from tiltyard.environments.names import QUIET_PLUGINS


def plugins_of(environment: Environment) -> tuple[str, ...]:
    """Modules of the plugins that are installed in it, for ``Task.plugins``, sorted; not those that only report, or
    change the order. Built if it is not there. Raises as ``build``. Read from its metadata; nothing is imported."""
    found: set[str] = set()
    for file in _metadata(build(environment)):
        parser = configparser.RawConfigParser(strict=False, delimiters=("=",))
        try:
            parser.read_string(file.read_text(encoding="utf-8"))
        except (OSError, configparser.Error, UnicodeDecodeError):
            continue
        if parser.has_section("pytest11"):
            found |= {target.partition(":")[0].strip() for _, target in parser.items("pytest11")}
    return tuple(sorted(name for name in found if name.partition(".")[0] not in QUIET_PLUGINS))


def _metadata(python: Path) -> list[Path]:
    return sorted(python.parent.parent.glob("lib/python3*/site-packages/*.dist-info/entry_points.txt"))
