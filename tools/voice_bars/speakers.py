"""Who speaks: on both sides of blind pairs, and in every turn of a dialogue.

Turns are cut where the take says that their words are. A few words have a pitch and sounds of their
own, so a turn is compared with one of the same words: the other side's, or the teacher's in the
voice that the seed chose. Of whole speakers, who say different words, only those count as alike
that are as near as one voice is to itself.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np

from dia_demo.config import GenerationParams
from dia_demo.engine.events import Result
from dia_demo.errors import RunError
from dia_demo.prompt.prompt import resample_for_analysis
from dia_demo.prompt.speech import RATE
from dia_demo.prompt.voice_traits import distance, voice_traits
from dia_demo.services.dialogue.single_take import report_of_take, words_of_take
from dia_demo.services.judging.judge import Fault
from dia_demo.services.listening.clips import read_wave
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan.plan import NAMES, ComparisonKind, draw_seeds, make_plan
from dia_demo.services.listening.plan.setting import Setting
from dia_demo.services.listening.render import CLIPS, RenderEnded
from dia_demo.services.listening.sides import settings_of
from dia_demo.services.listening.verdict.claims import voices_warning
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request, Take, TimedWord
from dia_demo.text.pronunciations import NONE
from dia_demo.voices import NO_NAMES, VoiceNames
from tools.voice_bars import scripts
from tools.voice_bars.bar import Bar, Line, Trial
from tools.voice_bars.faults import SEMITONES, UNLIKE, from_teacher
from tools.voice_bars.lasting import apart, pitch_of
from tools.voice_bars.studio import Studio

# The two sides of each question; every script with every seed is a pair.
QUESTIONS = (
    ({"precision": "int8"}, {"precision": "float32"}),
    ({"temperature": 0.1}, {"temperature": 1.0}),
)
SCRIPTS, SEEDS, PAIR_TURNS, SAME_PAIRS = 2, 15, 4, 28
DIALOGUES, NAMED_DIALOGUES, TOGETHER, TURNS = 200, 160, 8, 6
# The first seed of dialogues between voices by name.
NAMED_FIRST = 9000
# Less of a turn is not compared: seconds.
LEAST_SECONDS = 1.0
# Semitones, and nepers: of 1,228 pairs of speakers with one voice, who said three turns of other
# words each, 99% were nearer to each other.
SPEAKERS_APART, SAME_ENVELOPE = 2.0, 0.73


def cut_turns(
    samples: np.ndarray, rate: int, words: Sequence[TimedWord]
) -> list[tuple[str, np.ndarray]]:
    """The speaker and the sound, at 16 kHz, of each turn: from its first word to its last."""
    found = []
    for turn in sorted({word.turn for word in words}):
        own = [word for word in words if word.turn == turn]
        first, last = (round(at * rate) for at in (own[0].start, own[-1].end))
        found.append((own[0].speaker, resample_for_analysis(samples[first:last], rate)))
    return found


class RecordingSynthesis(Synthesis):
    """The app's service, which also keeps the takes that a comparison drops once it has its clips:
    by script, parameters and precision."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.made: dict[tuple[str, GenerationParams, str], tuple[Take, list[TimedWord]]] = {}

    def take(self, request: Request, result: Result) -> Take:
        take = super().take(request, result)
        key = request.script, request.params, request.runtime.precision
        self.made[key] = take, words_of_take(request, result)
        return take

    def find(self, script: str, setting: Setting, seed: int) -> tuple[Take, list[TimedWord]]:
        """The take of a side of a pair, and its words."""
        return self.made[script, setting.params_of(seed), setting.runtime.precision]


def _pairs_trial(studio: Studio, number: int) -> Trial:
    """A blind comparison as the page and `compare` make it, without a voice prompt."""
    sides = QUESTIONS[number]
    named = [" ".join(f"{name} {value}" for name, value in side.items()) for side in sides]
    trial: Trial = {"question": " against ".join(named), "warning": None, "pairs": []}
    settings = replace(Settings.from_env(), runtime=studio.runtime)
    with (
        closing(RecordingSynthesis(settings)) as synthesis,
        tempfile.TemporaryDirectory(dir=studio.work) as folder,
    ):
        models = synthesis.models
        of_sides = settings_of(sides, studio.runtime, models.__getitem__, False, NONE)
        seeds = draw_seeds(2 if studio.is_quick else SEEDS, first=0)
        texts = [scripts.dialogue(500 + k, PAIR_TURNS) for k in range(SCRIPTS)]
        plan = make_plan(ComparisonKind.PREFERENCE, of_sides, texts, seeds)
        trial["warning"] = voices_warning(plan.settings, models)
        comparison = Comparison.create(Path(folder) / "pairs", plan, synthesis)
        for event in comparison.run(synthesis, threading.Event()):
            if isinstance(event, RenderEnded) and event.failures:
                raise RunError(event.failures[0])
        return trial | {"pairs": compare_sides(comparison, synthesis)}


