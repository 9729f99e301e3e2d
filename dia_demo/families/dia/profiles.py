"""What is known of Dia's checkpoints: the embedded voice, Dia-1.6B, and those of a person's own."""

from __future__ import annotations

from dia_demo.config import GenerationParams, ModelConfig
from dia_demo.engine.family import Profile
from dia_demo.engine.loading.memory import gb
from dia_demo.families.dia.weights import count_weights
from dia_demo.files import ASSETS

DIA_NAME = "nari-labs/Dia-1.6B-0626"
# The configuration of that checkpoint, until its own files have been downloaded.
DIA_CONFIG = ModelConfig(
    defaults=GenerationParams(temperature=1.8, cfg_scale=3.0, top_p=0.90, top_k=45)
)
NANO = Profile(
    title="Nano voice (embedded)",
    note="A small synthetic voice for trying out the program. It is included and needs no "
    "download. Dia-1.6B is the original model.",
    short_name="Nano",
    summary="a small synthetic voice for trying",
    # Measured on the examples and scripts of assets/, pauses within turns included.
    seconds_per_character=0.075,
    # Measured on 15 scripts of 2 to 7 s: 0.07.
    length_deviation=0.1,
    # 8 takes at once took 7.5 times as long as one: its weights are in the cache anyway.
    batch_exponent=0.97,
    normalises=True,
    natural_seconds=None,
    # As measured: its model card.
    hints={"temperature": "Above 1 this voice slurs."},
    # 96 takes each: 17%, 18% and 21% of words were heard wrongly; the pitch moved by 3.6, 3.6 and
    # 3.8 semitones; takes of a sentence differed in length by 0.2%, 2.5% and 2.5%.
    presets={
        "Consistent": {"temperature": 0.0},
        "Balanced": {},
        "Expressive": {"temperature": 1.0},
    },
    license="apache-2.0",
    language="en",
    included=ASSETS / "nano",
)
DIA = Profile(
    title="Dia-1.6B (0626)",
    note="The original model by Nari Labs. It is downloaded once, "
    f"{gb(4 * count_weights(DIA_CONFIG))}, and a take needs some minutes on a CPU.",
    short_name="Dia-1.6B",
    summary="the original model by Nari Labs, which sounds like people",
    # The ends of the sliders in Nari Labs' own demo.
    hints={
        "temperature": "For Dia-1.6B 1.0 to 2.5 is usual.",
        "cfg_scale": "For Dia-1.6B 1 to 5 is usual.",
        "top_p": "For Dia-1.6B 0.7 to 1 is usual.",
        "top_k": "For Dia-1.6B 15 to 100 is usual.",
    },
    license="apache-2.0",
    language="en",
    # One utterance on two cores of a Zen 5 server, codec included: the first table.
    realtime={"bfloat16": 0.20, "int8": 0.34, "int4": 0.61},
    is_recommended=True,
)
OTHER = Profile(
    title="",
    note="A Dia checkpoint of your own.",
    summary="a Dia checkpoint of your own",
)
PROFILES = {"nano": NANO, DIA_NAME: DIA}
