"""From a name to a model in memory: find (embedded, local, hub), fetch, load strictly.

Long work comes as generators that yield the fraction done and return their result, so that the
caller can show progress and stop.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import torch

from dia_demo.config import ModelConfig
from dia_demo.errors import InputError
from dia_demo.model.dia import Dia
from dia_demo.model.hub import is_hub_name
from dia_demo.model.weights import read_tensors, targets, tensor_shapes, weight_files

EMBEDDED = "nano"
EMBEDDED_FOLDER = Path(__file__).resolve().parents[2] / "assets" / "nano"
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


def load(folder: Path, precision: str, device: str = "cpu") -> Generator[float, None, Dia]:
    """Build the model on meta and fill it tensor by tensor; yields the fraction done.

    Raises InputError where the files do not hold exactly the tensors that the config asks for,
    listing what is missing, surplus or misshapen, and where a tensor holds NaN or infinity.
    """
    config = ModelConfig.from_folder(folder)
    files = weight_files(folder)
    shapes = tensor_shapes(files)
    places = targets(config, set(shapes))
    _check_names(shapes, {name: place.shape for name, place in places.items()}, folder)
    with torch.device("meta"):
        model = Dia(config)
    parameters = dict(model.named_parameters())
    filled: dict[str, torch.Tensor] = {}
    for done, (name, tensor) in enumerate(read_tensors(files)):
        place = places[name]
        _check_finite(tensor, name, folder)
        if place.name not in filled:
            kept = DTYPES["float32"] if place.name.endswith("norm.weight") else DTYPES[precision]
            shape = parameters[place.name].shape
            filled[place.name] = torch.empty(shape, dtype=kept, device=device)
        rows = place.fit(tensor)
        filled[place.name][place.start : place.start + len(rows)].copy_(rows)
        del tensor, rows
        yield (done + 1) / len(places)
    model.load_state_dict(filled, assign=True)
    return model.requires_grad_(False).eval()


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


def _check_finite(tensor: torch.Tensor, name: str, folder: Path) -> None:
    # One pass and no mask: a sum is finite unless an element is not (or floats overflow).
    if not tensor.is_floating_point():
        raise InputError(f"{name} in {folder} holds {tensor.dtype}, not floating-point weights.")
    if not tensor.sum(dtype=torch.float32).isfinite() and not tensor.isfinite().all():
        raise InputError(f"{name} in {folder} holds NaN or infinity: the file is damaged.")
