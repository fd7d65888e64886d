"""Language models as players, through the official SDKs (extras ``anthropic`` and ``openai``).

``ModelPlayer`` is what others use; everything else is below it: ``settings`` (what is asked with), ``session`` (one
episode), ``anthropic_api`` and ``openai_api`` (the wire), ``text_protocol`` (without tool calls), ``failures``
(what an error means), ``meter`` (budget, retries) and ``prices``.
"""

from tiltyard.players.model.failures import Hopeless, ModelFailed
from tiltyard.players.model.meter import Meter, OverBudget
from tiltyard.players.model.player import ModelPlayer, is_model, model_settings
from tiltyard.players.model.prices import Price, price_of
from tiltyard.players.model.session import ModelSession
from tiltyard.players.model.settings import ModelSettings, Reach

__all__ = [
    "Hopeless",
    "Meter",
    "ModelFailed",
    "ModelPlayer",
    "ModelSession",
    "ModelSettings",
    "OverBudget",
    "Price",
    "Reach",
    "is_model",
    "model_settings",
    "price_of",
]
