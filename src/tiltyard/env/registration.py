"""Makes ``gymnasium.make("tiltyard/Code-v0")`` work, without loading the environment before it is made.

Gymnasium 1.x knows an environment when the package that has it was imported; ``import tiltyard`` sees to it.
"""

from __future__ import annotations

from gymnasium.envs import registration

ID = "tiltyard/Code-v0"


def register() -> None:
    """Register the environment, once; a second call does nothing."""
    if ID not in registration.registry:
        registration.register(id=ID, entry_point="tiltyard.env.code_env:CodeEnv", kwargs={"tasks": "builtin"})
