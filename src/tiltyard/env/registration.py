"""Makes ``gymnasium.make("tiltyard/Code-v0")`` work.

Gymnasium calls ``register`` by its entry point while it is itself being imported: so nothing here may need the rest of
Gymnasium, or of this package.
"""

from __future__ import annotations

from gymnasium.envs import registration

ID = "tiltyard/Code-v0"


def register() -> None:
    """Register the environment, once; a second call does nothing."""
    if ID not in registration.registry:
        registration.register(id=ID, entry_point="tiltyard.env.code_env:CodeEnv", kwargs={"tasks": "builtin"})
