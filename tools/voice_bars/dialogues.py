"""Long dialogues: whether all lines are said, how well they are understood, and how chunks join."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from dia_demo.audio import integrated_loudness
from dia_demo.services.dialogue.join import LONGEST_GAP, SHORTEST_GAP
from dia_demo.services.measurements.words import distance
from dia_demo.services.measurements.words import words as words_of
from tools.voice_bars import scripts
from tools.voice_bars.bar import Bar, Line, Trial, share_line
from tools.voice_bars.hearing import STEP_SECONDS, hear_pieces, is_loud, lines_said
from tools.voice_bars.studio import Dialogue, Studio

COUNT = 20
# Of full scale, from one sample to the next, at either end of the silence between two chunks.
CLICK, CLICK_SECONDS = 10 ** (-54 / 20), 0.003
LOUDNESS_DB = 1.0
# A gap is measured in steps; a speaker has to be heard for so long to have a loudness.
GAP_SLACK, LEAST_SECONDS = 2 * STEP_SECONDS, 1.0


def _lines_trial(studio: Studio, number: int) -> Trial:
    lines = [" ".join(line) for line in scripts.turns(number, studio.turns)]
    made = studio.long_dialogue(number)
    said = lines_said(lines, studio.heard_in(number))
    wrong = [f"{count}x {line}" for count, line in zip(said, lines, strict=True) if count != 1]
    seconds = len(made.samples) / made.sample_rate
    return {"lines": len(lines), "seconds": round(seconds, 1), "wrong": wrong}


def _lines_of_lines(trials: Sequence[Trial]) -> list[Line]:
    wrong = sum(len(trial["wrong"]) for trial in trials)
    all_lines = sum(trial["lines"] for trial in trials)
    seconds = np.mean([trial["seconds"] for trial in trials])
    title = f"lines of {trials[0]['lines']}-turn dialogues said once and in order"
    right = [True] * (all_lines - wrong) + [False] * wrong
    return [share_line(title, 0.99, right, f"{len(trials)} dialogues of {seconds:.0f} s")]


def _errors_trial(studio: Studio, number: int) -> Trial:
    """The wrong words of a joined dialogue and of its sentences, each a take of its own in the same
    voice."""
    turns = scripts.turns(number, studio.turns)
    expected = words_of(" ".join(sentence for line in turns for sentence in line))
    together = words_of(studio.heard_in(number))
    one, two = studio.long_dialogue(number).voices
    spoken = [(k % 2, sentence) for k, line in enumerate(turns) for sentence in line]
    requests = [
        studio.request(f"[S1] {sentence}", seed=k, voices=((one, two)[speaker], None))
        for k, (speaker, sentence) in enumerate(spoken)
    ]
    wrong = 0
    for (_, sentence), take in zip(spoken, studio.takes(requests), strict=True):
        assert take.samples is not None
        heard = hear_pieces(take.samples, take.figures.sample_rate)
        wrong += distance(words_of(sentence), words_of(heard))
    return {"words": len(expected), "joined": distance(expected, together), "single": wrong}


def _lines_of_errors(trials: Sequence[Trial]) -> list[Line]:
    total = sum(trial["words"] for trial in trials)
    together, single = (sum(trial[name] for trial in trials) / total for name in JOINED_AND_SINGLE)
    result = f"{100 * (together - single):+.1f} points ({together:.1%} against {single:.1%})"
    title = f"word error of the joined take against single takes ({total:,} words)"
    return [Line(title, "≤ +1 point", len(trials), result, together - single <= 0.01)]


JOINED_AND_SINGLE = ("joined", "single")


def _joins_trial(studio: Studio, number: int) -> Trial:
    made = studio.long_dialogue(number)
    gaps, steps = [], []
    for start in made.starts[1:]:
        first, last = silence_at(made, start)
        gaps.append(round((last - first) / made.sample_rate, 3))
        steps.append(round(step_at(made, start), 5))
    return {"gaps": gaps, "steps": steps, "loudness": loudness_of_speakers(made)}


def step_at(made: Dialogue, start: int) -> float:
    """The largest step where the silence before a chunk begins and ends."""
    sounds = np.flatnonzero(made.samples[start:])
    around = round(CLICK_SECONDS * made.sample_rate)
    edges = start, start + (int(sounds[0]) if len(sounds) else 0)
    near = [made.samples[max(0, edge - around) : edge + around] for edge in edges]
    return float(max(np.abs(np.diff(piece)).max(initial=0.0) for piece in near))


def silence_at(made: Dialogue, start: int) -> tuple[int, int]:
    """The samples of the silence around the place where a chunk begins."""
    loud = is_loud(made.samples, made.sample_rate)
    step = round(STEP_SECONDS * made.sample_rate)
    before, after = np.flatnonzero(loud[: start // step]), np.flatnonzero(loud[start // step :])
    first = (int(before[-1]) + 1) * step if len(before) else 0
    return first, start // step * step + (int(after[0]) if len(after) else 0) * step


def loudness_of_speakers(made: Dialogue) -> dict[str, list[float]]:
    """Of each speaker in each chunk, in LUFS, where there is enough of it."""
    spans: dict[tuple[str, int], list[np.ndarray]] = defaultdict(list)
    turns: dict[tuple[str, int, int], list[float]] = defaultdict(list)
    for word in made.words:
        turns[word.speaker, made.chunk_of(word), word.turn] += [word.start, word.end]
    for (speaker, chunk, _), times in turns.items():
        first, last = (round(at * made.sample_rate) for at in (min(times), max(times)))
        spans[speaker, chunk].append(made.samples[first:last])
    found: dict[str, list[float]] = defaultdict(list)
    for (speaker, _), pieces in spans.items():
        wave = np.concatenate(pieces)
        level = integrated_loudness(wave, made.sample_rate)
        if level is not None and len(wave) >= LEAST_SECONDS * made.sample_rate:
            found[speaker].append(round(level, 2))
    return dict(found)


def _lines_of_joins(trials: Sequence[Trial]) -> list[Line]:
    gaps = [gap for trial in trials for gap in trial["gaps"]]
    steps = [step for trial in trials for step in trial["steps"]]
    lowest, highest = SHORTEST_GAP - GAP_SLACK, LONGEST_GAP + GAP_SLACK
    levels = [np.array(each) for trial in trials for each in trial["loudness"].values() if each]
    apart = np.concatenate([np.abs(each - np.median(each)) for each in levels])
    return [
        share_line("joins without a click", 1, [step <= CLICK for step in steps]),
        share_line(
            f"gaps of {SHORTEST_GAP:g} to {LONGEST_GAP:g} s", 1,
            [lowest <= gap <= highest for gap in gaps], f"{min(gaps):.2f} to {max(gaps):.2f} s",
        ),
        share_line(
            "loudness of a speaker in a chunk within 1 dB of the same in all", 1,
            (apart <= LOUDNESS_DB).tolist(), f"at most {apart.max():.1f} dB",
        ),
    ]  # fmt: skip


BARS = (
    Bar("lines", COUNT, 1, _lines_trial, _lines_of_lines, modules=("pocketsphinx",)),
    Bar("errors", COUNT, 1, _errors_trial, _lines_of_errors, modules=("pocketsphinx",)),
    Bar("joins", COUNT, 1, _joins_trial, _lines_of_joins),
)
