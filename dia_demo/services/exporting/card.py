"""The model card of an export: what it is, how to use it, and what was measured. Nothing else."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import torch

from dia_demo.audio import STORED_SUFFIX
from dia_demo.checkpoint_files import MANIFEST, FileRecord, read_manifest
from dia_demo.services.exporting.base_model import BaseModel
from dia_demo.services.system_info import describe_machine

# What a precision means for the weights: see packed_linear.py and weights/checkpoint.py in model/.
MEANINGS = {
    "float32": "The weights are those of the original in float32, in another order.",
    "bfloat16": "The weights are rounded to bfloat16; norms stay in float32.",
    "int8": (
        "The weights of all linears are rounded to 8 bits, with a scale for each output; "
        "embeddings are in bfloat16 and norms in float32."
    ),
    "int8+int5": (
        "The weights of the linears of the temporal transformer are rounded to 8 bits, with a "
        "scale for each output, those of the depth transformer to 5 bits, with a scale for each "
        "group of inputs; embeddings are in bfloat16 and norms in float32."
    ),
    "int4": (
        "The weights of the linears that a decoder step reads are rounded to 4 bits, with a scale "
        "for each group of inputs; the logits and all other linears to 8 bits, with a scale for "
        "each output; embeddings are in bfloat16 and norms in float32."
    ),
}


@dataclass(frozen=True)
class Measured:
    """What was measured when the export was written.

    same_codes: codes of the short take, all equal to the original's. load_seconds: from memory that
    the system had just written.
    """

    same_codes: int
    steps: int
    milliseconds_per_step: float
    load_seconds: float
    threads: int
    kernels: str


def model_card(
    base: BaseModel, folder: Path, precision: str, measured: Measured, licenses: Sequence[str]
) -> str:
    """The README.md of the export in `folder`."""
    return "\n".join(
        [
            *_front_matter(base, precision),
            "",
            f"# {base.short_name}, prepared in {precision}",
            "",
            f"Weights of {_origin(base)}, prepared for the program Dia on your CPU: it loads this "
            "folder without the original weights, on every processor. " + MEANINGS[precision],
            "",
            "```",
            'python -m dia_demo say "[S1] Hello. [S2] Hi there." '
            f"-o hello{STORED_SUFFIX} --model FOLDER",
            "```",
            "",
            "FOLDER is this folder, or its OWNER/NAME on the hub. Other programs cannot read the "
            "order in which the weights are stored here. " + _codec(base),
            "",
            *_measurements(measured),
            "",
            *_files(base, folder),
            "",
            *_license(base, licenses),
            "",
        ]
    )


def _front_matter(base: BaseModel, precision: str) -> Iterator[str]:
    yield "---"
    yield f"license: {base.license or 'unknown'}"
    if base.is_on_hub:
        yield f"base_model: {base.name}"
        yield "base_model_relation: quantized"
    if base.profile.language:
        yield f"language: {base.profile.language}"
    yield "pipeline_tag: text-to-speech"
    yield f"tags: [dia, {precision}, cpu]"
    yield "---"


def _origin(base: BaseModel) -> str:
    if base.revision:
        return f"{base.name} at revision {base.revision}"
    if base.info.is_embedded:
        return "the nano voice, which is part of the program"
    return f"a checkpoint in the folder {base.short_name}" if not base.is_on_hub else base.name


def _codec(base: BaseModel) -> str:
    credit = f" {base.info.family.codecs.credit}".rstrip()
    if base.codec.get("folder"):
        return f"Its codec is in the folder `codec`.{credit}"
    revision = base.codec.get("revision")
    which = f", revision {revision} when this was written" if revision else ""
    name = base.codec["repository"]
    return f"Its codec is {name}{which}; the program fetches it once.{credit}"


def _measurements(measured: Measured) -> Iterator[str]:
    machine = describe_machine()
    threads = "one thread" if measured.threads == 1 else f"{measured.threads} threads"
    yield "## Measured"
    yield ""
    yield (
        f"On {machine.cpu}, {machine.simd}, {machine.system}, torch {torch.__version__}, Python "
        f"{platform.python_version()}, {datetime.now(UTC):%Y-%m-%d}, with {threads}, when this "
        "folder was written:"
    )
    yield ""
    yield "| measured | result |"
    yield "|---|---|"
    yield (
        f"| {measured.same_codes:,} codes of a short take, beside the original prepared on the "
        "same machine | all equal |"
    )
    yield (
        f"| a decoder step of one take, median of {measured.steps}, kernels: {measured.kernels} | "
        f"{measured.milliseconds_per_step:.2f} ms |"
    )
    yield (
        f"| loading with all checks, from files that were just written | "
        f"{measured.load_seconds:.1f} s |"
    )
    yield ""
    yield (
        "Nothing else was measured for this card: nobody listened to it, and no words were counted."
    )


def _files(base: BaseModel, folder: Path) -> Iterator[str]:
    yield "## Files"
    yield ""
    yield (
        f"The program checks these when it loads them. `{MANIFEST}` has the same list, and a "
        "checksum of its own."
    )
    yield ""
    yield from _table(read_manifest(folder).files)
    yield ""
    yield "They were made from:"
    yield ""
    yield from _table(base.files)


def _table(files) -> Iterator[str]:
    yield "| file | bytes | SHA-256 |"
    yield "|---|---|---|"
    for name, record in files.items():
        yield _row(name, record)


def _row(name: str, record: FileRecord) -> str:
    return f"| `{name}` | {record.bytes:,} | `{record.sha256}` |"


def _license(base: BaseModel, licenses: Sequence[str]) -> Iterator[str]:
    yield "## Licence"
    yield ""
    if base.license is None:
        yield (
            "The original's files here do not say its licence. Look it up before you pass this "
            "folder on, and write it down here and in the first lines of this file."
        )
    else:
        yield f"That of the original: {base.license}. Its weights were changed as described above."
    if licenses:
        yield f"See {' and '.join(f'[{name}]({name})' for name in licenses)}."
