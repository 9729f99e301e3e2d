"""Dia2: Nari Labs' Dia2-1B and -2B, and other checkpoints of this kind."""

from __future__ import annotations

from functools import partial
from typing import cast

from dia_demo.codec.mimi.codec import random_mimi
from dia_demo.engine.family import Family, ModelInfo, RandomSize
from dia_demo.engine.loading.memory import why_not_calibrated
from dia_demo.families.dia2.config_file import is_config, read_config
from dia_demo.families.dia2.profiles import DIA2_1B, DIA2_CONFIG, OTHER, PROFILES
from dia_demo.families.dia2.row import Dia2Row
from dia_demo.families.dia2.takes import make_takes
from dia_demo.families.dia2.tokenizer import FILE, SETTINGS, tokenizer_of
from dia_demo.families.dia2.weights import WEIGHTS
from dia_demo.families.mimi_codecs import MIMI_CODECS
from dia_demo.model.dia2 import checkpoint
from dia_demo.model.dia2.config import Dia2Config
from dia_demo.model.dia2.loading import (
    FrameCalibrator,
    load_model,
    prepare_model,
    random_model,
)
from dia_demo.model.loading import LoadedModel, PreparedModel, Stages
from dia_demo.text.script import encode_script


def load(info: ModelInfo, precision: str, threads: int) -> Stages[LoadedModel]:
    """The model on this CPU; formats of few bits are calibrated first if there is enough memory."""
    assert info.folder is not None, "its files are on this machine"
    tokenizer_of(_config(info))
    calibrator = FrameCalibrator(make_takes, why_not_calibrated(info, precision))
    return load_model(info.folder, _config(info), precision, threads, calibrator)


def prepare(info: ModelInfo, precision: str, threads: int) -> Stages[PreparedModel]:
    """The model in packed form; formats of few bits are calibrated first if there is enough
    memory."""
    assert info.folder is not None, "its files are on this machine"
    calibrator = FrameCalibrator(make_takes, why_not_calibrated(info, precision))
    return prepare_model(info.folder, _config(info), precision, threads, calibrator)


def check_files(info: ModelInfo) -> None:
    """Raise InputError unless the weight files contain the tensors that the config asks for, and
    there is a tokenizer that fits."""
    assert info.folder is not None, "it was downloaded"
    if info.config.prepared is None:
        checkpoint.check_tensors(info.folder, _config(info))
    tokenizer_of(_config(info))


def _config(info: ModelInfo) -> Dia2Config:
    return cast(Dia2Config, info.config)


DIA2_FAMILY = Family(
    name="dia2",
    is_config=is_config,
    read_config=read_config,
    codecs=MIMI_CODECS,
    encode=encode_script,
    row=Dia2Row,
    load=load,
    prepare=prepare,
    check_files=check_files,
    weights=WEIGHTS,
    config=DIA2_CONFIG,
    profiles=PROFILES,
    other=OTHER,
    random_sizes={
        "dia2-1b": RandomSize(
            DIA2_CONFIG,
            "Dia2-1B",
            partial(random_model, DIA2_CONFIG),
            random_mimi,
            stands_for=DIA2_1B,
        )
    },
    has_word_times=True,
    makes_pauses=True,
    needs_last_tag=False,
    can_continue_text=True,
    files=(FILE, SETTINGS),
)
