"""Who plays: the Player protocol, the players that need no model, and the loop that plays an episode."""

from __future__ import annotations

from tiltyard.players.builtin import (
    MAKERS,
    ReferencePlayer,
    ReplayPlayer,
    make_player,
    noop,
    random_player,
    reference_actions,
)
from tiltyard.players.episode import EpisodeResult, arun_episode, run_episode
from tiltyard.players.protocol import Player, Prepared

__all__ = [
    "MAKERS",
    "EpisodeResult",
    "Player",
    "Prepared",
    "ReferencePlayer",
    "ReplayPlayer",
    "arun_episode",
    "make_player",
    "noop",
    "random_player",
    "reference_actions",
    "run_episode",
]
