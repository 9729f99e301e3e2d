"""Chunks joined: gaps, one loudness for each speaker, no click; and the words on their places."""

from dataclasses import replace

import numpy as np
import pytest

from dia_demo.audio import integrated_loudness
from dia_demo.engine.events import SpokenWord
from dia_demo.services.dialogue.join import LONGEST_GAP, SHORTEST_GAP, Joiner, natural_gap
from dia_demo.services.dialogue.subtitles import srt, vtt
from dia_demo.services.dialogue.timeline import Span, timed_words
from dia_demo.services.judging.judge import alignment_of
from dia_demo.services.models import find_model
from dia_demo.services.take import TimedWord
from dia_demo.text.dialogue.breaks import Break
from dia_demo.text.dialogue.chunks import Chunk, TurnPart
from tests.helpers.stand_ins.chunk_takes import FPS, HOP, RATE, SCRIPT, chunk_take, frames_reading
from tests.helpers.synthesis_requests import make_request

FIRST = "[S1] Hello there, my friend."
SECOND = "[S2] How have you been these days?"


def chunk(index: int, script: str, pause=None, before=Break.TURN) -> Chunk:
    speaker, text = int(script[2]), script[5:]
    return Chunk(index, (TurnPart(speaker, text, index, before),), 2.0, pause)


def joined(*chunks_and_takes, end: float = 0.0) -> tuple[np.ndarray, list]:
    joiner, samples, placed = Joiner(FPS), [], []
    for part, take in chunks_and_takes:
        more, where = joiner.add(part, take, alignment_of(take))
        samples.append(more)
        placed.append(where)
    samples.append(joiner.finish(end))
    assert joiner.position == sum(map(len, samples))
    return np.concatenate(samples), placed


