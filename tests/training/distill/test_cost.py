"""training/distill: what a student saves, and what its training needs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from dia_demo.model.linear import decoder_weights
from tests.helpers.models.checkpoints import SMALL
from tests.training.distill.settings import DEFAULTS
from training.distill import __main__ as command
from training.distill import rehearsal, speed


def test_the_saving_is_measured_on_equal_work():
    saving = speed.measure(SMALL, "float32", 1, rows=3, text_bytes=2, frames=24)
    assert saving.rows == 3
    assert saving.teacher_ms > saving.teacher_decoder_ms > 0
    assert saving.student_ms > saving.student_decoder_ms > 0
    d = SMALL.decoder
    text = 3 * 2 * d.num_layers * d.cross_num_kv_heads * d.cross_head_dim * 4
    unconditional = text  # Of one position; the text has two.
    own = saving.student_cache - 2 * text
    assert saving.teacher_cache == 2 * own + 2 * text + unconditional


@pytest.mark.parametrize(
    ("dtype", "frames"), [(torch.float32, 1), (torch.bfloat16, 1), (torch.bfloat16, 2)], ids=str
)
def test_a_rehearsal_takes_steps_at_the_size_that_is_asked_for(dtype, frames):
    config = replace(SMALL, defaults=DEFAULTS)
    rehearsed = rehearsal.rehearse(config, 2, 20, dtype, "cpu", frames)
    assert len(rehearsed.seconds) == len(rehearsed.kl) == 2
    assert np.min(rehearsed.kl) > 0 and rehearsed.kl[1] != rehearsed.kl[0], "it has changed"
    assert rehearsed.parameters > decoder_weights(SMALL)
    student = decoder_weights(replace(SMALL, frames_per_step=frames))
    assert rehearsed.flops == 20 * (4 * decoder_weights(SMALL) + 6 * student // frames)
    assert rehearsed.peak_bytes > 10**7


def test_the_sizes_of_the_commands_are_those_of_a_checkpoint(folder, capsys):
    command.main(f"speed --size {folder} --rows 1 2 --frames 12".split())
    command.main(f"rehearse --size {folder} --layers 1 --positions 12 --steps 1".split())
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines[:2]] == ["1 rows", "2 rows"]
    assert "12 positions" in lines[2]
    with pytest.raises(SystemExit, match="is not on this machine"):
        command.main(["speed", "--size", "nari-labs/Dia-1.6B-0626"])


def test_the_saving_of_several_frames_is_counted_by_frame():
    one, two = (
        speed.measure(SMALL, "float32", 1, 2, text_bytes=2, frames=24, frames_per_step=frames)
        for frames in (1, 2)
    )
    assert two.student_cache < one.student_cache and two.student_ms > 0