def compare_sides(comparison: Comparison, synthesis: RecordingSynthesis) -> list[Trial]:
    """Of each pair, after the test: the names of the voices of both clips, and how far the same
    turns of both are from each other, in semitones and nepers."""
    comparison.reveal()
    plan, found = comparison.plan, []
    for pair in comparison.revealed_pairs():
        names, sides = [], []
        for clip, side in zip(pair.trial.clips, pair.heard, strict=True):
            setting = plan.settings[NAMES.index(side)]
            script = plan.scripts[pair.trial.script]
            take, words = synthesis.find(script, setting, pair.trial.seed)
            names.append(list(take.voices or ()))
            sides.append(cut_turns(*read_wave(comparison.folder / CLIPS / clip), words))
        found.append({"seed": pair.trial.seed, "names": names, "apart": turns_apart(*sides)})
    return found


def turns_apart(
    one: Sequence[tuple[str, np.ndarray]], other: Sequence[tuple[str, np.ndarray]]
) -> list[list[float]]:
    """Semitones and nepers between the same turns of two takes, as the app hears voices."""
    found = []
    for (_, first), (_, second) in zip(one, other, strict=True):
        a, b = voice_traits(first), voice_traits(second)
        semitones = abs((a.semitones or 0.0) - (b.semitones or 0.0))
        found.append([round(semitones, 2), round(distance(a.spectrum, b.spectrum), 2)])
    return found


def is_same_voice(apart: Iterable[Sequence[float]]) -> bool:
    """Whether turns that are so far from those of the same words are in their voice."""
    return all(semitones <= SEMITONES and nepers <= UNLIKE for semitones, nepers in apart)


def _lines_of_pairs(trials: Sequence[Trial]) -> list[Line]:
    return [_line_of_pairs(trial) for trial in trials]


def _line_of_pairs(trial: Trial) -> Line:
    title = f"blind pairs of {trial['question']}: the same voices on both sides"
    pairs, warned = trial["pairs"], trial["warning"] is not None
    by_name = [pair["names"][0] == pair["names"][1] for pair in pairs]
    by_sound = [is_same_voice(pair["apart"]) for pair in pairs]
    both = [name and sound for name, sound in zip(by_name, by_sound, strict=True)]
    most = np.array([turn for pair in pairs for turn in pair["apart"]]).max(0)
    result = (
        f"{sum(both)}{', with a warning before they are made' if warned else ''} (by name "
        f"{sum(by_name)}, by sound {sum(by_sound)}; turns at most {most[0]:.1f} semitones and "
        f"{most[1]:.2f} nepers apart)"
    )
    is_met = warned or sum(both) >= SAME_PAIRS * len(pairs) / 30
    return Line(title, f"≥ {SAME_PAIRS} of 30, or a warning", len(pairs), result, is_met)


def _speakers_trial(studio: Studio, number: int) -> Trial:
    """Dialogues of which the seeds, in order, choose the voices."""
    return _dialogues(studio, number, lambda seed: NO_NAMES)


