"""Takes that a Dia2 makes itself, for calibrating four and five bits (model/dia2/calibration)."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

from dia_demo.engine.loading.calibration import MOST_STEPS, SENTENCES
from dia_demo.engine.scheduler import run
from dia_demo.errors import RunError
from dia_demo.families.dia2.row import Dia2Row
from dia_demo.model.dia2.forced import FrameRecording, Recorder
from dia_demo.model.dia2.torch_model import TorchDia2
from dia_demo.text.script import encode_script


def make_takes(model: TorchDia2) -> Generator[float, None, list[FrameRecording]]:
    """Takes of two sentences each with the checkpoint's own settings and fixed seeds; yields the
    fraction done. Raises RunError if one fails."""
    config, recorder = model.config, Recorder(model)
    most = min(MOST_STEPS, config.defaults.max_tokens)
    rows = []
    for seed, sentence in enumerate(SENTENCES):
        answer = SENTENCES[(seed + 1) % len(SENTENCES)]
        text = encode_script(f"[S1] {sentence} [S2] {answer}")
        params = replace(config.defaults, max_tokens=most, seed=seed)
        rows.append(Dia2Row(config, text[: config.encoder.max_positions], params))
    for row in run(recorder, rows):
        if row.failure is not None:
            raise RunError(row.failure)
        yield sum(row.steps for row in rows) / (most * len(rows))
    return recorder.recordings
