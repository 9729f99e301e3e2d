"""A take of a short script as the only chunk, and whether it is in the voices that were chosen."""

from __future__ import annotations

from dia_demo.engine.events import FinishReason, Result
from dia_demo.services.judging.chunk_take import ChunkTake
from dia_demo.services.judging.judge import alignment_of
from dia_demo.services.judging.sound import Sound
from dia_demo.services.judging.speakers import has_another_voice, speaker_spans
from dia_demo.services.take import Request

ANOTHER_VOICE = "The take may be in another voice: generate again with another seed."


def voice_remark(request: Request, result: Result) -> str | None:
    """What to do if a voice that a person chose, or gave as a prompt, is not the one that speaks;
    None if it is, as far as is known."""
    is_chosen = request.voice is not None or any(request.voices)
    if not is_chosen or result.figures.finish_reason == FinishReason.CANCELLED:
        return None
    take = take_as_chunk(request, result)
    alignment, sound = alignment_of(take), Sound(take.samples, take.sample_rate)
    spans = speaker_spans(take, sound, alignment, request.model.frames_per_second / request.speed)
    return ANOTHER_VOICE if has_another_voice(take, spans, alignment is not None) else None


def take_as_chunk(request: Request, result: Result) -> ChunkTake:
    """The take as one attempt at a chunk."""
    text, said = request.encode(), request.transcript_bytes()
    return ChunkTake.from_result(0, 0, text, said, result)
