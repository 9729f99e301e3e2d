"""The models that the program knows by name, and one of any shape."""

from __future__ import annotations

from dia_demo.config import ModelConfig
from dia_demo.engine.family import ModelInfo
from dia_demo.engine.loading.memory import STEP_BYTES, gb, model_bytes, needed_bytes
from dia_demo.families.dia.family import DIA_FAMILY
from dia_demo.families.resolve import assumed_info, resolve
from dia_demo.files import ASSETS

DIA_NAME = "nari-labs/Dia-1.6B-0626"
EMBEDDED_FOLDER = ASSETS / "nano"
NANO = resolve("nano")
# Before anything of it is downloaded.
DIA = assumed_info(DIA_NAME)
DIA_DOWNLOAD = gb(model_bytes(DIA, "float32"))
DIA_MEMORY = {precision: gb(needed_bytes(DIA, precision)) for precision in STEP_BYTES}


def info_of(config: ModelConfig, name: str = "a model") -> ModelInfo:
    """A model of this shape, with Descript's codec and without files."""
    return ModelInfo(name, DIA_FAMILY, config, DIA_FAMILY.codecs.format, DIA_FAMILY.other)
