"""What is measured: the model of a plan or of a job, and the sizes that all measurements share."""

from __future__ import annotations

from dia_demo.config import ModelConfig
from dia_demo.engine.family import ModelInfo
from dia_demo.families.resolve import random_model
from dia_demo.services.models import find_model

TEXT_BYTES = 120
# Steps before those that are timed, beside the light ones.
_WARM_STEPS = 5


def warm_steps(config: ModelConfig) -> int:
    """Steps of a row before those that are timed."""
    return config.light_steps + _WARM_STEPS


def model_info(model: str, random: str | None) -> ModelInfo:
    """The model of this name, or one with random weights. Raises InputError if there is none."""
    return random_model(random) if random else find_model(model)
