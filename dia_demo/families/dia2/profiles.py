"""What is known of Dia2's checkpoints."""

from __future__ import annotations

from dataclasses import replace

from dia_demo.engine.family import Profile
from dia_demo.engine.loading.memory import gb
from dia_demo.families.dia2.weights import count_weights
from dia_demo.model.dia2.config import Dia2Config

DIA2_1B, DIA2_2B = "nari-labs/Dia2-1B", "nari-labs/Dia2-2B"
DIA2_CONFIG = Dia2Config()
_HINTS = {
    "cfg_scale": "For Dia2 1 to 6 is usual; 1 is without guidance, and faster.",
    "temperature": "For Dia2 0.8 is usual.",
    "text_temperature": "For Dia2 0.6 is usual.",
    "top_k": "For Dia2 50 is usual.",
    "max_tokens": "12.5 are a second of audio.",
}
OTHER = Profile(
    title="",
    note="A Dia2 checkpoint of your own.",
    summary="a Dia2 checkpoint of your own",
    natural_seconds=None,
    hints=_HINTS,
)
_PUBLISHED = replace(OTHER, is_listed=True, license="apache-2.0", language="en")
PROFILES = {
    DIA2_1B: replace(
        _PUBLISHED,
        title="Dia2-1B",
        note="Nari Labs' second model: up to two minutes in one take, and the times of its words. "
        f"It is downloaded once, {gb(4 * count_weights(DIA2_CONFIG))} if stored in float32.",
        short_name="Dia2-1B",
        summary="Nari Labs' second model, for two minutes in one take",
    ),
    DIA2_2B: replace(
        _PUBLISHED,
        title="Dia2-2B",
        note="The larger of Nari Labs' second models. It is downloaded once; a CPU needs about "
        "twice the time of Dia2-1B.",
        short_name="Dia2-2B",
        summary="the larger of Nari Labs' second models",
    ),
}
