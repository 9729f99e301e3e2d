"""A take of a short script as a dialogue of one chunk: its verdict and its words."""

from __future__ import annotations

from dataclasses import replace

from dia_demo.engine.events import Result
from dia_demo.services.dialogue.events import ChunkReport
from dia_demo.services.dialogue.judging.chunk_take import ChunkTake
from dia_demo.services.dialogue.judging.judge import alignment_of, judge
from dia_demo.services.dialogue.timeline import Span, TimedWord, timed_words
from dia_demo.services.take import Request
from dia_demo.text.formats.table import in_turns
from dia_demo.text.script import TAG


def report_of_take(request: Request, result: Result) -> ChunkReport:
    """What `say --json` says of the only chunk."""
    take, figures = _as_chunk(request, result), result.figures
    expected = figures.expected_seconds or figures.audio_seconds
    verdict = judge(take, expected, request.model.frames_per_second / request.speed)
    seconds, rate = round(figures.audio_seconds, 3), verdict.words_per_second
    return ChunkReport(0, request.script, figures.seed, seconds, rate, verdict.text, 0)


def words_of_take(request: Request, result: Result) -> list[TimedWord]:
    """The words of a single take of a script."""
    if in_turns(request.script) != request.script:  # Its turns are those that the model reads.
        request = replace(request, script=request.reading(request.script).text)
    script = request.script
    spans: list[Span] = []
    tags = [(0, 0, 1), *((*m.span(), int(m[1])) for m in TAG.finditer(script))]
    for (_, start, speaker), after in zip(tags, [*tags[1:], None], strict=True):
        end = after[0] if after else len(script)
        if script[start:end].strip():
            spans.append(Span(start, end, speaker, len(spans)))
    take = _as_chunk(request, result)
    return timed_words(request, spans, take, alignment_of(take))


def _as_chunk(request: Request, result: Result) -> ChunkTake:
    text, said = request.encode(), request.transcript_bytes()
    return ChunkTake.of_result(0, 0, text, said, result)
