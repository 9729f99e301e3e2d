"""Dia: Nari Labs' Dia-1.6B of June 2025, the embedded voice, and other checkpoints of this kind.

The embedded voice is a variant of Dia and not a family of its own: several frames a step, distilled
guidance and voices by name are entries of a checkpoint's config.json. What its files do not say,
such as its pace, is its profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from dia_demo.checkpoint_config import parse_checkpoint
from dia_demo.codec.codec import open_codec, random_codec
from dia_demo.codec.config import CodecFormat, read_codec_format
from dia_demo.codec.files import HUB_NAME, find_codec
from dia_demo.config import DecoderConfig, EncoderConfig, ModelConfig
from dia_demo.engine.family import Codecs, Family, ModelInfo, RandomSize
from dia_demo.engine.loading.calibration import make_takes
from dia_demo.engine.loading.memory import why_not_calibrated
from dia_demo.engine.row import Row
from dia_demo.families.dia.profiles import DIA_CONFIG, DIA_NAME, OTHER, PROFILES
from dia_demo.families.dia.weights import WEIGHTS
from dia_demo.model.loading import (
    Calibrator,
    LoadedModel,
    PreparedModel,
    Stages,
    choose,
    install_packed,
    load_model,
    load_packed,
    random_model,
)
from dia_demo.model.weights.checkpoint import check_tensors
from dia_demo.text.script import encode_script

_TINY = ModelConfig(
    encoder=EncoderConfig(2, 32, 2, 2, 16, 64),
    decoder=DecoderConfig(2, 64, 4, 2, 16, 2, 2, 16, 96, max_positions=512),
)
# Speed and memory do not depend on the values of weights. tiny is for trying out, with a codec
# that is quick to build.
RANDOM_SIZES = {
    "dia-1.6b": RandomSize(
        ModelConfig(),
        "Dia-1.6B",
        partial(random_model, ModelConfig()),
        partial(random_codec, sample_rate=44100),
        stands_for=DIA_NAME,
    ),
    "tiny": RandomSize(
        _TINY,
        "tiny",
        partial(random_model, _TINY),
        partial(
            random_codec,
            encoder_dim=4,
            encoder_rates=[2, 4, 8, 8],
            decoder_dim=32,
            decoder_rates=[8, 8, 4, 2],
            latent_dim=16,
            n_codebooks=9,
            codebook_size=1024,
            codebook_dim=4,
            sample_rate=44100,
        ),
    ),
}


def is_config(raw: Mapping[str, Any]) -> bool:
    """Whether a config.json has the layout of transformers' Dia or of nari-labs/dia."""
    model = raw.get("model")
    has_depth = isinstance(model, dict) and "depformer" in model  # Of Dia2.
    return raw.get("model_type", "dia") == "dia" and not has_depth


def load(info: ModelInfo, precision: str, threads: int) -> Stages[LoadedModel]:
    """The model on this CPU; int4 is calibrated first if there is enough memory."""
    assert info.folder is not None, "its files are on this machine"
    calibrator = Calibrator(make_takes, why_not_calibrated(info, precision))
    return load_model(info.folder, info.config, precision, threads, calibrator)


def prepare(info: ModelInfo, precision: str, threads: int) -> Stages[PreparedModel]:
    """The model in packed form; int4 is calibrated first if there is enough memory."""
    assert info.folder is not None, "its files are on this machine"
    choice = yield from choose(info.config, precision, threads)
    calibrator = Calibrator(make_takes, why_not_calibrated(info, precision))
    packed = yield from load_packed(info.folder, info.config, precision, threads, calibrator)
    install = partial(install_packed, packed.dia, choice, precision)
    return PreparedModel(packed.dia, "" if packed.is_new else packed.note, install)


def check_files(info: ModelInfo) -> None:
    """Raise InputError unless the weight files contain the tensors that the config asks for."""
    assert info.folder is not None, "it was downloaded"
    check_tensors(info.folder, info.config)


DIA_FAMILY = Family(
    name="dia",
    is_config=is_config,
    read_config=parse_checkpoint,
    codecs=Codecs(
        format=CodecFormat(),
        read_format=read_codec_format,
        open=open_codec,
        find=find_codec,
        repository=HUB_NAME,
    ),
    encode=encode_script,
    row=Row,
    load=load,
    prepare=prepare,
    check_files=check_files,
    weights=WEIGHTS,
    config=DIA_CONFIG,
    profiles=PROFILES,
    other=OTHER,
    random_sizes=RANDOM_SIZES,
)
