"""The same generations with this program's rows, and each of its two models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch

from dia_demo.checkpoint_config import read_config_file
from dia_demo.engine.scheduler import run_to_end
from dia_demo.families.dia2.config_file import read_config
from dia_demo.families.dia2.prompt import from_recordings
from dia_demo.families.dia2.row import Dia2Row
from dia_demo.families.dia2.tokenizer import tokenizer_of
from dia_demo.model.dia2 import checkpoint
from dia_demo.model.dia2.config import Dia2Config
from dia_demo.model.dia2.interface import FrameModel
from dia_demo.model.dia2.loading import choose_kernel, compiled_model
from dia_demo.model.dia2.torch_model import TorchDia2
from dia_demo.model.linear import can_compile
from dia_demo.task import result_of
from dia_demo.text.script import encode_script
from tools.compare_dia2.cases import Comparison
from tools.compare_dia2.upstream import Made

TORCH, COMPILED = "torch", "compiled"


class NotingRow(Dia2Row):
    """A row that notes its actions and the text tokens that follow from them."""

    def __init__(self, *arguments, **options) -> None:
        super().__init__(*arguments, **options)
        self.actions: list[tuple[int, int, int]] = []

    def accept_action(self, action: int) -> None:
        super().accept_action(action)
        self.actions.append((action, *self.next_text))


def load_models(folder: Path, config: Dia2Config) -> dict[str, FrameModel]:
    """Both in float32: torch's modules, and the compiled parts that users run, without numba not.

    Not `load_model`, which chooses one of them.
    """
    plain = result_of(checkpoint.load(folder, config))
    models: dict[str, FrameModel] = {TORCH: TorchDia2(plain, 1)}
    if can_compile():
        packed = result_of(checkpoint.load(folder, config, "float32"))
        kernel = choose_kernel(config, "float32", 1)
        models[COMPILED] = compiled_model(packed, 1, [kernel, kernel])
    return models


class Ours:
    """This program's Dia2 with the checkpoint in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.config = read_config(read_config_file(folder), folder)
        self._models = load_models(folder, self.config)
        self.tokenizer = tokenizer_of(self.config)

    def make(self, comparisons: list[Comparison]) -> dict[str, list[Made]]:
        """The generations by each model, all of them beside one another."""
        return {name: self._make(model, comparisons) for name, model in self._models.items()}

    def _make(self, model: FrameModel, comparisons: list[Comparison]) -> list[Made]:
        rows = [self._row(comparison) for comparison in comparisons]
        run_to_end(model, rows)
        return [
            Made(row.codes(), row.actions, [(word.word, word.seconds) for word in row.words])
            for row in rows
        ]

    def _row(self, comparison: Comparison) -> NotingRow:
        prefix = None
        if comparison.prompts:
            prefix = from_recordings(comparison.prompts, self.tokenizer)
        text = encode_script(comparison.script)
        return NotingRow(self.config, text, comparison.params, prefix=prefix)

    def uniforms(self, seed: int) -> Iterator[float]:
        """What a row with this seed draws: of a step, for the action and each codebook."""
        generator = torch.Generator().manual_seed(seed)
        while True:
            out = torch.empty(1 + self.config.decoder.num_channels)
            yield from out.uniform_(generator=generator).tolist()
