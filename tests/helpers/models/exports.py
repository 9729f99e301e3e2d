"""Exports of small models in tests: made, loaded, heard."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from dia_demo.checkpoint_config import read_model_config
from dia_demo.config import RuntimeConfig
from dia_demo.engine.engine import Engine
from dia_demo.engine.loading.calibration import make_takes
from dia_demo.errors import InputError
from dia_demo.families.resolve import resolve
from dia_demo.model.loading import Calibrator, load_model
from dia_demo.services.exporting.exporter import ExportReport, export
from dia_demo.task import result_of
from tests.helpers.models.checkpoints import say


def export_of(model: Path | str, target: Path, precision: str = "int8") -> ExportReport:
    runtime = RuntimeConfig(model=str(model), precision=precision, threads=1)
    return result_of(export(resolve(str(model)), runtime, target, threading.Event()))


def codes_of(folder: Path, precision: str = "int8") -> np.ndarray:
    """The codes of a take with the model in `folder`."""
    model = result_of(
        load_model(folder, read_model_config(folder), precision, 1, Calibrator(make_takes))
    ).model
    return say(model, temperature=0.7, max_tokens=40, seed=5).codes()


def loading_refusal(model: Path | str, precision: str = "auto") -> str:
    """Why a model cannot be loaded."""
    runtime = RuntimeConfig(model=str(model), precision=precision, threads=1)
    with pytest.raises(InputError) as caught:
        result_of(Engine.load(resolve(str(model)), runtime))
    return str(caught.value)