def gaps(samples: np.ndarray) -> list[float]:
    """Seconds of each silence between two sounds of more than 0.1 s."""
    piece = RATE // 100
    levels = np.square(samples[: len(samples) // piece * piece]).reshape(-1, piece).mean(1)
    sounds = np.flatnonzero(levels > 1e-6)
    return [float(gap - 1) / 100 for gap in np.diff(sounds) if gap > 10]


@pytest.mark.parametrize("pause", [0.0, 0.8, 2.0])
def test_a_pause_is_as_long_as_the_script_says(pause):
    # Without commas, so that the only silence is the pause.
    takes = [chunk_take("[S1] Hello there."), chunk_take("[S2] How have you been?")]
    parts = [chunk(0, "[S1] Hello there."), chunk(1, "[S2] How have you been?", pause)]
    samples, _ = joined(*zip(parts, takes, strict=True))
    found = [gap for gap in gaps(samples) if gap > 0.14]
    assert found == pytest.approx([pause] if pause else [], abs=0.03)


def test_gaps_are_natural():
    for mark in ".!?,;:…a":
        for before in Break:
            gap = natural_gap(chunk(0, f"[S1] Hello{mark}"), chunk(1, SECOND, None, before))
            assert SHORTEST_GAP <= gap <= LONGEST_GAP
    question, comma = (natural_gap(chunk(0, f"[S1] Hello{m}"), chunk(1, SECOND)) for m in "?,")
    assert question > comma
    samples, _ = joined(
        (chunk(0, "[S1] Hello there."), chunk_take("[S1] Hello there.")),
        (chunk(1, "[S2] Yes indeed."), chunk_take("[S2] Yes indeed.")),
    )
    (gap,) = [gap for gap in gaps(samples) if gap > 0.14]
    assert SHORTEST_GAP <= gap <= LONGEST_GAP


def test_a_speaker_is_equally_loud_in_all_chunks():
    script = "[S1] Hello there, my friend, how are you. [S2] I have been very well indeed, thanks."
    levels = (0.05, 0.09, 0.03)
    parts = [chunk(number, script) for number in range(3)]
    takes = [chunk_take(script, number, level) for number, level in enumerate(levels)]
    samples, placed = joined(*zip(parts, takes, strict=True))
    first, last = frames_reading(takes[0], "I have been very well indeed, thanks.")
    for start, end in ((8, first - 8), (first, last)):
        loud = [
            integrated_loudness(
                samples[p.start - p.first + start * HOP :][: (end - start) * HOP], RATE
            )
            for p in placed
        ]
        assert max(loud) - min(loud) < 0.5, loud


def test_no_joint_clicks():
    parts = [chunk(0, FIRST), chunk(1, SECOND)]
    takes = [
        replace(t, samples=t.samples + np.float32(0.02)) for t in map(chunk_take, (FIRST, SECOND))
    ]
    samples, placed = joined(*zip(parts, takes, strict=True))
    for place in placed:
        edges = samples[[place.start, place.start + place.last - place.first - 1]]
        assert np.abs(edges).max() < 1e-3


def test_noise_after_the_last_word_is_cut_off():
    take = chunk_take(FIRST)
    noise = 0.05 * np.random.default_rng(0).standard_normal(RATE).astype(np.float32)
    tail = np.concatenate([np.zeros(RATE // 4, np.float32), noise])
    noisy = replace(take, samples=np.concatenate([take.samples, tail]))
    clean, _ = joined((chunk(0, FIRST), take))
    again, _ = joined((chunk(0, FIRST), noisy))
    assert abs(len(clean) - len(again)) < 0.2 * RATE


def test_the_silence_at_the_end_is_the_scripts():
    short, _ = joined((chunk(0, FIRST), chunk_take(FIRST)))
    long, _ = joined((chunk(0, FIRST), chunk_take(FIRST)), end=1.5)
    assert len(long) - len(short) == pytest.approx((1.5 - 0.18) * RATE, abs=2)


def test_words_have_the_times_of_their_sound(synthesis):
    request = replace(make_request(synthesis, SCRIPT), model=find_model("nano"))
    take = chunk_take(SCRIPT)
    spans = [Span(5, 28, 1, 0), Span(34, 52, 2, 1), Span(58, len(SCRIPT), 1, 2)]
    words = timed_words(request, spans, take, alignment_of(take))
    assert [word.word for word in words] == SCRIPT.replace("[S1] ", "").replace("[S2] ", "").split()
    assert [word.speaker for word in words] == ["S1"] * 4 + ["S2"] * 4 + ["S1"] * 5
    for word in (word for word in words if SCRIPT.count(word.word.strip(".,?")) == 1):
        letters = word.word.strip(".,?")
        first, last = (frame / FPS for frame in frames_reading(take, letters))
        assert word.start == pytest.approx(first, abs=0.09)
        assert word.end == pytest.approx(last, abs=0.12)
    assert all(a.end <= b.start + 1e-6 for a, b in zip(words, words[1:], strict=False))


def test_words_that_a_model_knows_have_its_times(synthesis):
    """Each ends where the next begins; two turns of one speaker in a row count as one."""
    take = chunk_take(SCRIPT)
    spoken = (SpokenWord("Hello", 0.4, 1), SpokenWord("How?", 1.2, 2), SpokenWord("Well.", 2.0, 1))
    spans = [Span(5, 28, 1, 3), Span(34, 52, 2, 4), Span(58, len(SCRIPT), 1, 5)]
    request = make_request(synthesis, SCRIPT)
    words = timed_words(request, spans, replace(take, words=spoken), alignment_of(take))
    assert [(word.word, word.start, word.speaker, word.turn) for word in words] == [
        ("Hello", 0.4, "S1", 3), ("How?", 1.2, "S2", 4), ("Well.", 2.0, "S1", 5),
    ]  # fmt: skip
    assert [word.end for word in words[:2]] == [1.2, 2.0] and words[2].end > 2.0


def test_without_alignment_turns_have_times_by_their_length(synthesis):
    request = make_request(synthesis, SCRIPT)
    spans = [Span(5, 28, 1, 0), Span(34, 52, 2, 1)]
    turns = timed_words(request, spans, chunk_take(SCRIPT), None)
    assert [turn.word for turn in turns] == ["Hello there, my friend.", "How have you been?"]
    assert turns[0].end == turns[1].start and turns[0].start < turns[0].end < turns[1].end


WORDS = [
    TimedWord("Hello", 0.5, 0.9, "S1", 0),
    TimedWord("<there>.", 1.0, 1.4, "S1", 0),
    TimedWord("Hi.", 3661.2345, 3661.9, "S2", 1),
]


def test_subtitles_have_a_cue_for_each_turn():
    assert srt(WORDS) == (
        "1\n00:00:00,500 --> 00:00:01,400\nS1: Hello <there>.\n\n"
        "2\n01:01:01,234 --> 01:01:01,900\nS2: Hi.\n"
    )
    assert vtt(WORDS) == (
        "WEBVTT\n\n00:00:00.500 --> 00:00:01.400\n<v S1>Hello &lt;there>.\n\n"
        "01:01:01.234 --> 01:01:01.900\n<v S2>Hi.\n"
    )


def test_a_long_turn_has_several_cues():
    words = [TimedWord(f"word{n}", n / 2, n / 2 + 0.4, "S1", 0) for n in range(60)]
    cues = srt(words).split("\n\n")
    assert len(cues) > 4 and sum(cue.count("word") for cue in cues) == 60
    assert all(len(cue.splitlines()[2]) < 90 for cue in cues)
    assert [cue for cue in cues if "S1:" in cue] == cues[:1]
