"""Students: the teacher's network with vectors for the CFG scale, then with several frames a step;
and a student's checkpoint."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from dia_demo.checkpoint_config import FRAMES_PER_STEP, read_model_config
from dia_demo.checkpoint_files import weight_files
from dia_demo.config import ModelConfig
from dia_demo.errors import InputError
from dia_demo.files import new_folder
from dia_demo.model.dia import Dia
from dia_demo.model.weights.tensor_names import transformers_tensors
from training.voice.model.export import SHARD_LIMIT, write_weights

# Small beside the embeddings that they are added to, and not only zeros, which no file may hold.
FIRST_VECTORS = 1e-3
# The embeddings of the older frames of a step at first, beside those of the newest.
OLDER_FRAMES = 0.1
DTYPES = {name: getattr(torch, name) for name in ("float16", "bfloat16", "float32")}
MOST_FILES = 4  # About.
OTHER_FILES = ("generation_config.json", "LICENSE", "NOTICE")


def student_config(teacher: ModelConfig, scales: Sequence[float]) -> ModelConfig:
    """The student's config. Raises InputError where the scales are no valid ones, or the teacher's
    default CFG scale is not between them."""
    if teacher.guidance_scales:
        raise InputError("The teacher's guidance is distilled already: use an ordinary checkpoint.")
    if len(scales) < 2 or any(before >= after for before, after in pairwise(scales)):
        raise InputError(
            f"Two or more CFG scales are needed, each larger than the one before, not {scales}."
        )
    config = replace(teacher, guidance_scales=tuple(map(float, scales)))
    config.defaults.check(config)
    return config


def student_of(teacher: Dia, scales: Sequence[float], seed: int = 0) -> Dia:
    """A copy of the teacher in float32 whose guidance is to be distilled; its weights have
    gradients."""
    config = student_config(teacher.config, scales)
    with torch.device("meta"):
        student = Dia(config)
    state = {
        name: tensor.to(torch.float32, copy=True) for name, tensor in teacher.state_dict().items()
    }
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(len(scales), config.decoder.hidden_size, generator=generator)
    state["decoder.guidance_embedding.weight"] = FIRST_VECTORS * vectors.to(teacher.device)
    student.load_state_dict(state, assign=True)
    return student.requires_grad_(True)


def several_frames(student: Dia, frames: int, seed: int = 0) -> Dia:
    """A student whose steps give more frames, from one with fewer; its weights have gradients.

    A step reads the newest frames as before, older ones hardly at first; a further frame starts as
    the frame before it. Raises InputError unless `frames` is more than before, and allowed.
    """
    before = student.config.frames_per_step
    FRAMES_PER_STEP.check("frames", frames)
    if frames <= before:
        raise InputError(f"This student has {before} frames a step: frames must be more.")
    config = replace(student.config, frames_per_step=frames)
    with torch.device("meta"):
        grown = Dia(config)
    state = {
        name: tensor.to(torch.float32, copy=True) for name, tensor in student.state_dict().items()
    }
    table = "decoder.embeddings.weight"
    newest = state[table][-config.decoder.num_channels * config.decoder.vocab_size :]
    older = [OLDER_FRAMES * newest] * (frames - before)
    generator = torch.Generator().manual_seed(seed)
    for number in range(before - 1, frames - 1):
        for name, tensor in _further_frame(state, config, newest, generator).items():
            state[f"decoder.next_frames.{number}.{name}"] = tensor
    state[table] = torch.cat((*older, state[table]))
    grown.load_state_dict(state, assign=True)
    return grown.requires_grad_(True)


def _further_frame(
    state: dict[str, Tensor], config: ModelConfig, table: Tensor, generator: torch.Generator
) -> dict[str, Tensor]:
    """The weights of a `NextFrame`: embeddings and head of the first frame, the last layer's MLP,
    which adds little at first."""
    last = f"decoder.layers.{config.decoder.num_layers - 1}"
    down = state[f"{last}.mlp.down_proj.weight"]
    noise = torch.randn(down.shape, generator=generator).to(down.device)
    tensors = {
        "embeddings.weight": table,
        "pre_mlp_norm.weight": state[f"{last}.pre_mlp_norm.weight"],
        "mlp.gate_up_proj.weight": state[f"{last}.mlp.gate_up_proj.weight"],
        "norm.weight": state["decoder.norm.weight"],
        "logits_dense.weight": state["decoder.logits_dense.weight"],
    }
    copies = {name: tensor.clone() for name, tensor in tensors.items()}
    return copies | {"mlp.down_proj.weight": FIRST_VECTORS * noise}


def tensors_of(dia: Dia) -> dict[str, Tensor]:
    """A model's weights under transformers' names."""
    parameters = dict(dia.named_parameters())
    return {
        name: parameters[part.name].detach()[part.start : part.start + part.shape[0]]
        for name, part in transformers_tensors(dia.config)
    }


def write_student(student: Dia, teacher_folder: Path, out: Path) -> None:
    """Write the student as a checkpoint: the teacher's folder with other weights and config, in the
    teacher's precision.

    Raises InputError if the program does not read it.
    """
    with new_folder(out) as part:
        raw = json.loads((teacher_folder / "config.json").read_text(encoding="utf-8"))
        raw |= {
            "guidance": "distilled",
            "guidance_scales": list(student.config.guidance_scales),
        }
        if student.config.frames_per_step > 1:
            raw["frames_per_step"] = student.config.frames_per_step
        dtype = DTYPES.get(raw.get("dtype") or raw.get("torch_dtype"), torch.float32)
        (part / "config.json").write_text(json.dumps(raw, indent=2) + "\n", encoding="utf-8")
        for name in OTHER_FILES:
            if (teacher_folder / name).is_file():
                shutil.copy(teacher_folder / name, part / name)
        if (teacher_folder / "codec").is_dir():
            shutil.copytree(teacher_folder / "codec", part / "codec")
        weights = {
            name: tensor.to("cpu", dtype).contiguous()
            for name, tensor in tensors_of(student).items()
        }
        size = sum(tensor.nbytes for tensor in weights.values())
        write_weights(weights, part, max(SHARD_LIMIT, size // MOST_FILES))
        for path in part.rglob("*.safetensors"):
            path.chmod(0o644)  # safetensors writes for the owner alone.
        read_model_config(part)
        weight_files(part)
