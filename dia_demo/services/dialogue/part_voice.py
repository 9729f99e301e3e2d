"""The voice of a long take, which was joined from parts: that of one part, whose codes are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from dia_demo.errors import InputError
from dia_demo.prompt.codes import pack_codes
from dia_demo.prompt.voice_file import VoiceFile
from dia_demo.services.dialogue.join import Placed
from dia_demo.services.dialogue.run import DialogueRun, JoinedSound
from dia_demo.services.voices.keep import (
    LONGEST_SECONDS,
    SHORTEST_SECONDS,
    WHOLE,
    Part,
    keep_take,
    without_notice,
)
from dia_demo.text.dialogue.chunks import Chunk

# What is best for a voice, see docs/voices.md.
_BEST_SECONDS = 8.0


def is_joined(contents: Mapping[str, Any]) -> bool:
    """Whether a file's metadata is that of a long take, which has no codes of its own."""
    return "codes" not in contents and isinstance(contents.get("chunks"), list)


def keep_part(
    run: DialogueRun,
    contents: Mapping[str, Any],
    name: str,
    part: Part = WHOLE,
    transcript: str = "",
) -> VoiceFile:
    """The voice of one part of the long take that a file's metadata describes.

    run: the dialogue whose parts are kept, with the attempts that were found. part: from and to, in
    seconds of the file, within one part of it; without any, the best part is taken. Raises
    InputError if `run` is another dialogue, no part can be used, and as `keep_take` does.
    """
    seed = run.plan.request.params.seed
    if contents.get("script") != run.plan.text or contents["settings"]["seed"] != seed:
        raise InputError(
            "The parts of this long take are no longer kept, and its file contains no codes: make "
            "it again, or keep its voice as a recording."
        )
    if part == WHOLE:
        chunk = _best(run)
    else:
        chunk, part = _locate(run, without_notice(part, contents))
    take, request = run.take(chunk), run.plan.request
    of_part = {
        "script": chunk.script,
        "codes": pack_codes(take.codes),
        "figures": asdict(take.figures),
        "frames_per_second": run.plan.info.frames_per_second,
        "speed": request.speed,
        "settings": asdict(request.params),
    }
    return keep_take(of_part, name, part, transcript)


def _best(run: DialogueRun) -> Chunk:
    """Of the parts without a fault in which most speakers speak, the one of the best length."""
    fps = run.plan.info.frames_per_second

    def seconds(chunk: Chunk) -> float:
        return len(run.take(chunk).codes) / fps

    usable = [
        chunk
        for chunk in run.plan.chunks
        if run.best(chunk).verdict.is_good and SHORTEST_SECONDS <= seconds(chunk) <= LONGEST_SECONDS
    ]
    if not usable:
        raise InputError(
            "No part of this take is without a fault and short enough for a voice: choose from and "
            "to, in seconds."
        )
    most = max(len(chunk.speakers) for chunk in usable)
    return min(
        (chunk for chunk in usable if len(chunk.speakers) == most),
        key=lambda chunk: abs(seconds(chunk) - _BEST_SECONDS),
    )


def _locate(run: DialogueRun, part: Part) -> tuple[Chunk, Part]:
    """The part of the dialogue that contains these seconds, and the seconds of its own take."""
    placed, rate = _places(run)
    start, end = part
    first = round((start or 0.0) * rate)
    at = max((k for k, each in enumerate(placed) if each.start <= first), default=0)
    here = placed[at]
    here_end = here.start + here.last - here.first
    last = here_end if end is None else round(end * rate)
    if last > here_end:
        spans = (f"{p.start / rate:.1f} to {(p.start + p.last - p.first) / rate:.1f} s"
                 for p in placed[at : at + 2])  # fmt: skip
        raise InputError(
            "These seconds are not within one part of the take: choose some that are, such as "
            f"within {' or '.join(spans)}."
        )
    own = (max(0, sample - here.start) + here.first for sample in (first, last))
    begin, stop = (sample / rate for sample in own)
    return run.plan.chunks[here.chunk], (begin, stop)


def _places(run: DialogueRun) -> tuple[Sequence[Placed], int]:
    """Where each part is in the whole, and the sample rate."""
    pieces = list(JoinedSound(run).ready_pieces())
    return [piece.placed for piece in pieces if piece.placed is not None], pieces[0].sample_rate
