"""From a name to a model in memory: find (embedded, local, hub), fetch, load strictly.

Long work comes as generators that yield the fraction done and return their result, so that the
caller can show progress and stop.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import torch

from dia_demo.checkpoint_config import read_model_config
from dia_demo.checkpoint_files import weight_files
from dia_demo.config import ModelConfig
from dia_demo.errors import InputError
from dia_demo.files import ASSETS
from dia_demo.hub import is_hub_name
from dia_demo.model.dia import Dia
from dia_demo.model.linear import Kernel, step_linears
from dia_demo.model.packed_linear import PackedLinear
from dia_demo.model.weights import (
    TensorSlice,
    read_tensors,
    targets,
    tensor_shapes,
    transformers_targets,
    why_unfit,
)

EMBEDDED = "nano"
EMBEDDED_FOLDER = ASSETS / "nano"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
# Enough names to see what is wrong without drowning the message.
LISTED = 8


def local_folder(name: str) -> Path | None:
    """The checkpoint's folder where `name` is "nano" or a folder, None where it is a hub name.

    Raises InputError for anything else.
    """
    if name == EMBEDDED:
        return EMBEDDED_FOLDER
    try:
        folder = Path(name).expanduser()
        if name and folder.is_dir():
            return folder
    except (OSError, RuntimeError):  # No path can have that name: too long, or an unknown ~user.
        pass
    if is_hub_name(name):
        return None
    raise InputError(
        f"Model {name!r} is neither {EMBEDDED!r}, nor a folder on this machine, nor a hub name "
        "like nari-labs/Dia-1.6B-0626."
    )


def load(
    folder: Path, precision: str, device: str = "cpu", kernel: Kernel | None = None
) -> Generator[float, None, Dia]:
    """Build the model on meta and fill it tensor by tensor; yields the fraction done.

    kernel: what the linears of a decoder step become; without one they stay torch's, for which
    the precision must be a floating-point type. Raises InputError where the files do not hold
    exactly the tensors that the config asks for, listing what is missing, surplus or misshapen,
    and where a tensor holds NaN, infinity or zeros alone.
    """
    config = read_model_config(folder)
    files = weight_files(folder)
    shapes = tensor_shapes(files)
    places = targets(config, set(shapes))
    _check_names(shapes, {name: place.shape for name, place in places.items()}, folder)
    filling = ModelBuilder(config, precision, device, kernel)
    for done, (name, tensor) in enumerate(read_tensors(files)):
        _check_weight(tensor, name, folder)
        filling.add(places[name], tensor)
        del tensor
        yield (done + 1) / len(places)
    return filling.model()


def load_random(
    config: ModelConfig, precision: str, kernel: Kernel | None = None, seed: int = 0
) -> Generator[float, None, Dia]:
    """A model of this shape with random weights, made tensor by tensor; yields the fraction done.

    Norms are 1 and linears keep the size of what goes through them: for measuring speed, memory
    and a kernel's error, none of which depend on the values.
    """
    generator = torch.Generator().manual_seed(seed)
    filling = ModelBuilder(config, precision, "cpu", kernel)
    places = list(transformers_targets(config))
    for done, (name, place) in enumerate(places):
        if name.endswith("norm.weight"):
            tensor = torch.ones(place.shape)
        else:
            tensor = torch.randn(place.shape, generator=generator).mul_(place.shape[-1] ** -0.5)
        filling.add(place, tensor)
        del tensor
        yield (done + 1) / len(places)
    return filling.model()


class ModelBuilder:
    """A model on meta whose parameters come in piece by piece.

    Each is turned to its precision as soon as it is whole, so that no more than one stands in
    memory as it came.
    """

    def __init__(
        self, config: ModelConfig, precision: str, device: str, kernel: Kernel | None
    ) -> None:
        with torch.device("meta"):
            self._model = Dia(config)
        self._precision, self._device, self._kernel = precision, device, kernel
        self._parameters = dict(self._model.named_parameters())
        self._step_linears = set(step_linears(self._model)) if kernel else set()
        self._begun: dict[str, tuple[torch.Tensor, int]] = {}
        self._whole: dict[str, torch.Tensor] = {}

    def add(self, place: TensorSlice, tensor: torch.Tensor) -> None:
        """A tensor of a file, as rows of its parameter."""
        rows = place.fit(tensor)
        shape = self._parameters[place.name].shape
        if len(rows) == shape[0]:
            self._settle(place.name, rows)
            return
        kept, missing = self._begun.pop(place.name, (None, shape[0]))
        kept = torch.empty(shape, dtype=tensor.dtype) if kept is None else kept
        kept[place.start : place.start + len(rows)] = rows
        if missing > len(rows):
            self._begun[place.name] = kept, missing - len(rows)
        else:
            self._settle(place.name, kept)

    def _settle(self, name: str, tensor: torch.Tensor) -> None:
        owner, _, leaf = name.rpartition(".")
        module = self._model.get_submodule(owner)
        if owner in self._step_linears:
            self._replace(owner, self._kernel.module(owner, tensor, self._precision))
        elif isinstance(module, torch.nn.Linear) and self._precision not in DTYPES:
            # What a step does not read keeps 8 bits: the encoder, and the text's keys and values.
            self._replace(owner, PackedLinear.of(tensor, "int8"))
        else:
            dtype = torch.float32 if owner.endswith("norm") else self._dtype
            self._whole[name] = torch.empty(tensor.shape, dtype=dtype, device=self._device)
            self._whole[name].copy_(tensor)

    @property
    def _dtype(self) -> torch.dtype:
        """Of embeddings, activations and caches."""
        return DTYPES.get(self._precision, torch.bfloat16)

    def _replace(self, owner: str, module: torch.nn.Module) -> None:
        above, _, name = owner.rpartition(".")
        setattr(self._model.get_submodule(above), name, module)

    def model(self) -> Dia:
        """The model, once everything has come in."""
        self._model.load_state_dict(self._whole, assign=True)
        return self._model.requires_grad_(False).eval()


def _check_names(found: dict, wanted: dict, folder: Path) -> None:
    problems = {
        "missing": [name for name in wanted if name not in found],
        "surplus": [name for name in found if name not in wanted],
        "misshapen": [
            f"{name} is {list(found[name])}, should be {list(shape)}"
            for name, shape in wanted.items()
            if name in found and found[name] != shape
        ],
    }
    told = [f"{kind}: {_some(names)}" for kind, names in problems.items() if names]
    if told:
        raise InputError(f"The weights in {folder} do not fit its config.json. {'; '.join(told)}.")


def _some(names: list[str]) -> str:
    rest = len(names) - LISTED
    return ", ".join(names[:LISTED]) + (f" and {rest} more" if rest > 0 else "")


def _check_weight(tensor: torch.Tensor, name: str, folder: Path) -> None:
    if not tensor.is_floating_point():
        raise InputError(f"{name} in {folder} holds {tensor.dtype}, not floating-point weights.")
    if reason := why_unfit(tensor):
        raise InputError(f"{name} in {folder} {reason}")
