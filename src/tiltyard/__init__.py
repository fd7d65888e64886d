"""Tiltyard: the practice arena for coding agents.

``from tiltyard import CodeEnv`` is the environment. Importing this package registers ``tiltyard/Code-v0`` with
Gymnasium: at once if that is loaded, else as soon as it is.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tiltyard.env import CodeEnv

__all__ = ["CodeEnv", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "CodeEnv":
        from tiltyard.env import CodeEnv

        return CodeEnv
    raise AttributeError(f"module 'tiltyard' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _register() -> None:
    from tiltyard.env.registration import register

    register()


class _RegisterLater:
    """Registers once Gymnasium is imported by somebody: loading it here would cost every command 0.3 s."""

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                if (
                    "tiltyard.env.registration" not in sys.modules
                ):  # else it is what loads Gymnasium, and registers next
                    _register()

            spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec


if "gymnasium" in sys.modules:
    _register()
else:
    sys.meta_path.insert(0, _RegisterLater())
