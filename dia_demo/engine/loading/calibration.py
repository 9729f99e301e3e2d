"""Takes that a model makes itself, for calibrating its four-bit weights (model/calibration)."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

from dia_demo.engine.row import Row
from dia_demo.engine.scheduler import run
from dia_demo.errors import RunError
from dia_demo.model.calibration.calibration import CalibrationTake
from dia_demo.model.cpu_model import CpuModel
from dia_demo.text.script import encode_script

# Steps of a take: most of a sentence of the embedded voice, two seconds of Dia-1.6B.
MOST_STEPS = 160
# None of them is among the sentences that `bench --quality` measures with.
SENTENCES = """
My sister works at the library near the old bridge.
Do you remember where we parked the car?
The children ran down the stairs and out into the snow.
I will call you back as soon as the meeting is over.
There was nothing left in the fridge but some butter.
Who told you that the museum is closed on Monday?
He opened the letter slowly and began to read.
It was the best coffee that I ever had.
They waited for an hour, but the bus never came.
Take the second street on the left and walk up the hill.
Our teacher told us a story about a fox and a crow.
I thought you would be taller than your brother.
Close the window, please, it is getting cold in here.
""".strip().splitlines()


def make_takes(model: CpuModel) -> Generator[float, None, list[CalibrationTake]]:
    """Takes with the checkpoint's own settings and fixed seeds; yields the fraction done.

    Raises RunError if one fails.
    """
    config = model.config
    most = min(MOST_STEPS, config.defaults.max_tokens)
    rows = []
    for seed, sentence in enumerate(SENTENCES):
        text = encode_script(f"[S{1 + seed % 2}] {sentence}")[: config.encoder.max_positions]
        rows.append(Row(config, text, replace(config.defaults, max_tokens=most, seed=seed)))
    for row in run(model, rows):
        if row.failure is not None:
            raise RunError(row.failure)
        yield sum(row.steps for row in rows) / (most * len(rows))
    return [CalibrationTake(row.text, row.previous_inputs) for row in rows]
