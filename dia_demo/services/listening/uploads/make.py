"""A comparison of uploaded clips: its takes are the clips, and nothing is generated."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from dia_demo import audio
from dia_demo.config import GenerationParams
from dia_demo.errors import InputError, RunError
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan import plan_file
from dia_demo.services.listening.plan.plan import ComparisonPlan, TakeState, make_plan
from dia_demo.services.listening.plan.setting import Setting
from dia_demo.services.listening.render import TAKES
from dia_demo.services.listening.uploads.folder import ClipFolder, read_folder
from dia_demo.services.listening.uploads.packed import unpack_clips
from dia_demo.services.listening.uploads.sound import (
    HIGHEST_RATE,
    SoundHeader,
    read_header,
    read_sound,
)
from dia_demo.services.synthesis import Synthesis

# Clips stand in the plan as takes of this seed.
SEED = 0
_SAMPLE_BYTES = 2


@contextmanager
def opened_clips(path: Path) -> Iterator[ClipFolder]:
    """The clips of a folder or zip; those of a zip exist until the end of the block.

    Raises InputError if it has none that can be compared.
    """
    if path.is_dir():
        yield read_folder(path)
        return
    if not path.is_file():
        raise InputError(f"{path} does not exist: choose a folder or a zip of clips.")
    with tempfile.TemporaryDirectory(prefix="dia-clips-") as scratch:
        try:
            unpack_clips(path, Path(scratch))
        except OSError as error:
            reason = error.strerror or error
            raise RunError(f"The zip could not be unpacked: {reason}. Free some space.") from error
        yield read_folder(Path(scratch))


def stored_bytes(clips: ClipFolder) -> int:
    """At most so many bytes does the comparison of these clips have: each clip once as a take and
    once in every pair. Raises InputError for a clip that cannot be compared."""
    headers = _headers(clips)
    rate = _rate_of(headers)
    seconds = sum(header.seconds for header in headers.values())
    return int(seconds * rate * _SAMPLE_BYTES * (1 + len(clips.systems)))


def compare_clips(folder: Path, kind: str, clips: ClipFolder, synthesis: Synthesis) -> Comparison:
    """A comparison in the new `folder` of clips that exist: every sentence for every two systems.

    Clips are mixed to one channel and brought to the highest of their sample rates, at most
    HIGHEST_RATE, since another rate on one side would give it away. Raises InputError, naming the
    file, for a clip that cannot be compared.
    """
    headers = _headers(clips)
    settings = [Setting(GenerationParams(), system=system) for system in clips.systems]
    plan = make_plan(kind, settings, clips.texts, (SEED,))
    plan = replace(plan, slots=tuple(replace(slot, state=TakeState.MADE) for slot in plan.slots))
    _write(folder, plan, clips, headers)
    comparison = Comparison.open(folder)
    for _ in comparison.run(synthesis, threading.Event()):
        pass
    if failed := comparison.failed_takes():
        raise RunError(failed[0].message)
    return comparison


def remarks_on(clips: ClipFolder) -> list[str]:
    """What is changed of the clips before they are heard, in sentences."""
    headers = _headers(clips)
    rate, remarks = _rate_of(headers), []
    if changed := {header.rate for header in headers.values()} - {rate}:
        listed = ", ".join(f"{one:,}" for one in sorted(changed))
        remarks.append(
            f"Clips of {listed} Hz are resampled to {rate:,} Hz, so that the rate does not give a "
            "side away."
        )
    if any(header.channels > 1 for header in headers.values()):
        remarks.append("Stereo clips are mixed to one channel.")
    return remarks


def _headers(clips: ClipFolder) -> dict[tuple[str, str], SoundHeader]:
    return {place: read_header(path, _name(place)) for place, path in clips.files.items()}


def _rate_of(headers: Mapping[tuple[str, str], SoundHeader]) -> int:
    return min(HIGHEST_RATE, max(header.rate for header in headers.values()))


def _name(place: tuple[str, str]) -> str:
    return "/".join(place)


def _write(
    folder: Path,
    plan: ComparisonPlan,
    clips: ClipFolder,
    headers: Mapping[tuple[str, str], SoundHeader],
) -> None:
    rate = _rate_of(headers)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InputError(f"{folder} is not empty: choose a new folder.")
        (folder / TAKES).mkdir()
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{folder} cannot be used: {reason}. Choose another.") from error
    for slot in plan.slots:
        place = clips.systems[slot.setting], clips.sentences[slot.script]
        wave = read_sound(clips.files[place], _name(place), headers[place], rate)
        audio.write_audio(folder / TAKES / plan.take_file(slot), wave, rate, {})
        facts = {"seconds": round(len(wave) / rate, 2), "sample_rate": headers[place].rate}
        plan = replace(plan, facts=plan.facts | {slot.id: facts})
    plan_file.write_plan(folder, plan)
