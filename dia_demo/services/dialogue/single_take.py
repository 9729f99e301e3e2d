"""A take of a short script as a dialogue of one chunk: its verdict and its words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dia_demo.engine.events import Result, SpokenWord
from dia_demo.services.dialogue.events import ChunkReport
from dia_demo.services.dialogue.timeline import Span, spoken_words, timed_words
from dia_demo.services.judging.judge import alignment_of, judge
from dia_demo.services.judging.single_take import take_as_chunk
from dia_demo.services.take import Request, Take, TimedWord
from dia_demo.text.formats.table import write_turns
from dia_demo.text.script import TAG


def report_of_take(request: Request, result: Result) -> ChunkReport:
    """What `say --json` says of the only chunk."""
    take, figures = take_as_chunk(request, result), result.figures
    expected = figures.expected_seconds or figures.audio_seconds
    verdict = judge(take, expected, request.model.frames_per_second / request.speed)
    seconds, rate = round(figures.audio_seconds, 3), verdict.words_per_second
    return ChunkReport(0, request.script, figures.seed, seconds, rate, verdict.text, 0)


def words_of_take(request: Request, result: Result) -> list[TimedWord]:
    """The words of a single take of a script."""
    request, spans = _turns(request)
    take = take_as_chunk(request, result)
    return timed_words(request, spans, take, alignment_of(take))


def words_so_far(request: Request, spoken: Sequence[SpokenWord], last: float) -> list[TimedWord]:
    """The words that a running take has begun, of models that know them. last: its seconds so far,
    where its last word ends for now."""
    return spoken_words(spoken, _turns(request)[1], last)


def _turns(request: Request) -> tuple[Request, list[Span]]:
    """The turns of a script, and the request with the script that has them."""
    if write_turns(request.script) != request.script:  # Its turns are those that the model reads.
        request = replace(request, script=request.reading(request.script).text)
    script = request.script
    spans: list[Span] = []
    tags = [(0, 0, 1), *((*m.span(), int(m[1])) for m in TAG.finditer(script))]
    for (_, start, speaker), after in zip(tags, [*tags[1:], None], strict=True):
        end = after[0] if after else len(script)
        if script[start:end].strip():
            spans.append(Span(start, end, speaker, len(spans)))
    return request, spans


def with_words(take: Take, result: Result) -> Take:
    """The take with the times of its words, which its file and its report contain then."""
    words = words_of_take(take.request, result)
    return replace(take, words=tuple(word.shift(take.notice_seconds) for word in words))
