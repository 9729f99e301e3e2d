"""A take of a short script as the only chunk, and whether it is in the voices it should have."""

from __future__ import annotations

from dia_demo.engine.events import FinishReason, Result
from dia_demo.services.judging.chunk_take import ChunkTake
from dia_demo.services.judging.judge import alignment_of
from dia_demo.services.judging.sound import Sound
from dia_demo.services.judging.speakers import has_another_voice, speaker_spans
from dia_demo.services.take import Request
from dia_demo.text.script import parse_turns

ANOTHER_VOICE = "The take may be in another voice: generate again with another seed."
CHANGED_VOICE = "A voice may change within the take: generate again with another seed."


def voice_remark(request: Request, result: Result) -> str | None:
    """What to do if the voices that a person chose, gave as a prompt, or left to the seed of a
    dialogue, are not those that speak; None if they are, as far as is known."""
    is_chosen = request.voice is not None or any(request.voices)
    if result.figures.finish_reason == FinishReason.CANCELLED:
        return None
    if not is_chosen and not _has_speaker_with_turns(request):  # Nobody expects any voice.
        return None
    take = take_as_chunk(request, result)
    alignment, sound = alignment_of(take), Sound(take.samples, take.sample_rate)
    spans = speaker_spans(take, sound, alignment, request.model.frames_per_second / request.speed)
    if not has_another_voice(take, spans, alignment is not None):
        return None
    return ANOTHER_VOICE if is_chosen else CHANGED_VOICE


def _has_speaker_with_turns(request: Request) -> bool:
    """Whether somebody speaks more than once."""
    speakers = [turn.speaker for turn in parse_turns(request.script)]
    return len(speakers) > len(set(speakers))


def take_as_chunk(request: Request, result: Result) -> ChunkTake:
    """The take as one attempt at a chunk."""
    text, said = request.encode(), request.transcript_bytes()
    return ChunkTake.from_result(0, 0, text, said, result)
