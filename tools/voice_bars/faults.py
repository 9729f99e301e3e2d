"""Faults that are planted into takes of the embedded voice, and whether the judge finds them.

A line that is dropped or said twice is really generated so: the script of the take lacks it, or has
it twice, and what was read is then put on the text that should have been said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from random import Random

import numpy as np

from dia_demo.engine.sound.time_stretch import TimeStretch
from dia_demo.engine.turns.passages import passages
from dia_demo.prompt.prompt import resample_for_analysis
from dia_demo.services.dialogue.plan import DialoguePlan, make_plan
from dia_demo.services.judging.chunk_take import ChunkTake
from dia_demo.services.judging.judge import Fault, Verdict, alignment_of, judge
from dia_demo.services.judging.sound import Sound
from dia_demo.services.judging.speakers import speaker_spans
from dia_demo.text.dialogue.chunks import Chunk
from dia_demo.text.script import from_bytes, to_bytes
from tools.voice_bars import scripts
from tools.voice_bars.bar import Bar, Line, Trial, share_line
from tools.voice_bars.hearing import hear_pieces, is_loud, lines_said
from tools.voice_bars.lasting import apart, pitch_of
from tools.voice_bars.studio import Studio
from tools.voice_bars.times import BARS as TIMES
from tools.voice_bars.times import teach

COUNT = 120
# Of the end of the sound: about half of a last word.
CUT_SECONDS = 0.25
NOISE_DB = (-36.0, -18.0)  # Of full scale, where speech has -20.
FAST = 1.6
# How far a turn may be from the same one in the teacher's voice, in nepers and semitones: in the
# right voice 264 turns had at most 0.54 and 1.3, in another one at least 1.2 or 4.4.
UNLIKE, SEMITONES, TURN_SECONDS = 0.9, 2.5, 2.0
# The kind of fault that a planted one should be called.
PLANTED = {
    "last word cut": (Fault.CUT,),
    "1 s of noise appended": (Fault.NOISE,),
    "a line dropped": (Fault.SKIPPED, Fault.CUT, Fault.TOO_FAST),
    "a line repeated": (Fault.REPEATED, Fault.TOO_SLOW),
    "1.6x too fast": (Fault.TOO_FAST,),
}


@lru_cache(4)
def _plan(studio: Studio, number: int) -> DialoguePlan:
    return make_plan(studio.request(scripts.dialogue(number), seed=number))


def _trial(studio: Studio, number: int) -> Trial:
    draw = Random(number)
    plan = _plan(studio, number // 12)
    chunks = [chunk for chunk in plan.chunks if len(chunk.parts) > 1]
    chunk = chunks[number % len(chunks)]
    line = draw.randrange(len(chunk.parts))
    parts = chunk.parts
    dropped = replace(chunk, parts=(*parts[:line], *parts[line + 1 :]))
    repeated = replace(chunk, parts=(*parts[: line + 1], *parts[line:]))
    order = list(range(len(parts)))
    clean, shorter, longer = _takes(
        studio, plan, chunk,
        {chunk: order, dropped: order[:line] + order[line + 1 :],
         repeated: order[: line + 1] + order[line:]},
    )  # fmt: skip
    planted = {
        "last word cut": cut_last_word(clean),
        "1 s of noise appended": with_noise(clean, draw),
        "a line dropped": shorter,
        "a line repeated": longer,
        "1.6x too fast": too_fast(clean),
    }
    fps = plan.info.frames_per_second

    def verdict(take: ChunkTake) -> Verdict:
        return judge(take, chunk.seconds, fps)

    found: Trial = {name: verdict(take).text for name, take in planted.items()}
    found["clean"] = verdict(clean).text
    if not TIMES[0].missing_requirements():  # The teacher is here.
        found["another voice"] = has_another_voice(studio, clean, fps)
    if found["clean"] != "good":
        heard = hear_pieces(clean.samples, clean.sample_rate)
        found["said"] = lines_said([part.text for part in parts], heard)
        found["script"] = chunk.script
    return found


def has_another_voice(studio: Studio, take: ChunkTake, fps: float) -> bool:
    """Whether a turn sounds unlike the teacher's, which says the same words in the voice that it
    should have."""
    assert take.voices is not None, "the model has voices by name"
    sound = Sound(take.samples, take.sample_rate)
    spans = speaker_spans(take, sound, alignment_of(take), fps)
    for turn, (speaker, start, end) in zip(passages(take.text, take.said), spans, strict=False):
        if end - start < TURN_SECONDS * take.sample_rate:
            continue
        words, name = from_bytes(take.text[turn.start : turn.end]), take.voices[speaker - 1]
        assert name is not None, "without a voice prompt all have names"
        said = resample_for_analysis(take.samples[start:end], take.sample_rate)
        semitones, nepers = from_teacher(studio, said, words, name)
        if nepers > UNLIKE or semitones > SEMITONES:
            return True
    return False


def from_teacher(studio: Studio, said: np.ndarray, words: str, voice: str) -> tuple[float, float]:
    """How far what was said (at 16 kHz) is from the same words by the teacher in this voice, in
    semitones and nepers: by WORLD's pitch and the mean envelope, which the judge does not
    measure."""
    from training.voice.judge.speakers import envelope

    taught, _ = teach(studio, words, voice)
    # 1 Hz, where nothing is voiced, is far from every voice.
    semitones = abs(12 * np.log2(max(pitch_of(said), 1.0) / pitch_of(taught)))
    return float(semitones), apart(envelope(said), envelope(taught))


def _takes(
    studio: Studio, plan: DialoguePlan, chunk: Chunk, variants: dict[Chunk, list[int]]
) -> list[ChunkTake]:
    """A take of each variant of a chunk, as if its script had been that of the chunk."""
    whole = plan.chunk_request(chunk, 0).encode()
    requests = [plan.chunk_request(variant, 0) for variant in variants]
    takes = []
    for (variant, order), request, result in zip(
        variants.items(), requests, studio.takes(requests), strict=True
    ):
        take = ChunkTake.from_result(chunk.index, 0, request.encode(), 0, result)
        if variant is not chunk:
            assert take.places is not None
            # How many turns there should have been is not known of another script.
            figures = replace(take.figures, surplus_turns=None)
            said = [chunk.parts[number].text for number in order]
            spoken = [part.text for part in chunk.parts]
            places = move_places(take.places, take.text, said, whole, spoken, order)
            take = replace(take, places=places, text=whole, figures=figures)
        takes.append(take)
    return takes


def move_places(
    places: np.ndarray,
    text: bytes,
    said: Sequence[str],
    whole: bytes,
    lines: Sequence[str],
    order: Sequence[int],
) -> np.ndarray:
    """Places in `text`, which has the lines `said`, as places in `whole`, which has all `lines`.
    order: which of them each line of `said` is."""
    from_starts, to_starts = _starts(text, said), _starts(whole, lines)
    shifts = [to_starts[number] - start for number, start in zip(order, from_starts, strict=True)]
    # A tag before a line belongs to that line.
    edges = np.array([0, *(start - 2 for start in from_starts[1:])])
    shift = np.array(shifts)[np.maximum(np.searchsorted(edges, places, "right") - 1, 0)]
    return np.where(places < 0, places, places + shift).astype(places.dtype)


def _starts(text: bytes, lines: Sequence[str]) -> list[int]:
    starts, at = [], 0
    for line in lines:
        starts.append(text.index(to_bytes(line), at))
        at = starts[-1] + len(line)
    return starts


def _hop(take: ChunkTake) -> float:
    assert take.places is not None
    return len(take.samples) / max(1, len(take.places))


def _sound_end(take: ChunkTake) -> int:
    """The sample after the last sound."""
    loud = np.flatnonzero(is_loud(take.samples, take.sample_rate))
    return min(len(take.samples), (int(loud[-1]) + 1) * round(0.010 * take.sample_rate))


def cut_last_word(take: ChunkTake) -> ChunkTake:
    """It ends CUT_SECONDS before its sound does."""
    last = max(1, _sound_end(take) - round(CUT_SECONDS * take.sample_rate))
    assert take.places is not None
    frames = round(last / _hop(take))
    return replace(
        take, samples=take.samples[:last], codes=take.codes[:frames], places=take.places[:frames]
    )


def with_noise(take: ChunkTake, draw: Random) -> ChunkTake:
    """A second of noise after a silence of up to 0.3 s; it is read from the last byte that was."""
    rate, rng = take.sample_rate, np.random.default_rng(draw.randrange(2**32))
    level = 10 ** (draw.uniform(*NOISE_DB) / 20)
    noise = level * rng.standard_normal(rate)
    if draw.random() < 0.5:  # Noise of a room, with more of the low frequencies.
        noise = np.convolve(noise, np.ones(8) / 8**0.5, "same")
    end = _sound_end(take)
    silence = np.zeros(round(draw.uniform(0.0, 0.3) * rate))
    samples = np.concatenate([take.samples[:end], silence, noise]).astype(np.float32)
    assert take.places is not None
    frames, hop = len(take.places), _hop(take)
    added = max(0, round(len(samples) / hop) - frames)
    places = np.append(take.places, np.full(added, take.places.max(), take.places.dtype))
    codes = np.concatenate([take.codes, np.repeat(take.codes[-1:], added, axis=0)])
    return replace(take, samples=samples, codes=codes, places=places)


def too_fast(take: ChunkTake) -> ChunkTake:
    """Sound and places in 1 / FAST of their time."""
    stretch = TimeStretch(take.sample_rate, FAST)
    samples = np.concatenate([stretch.push(take.samples), stretch.finish()])
    assert take.places is not None
    kept = np.arange(0, len(take.places), FAST).astype(int)
    return replace(
        take, samples=samples.astype(np.float32), codes=take.codes[kept], places=take.places[kept]
    )


def _lines(trials: Sequence[Trial]) -> list[Line]:
    lines = []
    for name, kinds in PLANTED.items():
        found = [trial[name] != "good" for trial in trials]
        named = [any(kind in trial[name].split(", ") for kind in kinds) for trial in trials]
        lines.append(share_line(f"found: {name}", 0.95, found, f"{np.mean(named):.0%} by its name"))
    others = [trial for trial in trials if trial.get("another voice")]
    if others:
        found = [Fault.VOICE in trial["clean"].split(", ") for trial in others]
        name = "found: a turn in another voice, which the model said of its own accord"
        lines.append(share_line(name, 0.95, found))
    blamed = [trial for trial in trials if trial["clean"] != "good"]
    misheard = [any(count != 1 for count in trial["said"]) for trial in blamed]
    is_right = [
        heard or trial.get("another voice") for heard, trial in zip(misheard, blamed, strict=True)
    ]
    false = is_right.count(False)
    rate = false / len(trials)
    note = (
        f"{false}; of {sum(misheard)} more the recogniser misses or repeats a line too, and "
        f"{len(others)} of all have a turn in another voice than the teacher's"
    )
    goal = "≤ 3%"
    return [*lines, Line("false alarms", goal, len(trials), f"{rate:.1%} ({note})", rate <= 0.03)]


BARS = (Bar("faults", COUNT, 3, _trial, _lines, modules=("pocketsphinx",)),)