def _named_trial(studio: Studio, number: int) -> Trial:
    """Dialogues between any two of the voices, also of those that seeds do not choose."""
    table = studio.request("[S1] Yes.", seed=0).model.config.voices
    assert table is not None, "only a model with voices by name has a teacher"
    names = [voice.name for voice in table.voices]

    def draw(seed: int) -> VoiceNames:
        one, two = Random(seed).sample(names, 2)
        return one, two

    return _dialogues(studio, NAMED_FIRST // TOGETHER + number, draw)


def _dialogues(studio: Studio, number: int, voices_of: Callable[[int], VoiceNames]) -> Trial:
    """TOGETHER dialogues, of which the seeds are in order."""
    seeds = range(TOGETHER * number, TOGETHER * (number + 1))
    lines = [[turn[0] for turn in scripts.turns(seed, TURNS)] for seed in seeds]
    requests = [
        studio.request(
            " ".join(f"[S{1 + k % 2}] {text}" for k, text in enumerate(each)),
            seed=seed,
            voices=voices_of(seed),
        )
        for seed, each in zip(seeds, lines, strict=True)
    ]
    made = zip(lines, requests, studio.takes(requests), strict=True)
    return {"dialogues": [_measure_dialogue(studio, *each) for each in made]}


def _measure_dialogue(studio: Studio, lines: list[str], request: Request, result: Result) -> Trial:
    """How far the speakers are from each other, and each turn from the teacher's, in semitones and
    nepers; and the app's own verdict."""
    from training.voice.judge.speakers import envelope

    assert result.samples is not None and result.voices is not None
    rate = result.figures.sample_rate
    turns = cut_turns(result.samples, rate, words_of_take(request, result))
    one, two = (
        np.concatenate([sound for who, sound in turns if who == name]) for name in ("S1", "S2")
    )
    semitones = abs(12 * np.log2(max(pitch_of(one), 1.0) / max(pitch_of(two), 1.0)))
    pairs = zip(lines, turns, strict=True)
    voices = dict(zip(("S1", "S2"), result.voices, strict=True))
    return {
        "seed": request.params.seed,
        "voices": list(result.voices),
        "speakers": [round(semitones, 2), round(apart(envelope(one), envelope(two)), 2)],
        "turns": [
            [round(far, 2) for far in from_teacher(studio, sound, text, str(voices[who]))]
            for text, (who, sound) in pairs
            if len(sound) >= LEAST_SECONDS * RATE
        ],
        "verdict": report_of_take(request, result).verdict,
    }


def _lines_of_speakers(trials: Sequence[Trial]) -> list[Line]:
    dialogues = [dialogue for trial in trials for dialogue in trial["dialogues"]]
    alike = [
        semitones < SPEAKERS_APART and nepers < SAME_ENVELOPE
        for semitones, nepers in (dialogue["speakers"] for dialogue in dialogues)
    ]
    nearest = np.array([dialogue["speakers"] for dialogue in dialogues]).min(0)
    return [
        Line(
            f"dialogues whose speakers are under {SPEAKERS_APART:g} semitones and less than one "
            "voice's own spread apart",
            "0", len(dialogues),
            f"{sum(alike)} (nearest {nearest[0]:.1f} semitones, {nearest[1]:.2f} nepers)",
            not any(alike),
        ),
        _line_of_changes("dialogues with a turn in another voice", dialogues),
    ]  # fmt: skip


def _lines_of_named(trials: Sequence[Trial]) -> list[Line]:
    dialogues = [dialogue for trial in trials for dialogue in trial["dialogues"]]
    return [_line_of_changes("the same, between any two voices by name", dialogues)]


def _line_of_changes(title: str, dialogues: Sequence[Trial]) -> Line:
    changes = [not is_same_voice(dialogue["turns"]) for dialogue in dialogues]
    known = [
        Fault.VOICE in dialogue["verdict"].split(", ")
        for dialogue, is_changed in zip(dialogues, changes, strict=True)
        if is_changed
    ]
    turns = np.array([turn for dialogue in dialogues for turn in dialogue["turns"]])
    good = turns[[is_same_voice([turn]) for turn in turns]].max(0, initial=0)
    result = (
        f"{sum(changes)} (the judge finds {sum(known)}; {len(turns)} turns, the others at most "
        f"{good[0]:.1f} semitones and {good[1]:.2f} nepers from the teacher's)"
    )
    return Line(title, "0", len(dialogues), result, not any(changes))


BARS = (
    Bar("pairs", len(QUESTIONS), 1, _pairs_trial, _lines_of_pairs),
    Bar(
        "speakers", DIALOGUES // TOGETHER, 1, _speakers_trial, _lines_of_speakers,
        modules=("pyworld", "librosa"), programs=("flite",),
    ),
    Bar(
        "named", NAMED_DIALOGUES // TOGETHER, 1, _named_trial, _lines_of_named,
        modules=("pyworld", "librosa"), programs=("flite",),
    ),
)  # fmt: skip
