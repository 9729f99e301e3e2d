"""The settings and seeds of a comparison from what programs and the command line give."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dia_demo.config import RuntimeConfig
from dia_demo.engine.family import ModelInfo
from dia_demo.errors import InputError
from dia_demo.services.listening.plan.plan import draw_seeds
from dia_demo.services.listening.plan.setting import Setting
from dia_demo.services.listening.verdict.planning import FEWEST_SCRIPTS
from dia_demo.text.pronunciations import Pronunciations

# Where no number is given.
PAIRS = 12


def settings_of(
    sides: Sequence[Mapping[str, Any]],
    runtime: RuntimeConfig,
    model_of: Callable[[str], ModelInfo],
    normalise: bool,
    pronunciations: Pronunciations,
) -> list[Setting]:
    """The settings of sides by the names of SETTING_FIELDS; other values are the model's defaults.

    runtime: where a side does not say otherwise. normalise: on every side. Raises InputError for an
    unknown name, a value that cannot be read and, from model_of, for an unknown model.
    """
    settings = []
    for side in sides:
        info = model_of(side.get("model", runtime.model))
        setting = Setting(info.config.defaults, replace(runtime, threads=None)).change(side)
        settings.append(
            replace(
                setting,
                normalise=setting.normalise or normalise,
                pronunciations=pronunciations,
            )
        )
    return settings


def seeds_of(pairs: int | None, scripts: int, first: int | None) -> tuple[int, ...]:
    """The seeds of each script for so many pairs of two sides; for None, of at least PAIRS.

    first: the seed of the first pair, None for random ones. Raises InputError for a number of pairs
    that is no multiple of the scripts.
    """
    pairs = scripts * _fewest_seeds(scripts) if pairs is None else pairs
    if pairs < 1 or pairs % scripts:
        raise InputError(
            f"The number of pairs must be a multiple of the number of scripts, {scripts}, not "
            f"{pairs}: every script is spoken with every seed."
        )
    return draw_seeds(pairs // scripts, first)


def _fewest_seeds(scripts: int) -> int:
    """The seeds for each script where no number of pairs is given: an even number would leave
    scripts without a majority."""
    seeds = math.ceil(PAIRS / scripts)
    return seeds + 1 if scripts >= FEWEST_SCRIPTS and seeds % 2 == 0 else seeds
