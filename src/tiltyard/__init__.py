"""Tiltyard: the practice arena for coding agents.

``from tiltyard import CodeEnv`` is the environment. Importing this after ``gymnasium`` (or importing ``tiltyard.env`` at
any time) registers ``tiltyard/Code-v0``; Gymnasium itself is loaded only where it is used.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tiltyard.env import CodeEnv

__all__ = ["CodeEnv", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Lazy: `tiltyard --help` should not pay for gymnasium and numpy.
    if name == "CodeEnv":
        from tiltyard.env import CodeEnv

        return CodeEnv
    raise AttributeError(f"module 'tiltyard' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if "gymnasium" in sys.modules:
    from tiltyard.env.registration import register

    register()
    del register
