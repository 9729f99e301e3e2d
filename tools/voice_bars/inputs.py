"""Voice prompts and scripts as people bring them: damaged recordings, and sentences in capitals.

A take of the embedded voice, whose words are known, is written as a recording without metadata.
Every kind of damage makes another file of it, which goes the way of a file of the page and the
command line: read as a voice prompt, or refused with the reason.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import soundfile
import soxr

from dia_demo.errors import InputError
from dia_demo.services.measurements.words import distance
from dia_demo.services.measurements.words import words as words_of
from dia_demo.services.take import Request, VoicePrompt
from tools.voice_bars import scripts
from tools.voice_bars.bar import Bar, Line, Trial
from tools.voice_bars.hearing import hear_pieces
from tools.voice_bars.studio import Studio

# Each of the 24 voices, and eight again, whose prompts have a sentence more.
PROMPTS = 32
# Of a prompt, about 5 to 10 s, and of a take.
SENTENCES = (2, 3)
# A trial for each of the 24 voices, of so many sentences in both spellings.
CAPITALS, IN_CAPITALS = 24, 10
SPELLINGS = {"capitals": str.upper, "small": str.lower}
# By how much the word error may rise.
WORSE_PROMPT, WORSE_CAPITALS = 0.05, 0.02
# A difference of quotients is not exact.
_EXACT = 1e-9
OFFSET = 0.2  # of full scale; the loudest take leaves 0.3
CLEAN = "clean"
_SHORTENED = 70  # characters
# Channels [n] or [n, channels] in -1..1, and their rate in Hz.
Recording = tuple[np.ndarray, int]


def _alone(wave: np.ndarray, rate: int) -> Recording:
    return wave, rate


def _with_silence(before: float, after: float, wave: np.ndarray, rate: int) -> Recording:
    """before, after: seconds."""
    return np.pad(wave, (round(before * rate), round(after * rate))), rate


def _with_gain(db: float, wave: np.ndarray, rate: int) -> Recording:
    return 10 ** (db / 20) * wave, rate


def _with_offset(wave: np.ndarray, rate: int) -> Recording:
    return wave + OFFSET, rate


def _in_channels(left: float, right: float, wave: np.ndarray, rate: int) -> Recording:
    """left, right: what each channel is multiplied by."""
    return np.stack([left * wave, right * wave], axis=1), rate


def _at_rate(rate: int, wave: np.ndarray, own_rate: int) -> Recording:
    return soxr.resample(wave, own_rate, rate), rate


def without_sizes(data: bytes) -> bytes:
    """A WAV file as a program writes it that cannot seek, with 0 for both sizes in its header."""
    at = data.index(b"data") + 4
    return data[:4] + bytes(4) + data[8:at] + bytes(4) + data[at + 4 :]


@dataclass(frozen=True)
class Kind:
    """A kind of damage. record: of a wave [n] in -1..1 and its rate in Hz. edit: of the file that
    was written. reason: a pattern of what a refusal says if it says the reason."""

    record: Callable[[np.ndarray, int], Recording] = _alone
    reason: str = r"$^"
    edit: Callable[[bytes], bytes] = bytes

    def write(self, path: Path, wave: np.ndarray, rate: int) -> None:
        """Write the recording as a WAV file of 16 bits."""
        channels, rate = self.record(wave, rate)
        soundfile.write(path, channels, rate, subtype="PCM_16")
        path.write_bytes(self.edit(path.read_bytes()))


def _silence(before: float, after: float) -> Kind:
    return Kind(partial(_with_silence, before, after), "silence|s long")


KINDS = {
    CLEAN: Kind(),
    "1.5 s of silence before": _silence(1.5, 0),
    "1.5 s of silence after": _silence(0, 1.5),
    "1.5 s of silence before and after": _silence(1.5, 1.5),
    "3 s of silence before": _silence(3, 0),
    "3 s of silence after": _silence(0, 3),
    "3 s of silence before and after": _silence(3, 3),
    "-6 dB": Kind(partial(_with_gain, -6), "silent|quiet"),
    "-24 dB": Kind(partial(_with_gain, -24), "silent|quiet"),
    "-36 dB": Kind(partial(_with_gain, -36), "silent|quiet"),
    "constant offset": Kind(_with_offset, "offset"),
    "left channel silent": Kind(partial(_in_channels, 0, 1), "channel"),
    "right channel silent": Kind(partial(_in_channels, 1, 0), "channel"),
    # The louder one is chosen, so the model hears the inverted wave.
    "right channel inverted and louder": Kind(partial(_in_channels, 0.5, -1), "channel|inverted"),
    "right channel inverted, nothing left when mixed": Kind(
        partial(_in_channels, 1, -1), "channel|inverted"
    ),
    "8 kHz": Kind(partial(_at_rate, 8000), "rate"),
    "22.05 kHz": Kind(partial(_at_rate, 22050), "rate"),
    "44.1 kHz": Kind(partial(_at_rate, 44100), "rate"),
    "96 kHz": Kind(partial(_at_rate, 96000), "rate"),
    "sizes 0 in the header": Kind(reason="header|size|damaged", edit=without_sizes),
}


def _voices(studio: Studio) -> list[str]:
    table = studio.request("[S1] Yes.", seed=0).model.config.voices
    assert table is not None, "only a model with voices by name can have one of them twice"
    return [voice.name for voice in table.voices]


def _prompts_trial(studio: Studio, number: int) -> Trial:
    """The words heard wrongly of one take after each kind of prompt, in the same voice."""
    voices = _voices(studio)
    voice = voices[number % len(voices)]
    sentences = [line for turn in scripts.turns(700 + number, 4) for line in turn]
    before = SENTENCES[number // len(voices) % len(SENTENCES)]
    after = SENTENCES[number % len(SENTENCES)]
    transcript = "[S1] " + " ".join(sentences[:before])
    script = "[S1] " + " ".join(sentences[before : before + after])
    original = studio.request(transcript, seed=number, voices=(voice, None))
    (spoken,) = studio.sounds([original])
    with tempfile.TemporaryDirectory(dir=studio.work) as folder:
        requests = {}
        for index, (name, kind) in enumerate(KINDS.items()):
            path = Path(folder) / f"{index}.wav"
            kind.write(path, spoken, original.model.sample_rate)
            prompt = VoicePrompt.from_file(path, transcript)
            requests[name] = studio.request(script, seed=1000 + number, voice=prompt)
        refused = {name: why for name, each in requests.items() if (why := refusal(studio, each))}
        taken = {name: each for name, each in requests.items() if name not in refused}
        sounds = studio.sounds(list(taken.values()))
    said = words_of(script)
    heard: dict[bytes, str] = {}  # Kinds that differ in nothing after they were read.
    wrong = {}
    for name, sound in zip(taken, sounds, strict=True):
        key = sound.tobytes()
        if key not in heard:
            heard[key] = hear_pieces(sound, original.model.sample_rate)
        wrong[name] = distance(said, words_of(heard[key]))
    seconds = round(len(spoken) / original.model.sample_rate, 2)
    return {
        "voice": voice, "seconds": seconds, "words": len(said), "wrong": wrong, "refused": refused,
    }  # fmt: skip


def refusal(studio: Studio, request: Request) -> str:
    """Why a request is refused before its take begins, in words for the person; "" if it is not."""
    try:
        studio.synthesis.validate(request)
    except InputError as error:
        return str(error)
    return ""


def _lines_of_prompts(trials: Sequence[Trial]) -> list[Line]:
    shortest, longest = (each(trial["seconds"] for trial in trials) for each in (min, max))
    whole = [trial for trial in trials if CLEAN in trial["wrong"]]
    error = f"{_word_error(whole, CLEAN):.1%}" if whole else "none made"
    voices = len({trial["voice"] for trial in trials})
    result = f"word error {error} ({voices} voices, prompts of {shortest:.1f} to {longest:.1f} s)"
    clean = Line("voice prompt, clean", "all made", len(trials), result, len(whole) == len(trials))
    return [clean] + [_line_of_kind(name, trials) for name in KINDS if name != CLEAN]


def _line_of_kind(name: str, trials: Sequence[Trial]) -> Line:
    """The word error after prompts of a kind against that after the same clean ones."""
    taken = [trial for trial in trials if {name, CLEAN} <= trial["wrong"].keys()]
    refusals = [trial["refused"][name] for trial in trials if name in trial["refused"]]
    reasons = [re.search(KINDS[name].reason, why) is not None for why in refusals]
    is_met, result = all(reasons), ""
    if taken:
        damaged, clean = (_word_error(taken, each) for each in (name, CLEAN))
        is_met = is_met and damaged - clean <= WORSE_PROMPT + _EXACT
        result = f"{100 * (damaged - clean):+.1f} points ({damaged:.1%} against {clean:.1%}); "
    result += f"{len(refusals)} refused"
    if refusals:
        unclear = [why for why, says in zip(refusals, reasons, strict=True) if not says]
        shown = re.sub(r"^The voice prompt \S+ ", "", (unclear or refusals)[0])[:_SHORTENED]
        result += f", {len(unclear)} without the reason: “{shown}…”"
    return Line(f"voice prompt, {name}", "≤ clean + 5 points", len(trials), result, is_met)


def _word_error(trials: Sequence[Trial], name: str) -> float:
    wrong = sum(trial["wrong"][name] for trial in trials)
    return wrong / sum(trial["words"] for trial in trials)


def _capitals_trial(studio: Studio, number: int) -> Trial:
    """The words heard wrongly of the same sentences in capitals and in small letters."""
    voices = _voices(studio)
    voice = voices[number % len(voices)]
    count = 2 if studio.is_quick else IN_CAPITALS
    lines = [line for turn in scripts.turns(800 + number, IN_CAPITALS) for line in turn][:count]
    made: Trial = {"voice": voice, "takes": count, "words": len(words_of(" ".join(lines)))}
    for name, spell in SPELLINGS.items():
        requests = [
            studio.request(f"[S1] {spell(line)}", seed=100 * number + k, voices=(voice, None))
            for k, line in enumerate(lines)
        ]
        made[name] = 0
        for line, request, sound in zip(lines, requests, studio.sounds(requests), strict=True):
            heard = hear_pieces(sound, request.model.sample_rate)
            made[name] += distance(words_of(line), words_of(heard))
    return made


def _lines_of_capitals(trials: Sequence[Trial]) -> list[Line]:
    words = sum(trial["words"] for trial in trials)
    capitals, small = (sum(trial[name] for trial in trials) / words for name in SPELLINGS)
    return [
        Line(
            f"sentences in capitals: word error against small letters ({words:,} words)",
            "≤ +2 points", sum(trial["takes"] for trial in trials),
            f"{100 * (capitals - small):+.1f} points ({capitals:.1%} against {small:.1%})",
            capitals - small <= WORSE_CAPITALS + _EXACT,
        )
    ]  # fmt: skip


BARS = (
    Bar("prompts", PROMPTS, 1, _prompts_trial, _lines_of_prompts, modules=("pocketsphinx",)),
    Bar("capitals", CAPITALS, 1, _capitals_trial, _lines_of_capitals, modules=("pocketsphinx",)),
)
