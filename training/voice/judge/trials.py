"""What evaluate.py tries: scripts never trained on, spoken by teacher, codec and the whole voice.

Every trial returns lines of the issue's table. Seeds are 0, 1, 2, ... in the order of the scripts;
settings are the checkpoint's own unless told otherwise.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from dia_demo.config import GenerationParams
from dia_demo.engine.engine import Engine
from dia_demo.engine.events import Finished
from dia_demo.engine.row import Row
from dia_demo.files import ASSETS
from dia_demo.services.measurements.words import distance, word_error
from dia_demo.services.measurements.words import words as words_of
from dia_demo.text.script import encode_script, parse_turns
from training.voice.corpus import heldout, shards
from training.voice.judge import asr
from training.voice.teacher import speech
from training.voice.teacher.voices import SPEAKERS

EXAMPLES = ASSETS / "examples.json"
LENGTHS = (0.8, 1.25)  # of the teacher's


@dataclass(frozen=True)
class Line:
    """One line of the table. value, teacher, codec: rates 0..1 or what `measure` says."""

    measure: str
    voice: str
    count: int
    value: float
    goal: str
    met: bool
    teacher: float | None = None
    codec: float | None = None
    notes: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Spoken:
    """A take: float32 waveform, and whether it ended by itself."""

    wave: np.ndarray
    ended: bool


def say(
    engine: Engine, scripts: Sequence[str], params: GenerationParams, batch: int
) -> list[Spoken]:
    """Takes of scripts through the app's engine, `batch` at a time; the seeds count up from that of
    `params`."""
    out: list[Spoken] = []
    for start in range(0, len(scripts), batch):
        rows = [
            Row(engine.config, encode_script(s), replace(params, seed=params.seed + start + k))
            for k, s in enumerate(scripts[start : start + batch])
        ]
        out += run_rows(engine, rows)
    return out


def run_rows(engine: Engine, rows: Sequence[Row]) -> list[Spoken]:
    """Takes of rows, some at a time."""
    found = {}
    for event in engine.stream(rows, [3.0] * len(rows), with_audio=False):
        if isinstance(event, Finished):
            found[event.row] = event.result
    return [_decode_take(engine, found[k]) for k in range(len(rows))]


def _decode_take(engine: Engine, result) -> Spoken:
    codes = result.codes
    wave = engine.codec.decode(codes) if len(codes) > 1 else np.zeros(800, np.float32)
    return Spoken(wave, result.figures.finish_reason == "end")


class Studio:
    """The voice under test, the teacher, and the recogniser, with what they said before kept."""

    def __init__(
        self, work: Path, engine: Engine, params: GenerationParams, batch: int, workers: int
    ) -> None:
        self.work, self.engine, self.params = work, engine, params
        self.batch, self.workers = batch, workers
        (work / "eval").mkdir(parents=True, exist_ok=True)

    def say(self, scripts: list[str], **changes) -> list[Spoken]:
        """Takes of scripts, with some of the parameters changed."""
        return say(self.engine, scripts, replace(self.params, **changes), self.batch)

    def teach(self, scripts: list[str]) -> list[np.ndarray]:
        """What the teacher makes of scripts: their turns one after the other."""
        path = self._kept_path("teacher", scripts, ".npz")
        if not path.exists():
            tables = shards.load_tables(self.work)
            waves = [self._teach(script, tables) for script in scripts]
            np.savez(path, *[(w * 32767).astype(np.int16) for w in waves])
        stored = np.load(path)
        return [stored[k].astype(np.float32) / 32767 for k in stored.files]

    def _teach(self, script: str, tables) -> np.ndarray:
        turns = parse_turns(script)
        voices = [SPEAKERS[f"S{turn.speaker}"] for turn in turns]
        spoken = [
            speech.speak(turn.text, voice, tables[voice.source.flite]).wave
            for turn, voice in zip(turns, voices, strict=True)
        ]
        return np.concatenate(spoken)

    def recode(self, waves: list[np.ndarray]) -> list[np.ndarray]:
        """Through the codec and back."""
        return [self.engine.codec.decode(self.engine.codec.encode(w)) for w in waves]

    def heard(self, scripts, waves, keep_as: str | None = None) -> list[str]:
        """What the recogniser hears; kept under a name where the waves never change."""
        path = self._kept_path(keep_as or "", scripts, ".json")
        if keep_as and path.exists():
            return json.loads(path.read_text())
        heard = asr.recognise_all(waves, self.workers)
        if keep_as:
            path.write_text(json.dumps(heard))
        return heard

    def _kept_path(self, name: str, scripts, suffix: str) -> Path:
        key = zlib.crc32("\n".join(scripts).encode())
        return self.work / "eval" / f"{name}-{len(scripts)}-{key:08x}{suffix}"


def lengths_right(takes: list[Spoken], reference: list[np.ndarray]) -> float:
    """Share of takes that ended by themselves at 0.8 to 1.25 of the reference."""
    return float(
        np.mean(
            [
                t.ended and LENGTHS[0] <= len(t.wave) / len(r) <= LENGTHS[1]
                for t, r in zip(takes, reference, strict=True)
            ]
        )
    )


@dataclass(frozen=True)
class Heard:
    """What the recogniser made of scripts: of the teacher, through the codec, of the voice."""

    scripts: list[str]
    teacher: list[str]
    codec: list[str]
    voice: list[str]
    lengths_right: float

    def line(self, name: str, tag: str, rate, limit: float, near: float | None = None) -> Line:
        """rate(scripts, heard) of all three against the goal.

        limit: the goal; near: at most this much above the teacher's.
        """
        taught, coded, error = (
            rate(self.scripts, heard) for heard in (self.teacher, self.codec, self.voice)
        )
        goal = f"≤ {limit:.0%}" + (f", teacher + {near:.0%}" if near else "")
        met = error <= limit and (near is None or error <= taught + near)
        notes = {"lengths right": self.lengths_right}
        return Line(name, tag, len(self.scripts), error, goal, met, taught, coded, notes)


def tag_sentences(tag: str, sentences) -> list[str]:
    """Sentences as scripts; tag "both" alternates."""
    tags = list(SPEAKERS) if tag == "both" else [tag]
    return [f"[{tags[k % len(tags)]}] {s}" for k, s in enumerate(sentences)]


def listen(studio: Studio, scripts: list[str]) -> Heard:
    """Scripts spoken and recognised."""
    reference = studio.teach(scripts)
    taught = studio.heard(scripts, reference, "heard-teacher")
    coded = studio.heard(scripts, studio.recode(reference), "heard-codec")
    takes = studio.say(scripts)
    voice = studio.heard(scripts, [t.wave for t in takes])
    return Heard(scripts, taught, coded, voice, lengths_right(takes, reference))


def words(studio: Studio, name: str, tag: str, sentences, limit: float, near=None) -> Line:
    """Word error on sentences, beside the teacher's and the codec's."""
    heard = listen(studio, tag_sentences(tag, sentences))
    return heard.line(f"word error, {name}", tag, word_error, limit, near)


def everyday(studio: Studio, sentences: Sequence[str], takes: int) -> Line:
    """Word error on everyday sentences without a voice prompt, `takes` of each, with the standard
    error of a draw of sentences, and by the voice that the seed chose.

    A turn of S1 alone: S2 is drawn from the same voices.
    """
    scripts = tag_sentences("S1", sentences) * takes
    heard = studio.heard(scripts, [take.wave for take in studio.say(scripts)])
    pairs = [(words_of(s), words_of(h)) for s, h in zip(scripts, heard, strict=True)]
    wrong = np.array([distance(said, recognised) for said, recognised in pairs])
    count = np.array([len(said) for said, _ in pairs])
    error = float(wrong.sum() / count.sum())
    residuals = (wrong - error * count).reshape(takes, -1).sum(0)  # of a sentence
    notes = {
        "standard error": float(np.sqrt(np.square(residuals).sum()) / count.sum()),
        "by voice": _by_voice(studio, wrong, count),
    }
    name = "word error, everyday sentences"
    return Line(name, "the seed's", len(scripts), error, "≤ 12%", error <= 0.12, notes=notes)


def _by_voice(studio: Studio, wrong: np.ndarray, count: np.ndarray) -> dict[str, list[float]]:
    """Voice -> word error and takes, where seeds choose from a list."""
    table = studio.engine.config.voices
    if table is None:
        return {}
    spoken = [table.draw(studio.params.seed + k)[0].name for k in range(len(wrong))]
    return {
        name: [float(wrong[its].sum() / count[its].sum()), int(its.sum())]
        for name in sorted(set(spoken))
        for its in [np.array(spoken) == name]
    }


def other_words(studio: Studio, count: int, limit: float) -> Iterator[Line]:
    """Words never trained on, each in an everyday sentence: of all words, and of those alone."""
    wanted = heldout.rare_words()[:count]
    heard = listen(studio, tag_sentences("both", heldout.rare_word_sentences()[:count]))

    def missed_share(_scripts, texts: list[str]) -> float:
        found = (w in words_of(t) for w, t in zip(wanted, texts, strict=True))
        return 1 - sum(found) / len(wanted)

    name = "sentences with a word unseen in training"
    yield heard.line(f"word error, {name}", "both", word_error, limit)
    yield heard.line("those words alone: not recognised", "both", missed_share, limit)


def examples(studio: Studio, takes: int) -> Iterator[Line]:
    """The page's examples, so many takes of each; those for Dia-1.6B left out."""
    scripts = [
        one["script"] for one in json.loads(EXAMPLES.read_text()) if "Dia-1.6B" not in one["label"]
    ]
    heard = listen(studio, scripts * takes)
    yield heard.line("word error, the page's examples", "both", word_error, 0.25, 0.12)
    right, count = heard.lengths_right, len(heard.scripts)
    name = "the page's examples end by themselves at the right length"
    yield Line(name, "both", count, right, "≥ 98%", right >= 0.98)


def stops(studio: Studio, count: int) -> Line:
    """Scripts of 1 to 40 words that end by themselves, as long as the teacher's."""
    scripts = heldout.lengths(count)
    takes, reference = studio.say(scripts), studio.teach(scripts)
    right = lengths_right(takes, reference)
    ratios = np.array([len(t.wave) / len(r) for t, r in zip(takes, reference, strict=True)])
    wrong = [s for s, t, x in zip(scripts, takes, ratios, strict=True) if not 0.8 <= x <= 1.25]
    notes = {"mean ratio": float(ratios.mean()), "ended": float(np.mean([t.ended for t in takes]))}
    return Line(
        "stops by itself at 0.8-1.25 of the teacher's length",
        "both",
        len(scripts),
        right,
        "≥ 98%",
        right >= 0.98,
        notes={**notes, "wrong": wrong[:8]},
    )
