"""A take: its request and its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from dia_demo import audio
from dia_demo.config import GenerationParams, RuntimeConfig
from dia_demo.disclosure.notice import about_notice
from dia_demo.engine.events import (
    Cancelled,
    Event,
    Figures,
    Finished,
    FinishReason,
    Result,
    SpokenWord,
)
from dia_demo.engine.family import ModelInfo
from dia_demo.engine.rows.text_queue import TextQueue
from dia_demo.errors import InputError, RunError
from dia_demo.prompt.codes import pack_codes
from dia_demo.prompt.prompt import Prompt, read_prompt
from dia_demo.prompt.speech import is_silent
from dia_demo.services.wording import OTHER_CODEC, length_remark
from dia_demo.text.checks.script_check import ScriptReport
from dia_demo.text.formats.check import recognition_note
from dia_demo.text.normaliser import Reading
from dia_demo.text.pronunciations import NONE, Pronunciations
from dia_demo.text.script import from_bytes, to_bytes
from dia_demo.voices import NO_NAMES, VoiceNames

NO_KEPT = "", ""


@dataclass(frozen=True)
class VoicePrompt:
    """A voice to continue: an audio file, or its codes [frames, channels], and its transcript.

    has_own_words: the transcript was not given, but is in the file, which is a take. codec: the
    identity of the one that the codes belong to (`Codec.identity`), where it is known. kept: of the
    kept voices of S1 and S2 that it consists of, their `VoiceFile.identity`, "" for none. words:
    those of the codes with their times, where they are known, or estimated of a recording.
    """

    audio: Path | None = None
    codes: np.ndarray | None = None
    transcript: str = ""
    has_own_words: bool = False
    codec: str = ""
    kept: tuple[str, str] = NO_KEPT
    words: tuple[SpokenWord, ...] = ()
    are_words_estimated: bool = False

    @classmethod
    def from_file(cls, audio: Path, transcript: str) -> VoicePrompt:
        """A file with its words; without any, those that a take's own file contains."""
        given = transcript.strip()
        found = "" if given else read_words(audio)
        return cls(audio=audio, transcript=given or found, has_own_words=bool(found))

    def read(self, info: ModelInfo, max_tokens: int, longest: float) -> Prompt:
        """The audio as a model gets it; at least one frame of `max_tokens` is left for the take.

        longest: seconds that are allowed in any case. Raises InputError if it cannot be used.
        """
        assert self.audio is not None, "a prompt is audio or codes"
        room = info.seconds_of(max_tokens) - 1 / info.frames_per_second
        return read_prompt(self.audio, info.sample_rate, min(longest, max(0.0, room)))


@dataclass(frozen=True)
class Request:
    """Everything that a take depends on. runtime: how its model runs here. speed: changes the tempo
    of the finished take, not its pitch. with_audio: False gives codes only and loads no codec.
    normalise: write out numbers, abbreviations and signs for the model, which is always done for
    the nano voice. pronunciations: words and how the person wants them said. voices: of S1 and S2,
    by the model's own names. more_text: what follows the script, as the model reads it; see
    `Family.can_continue_text`."""

    script: str
    params: GenerationParams
    model: ModelInfo
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)
    voice: VoicePrompt | None = None
    speed: float = 1.0
    with_audio: bool = True
    normalise: bool = False
    pronunciations: Pronunciations = NONE
    voices: VoiceNames = NO_NAMES
    more_text: TextQueue | None = None

    def reading(self, text: str) -> Reading:
        """How the model reads the script, or the words of the voice prompt."""
        return self.model.reading(text, self.normalise, self.pronunciations)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know of how the model reads the script, one sentence each."""
        is_read = self.model.profile.normalises or self.normalise
        note, remarks = (
            recognition_note(self.script, is_read=is_read),
            self.reading(self.script).remarks,
        )
        return remarks if note is None else (note, *remarks)

    def encode(self) -> bytes:
        """The bytes that the model reads. Raises InputError if there are too many."""
        transcript = self.voice.transcript if self.voice else ""
        script, said = (self.reading(text).text for text in (self.script, transcript))
        text = self.model.family.encode(script, said)
        limit = self.model.config.encoder.max_positions
        if len(text) > limit:
            ending = " ".join(from_bytes(text[:limit])[-30:].split())
            raise InputError(
                f"The script has {len(text):,} bytes and the model reads {limit:,}: it would be "
                f"cut after “…{ending}”. Shorten it, or split it into several takes."
            )
        return text

    def check_script(self, in_parts: bool = False) -> ScriptReport:
        """What the page shows below the script. in_parts: see `ModelInfo.reading`."""
        return self.model.check(
            self.script,
            self.params.max_tokens,
            self.voice.transcript if self.voice else "",
            self.normalise,
            self.pronunciations,
            in_parts,
        )

    def check_voices(self) -> None:
        """Raise InputError if the model has no voices by name, or none of a chosen name, or if the
        codes of a kept voice cannot be its codec's."""
        voice, channels = self.voice, self.model.config.decoder.num_channels
        if voice and voice.codec and voice.codes is not None and voice.codes.shape[1] != channels:
            raise InputError(OTHER_CODEC)
        table = self.model.config.voices
        for name in filter(None, self.voices):
            if table is None:
                raise InputError(
                    f"{self.model.title} has no voices by name, such as {name!r}: its voices come "
                    "from the seed, or from a kept voice."
                )
            table.find(name)

    def metadata(self, seed: int) -> dict:
        """What a take's file says about its request. seed: that was used."""
        transcript = self.voice.transcript if self.voice else None
        beside = self.speed, self.normalise, self.pronunciations, transcript, self.voices
        kept = self.voice.kept if self.voice else NO_KEPT
        return {"kept_voices": kept} | request_metadata(
            self.script, replace(self.params, seed=seed), *beside
        )

    def transcript_bytes(self) -> int:
        """How many of those bytes precede the script: the transcript of the voice prompt."""
        return len(self.encode()) - len(to_bytes(self.reading(self.script).text))


@dataclass(frozen=True)
class TimedWord:
    """A word as the script has it, when it is said, and in which turn, counted from 0. Where the
    words of a model cannot be followed, one of these is all that its speaker says in a chunk."""

    word: str
    start: float
    end: float
    speaker: str
    turn: int

    def shift(self, seconds: float) -> TimedWord:
        """The same, so much later."""
        start, end = round(self.start + seconds, 3), round(self.end + seconds, 3)
        return TimedWord(self.word, start, end, self.speaker, self.turn)


@dataclass(frozen=True)
class Take:
    """A finished or stopped take: samples float32 [n] at sample_rate in Hz, codes [frames,
    channels] of which there are frames_per_second, and the request that it was generated from.
    notes: how its script was read. voices: see `Result.voices`. words: those of the script with
    their times, where somebody looked for them (services/dialogue/single_take.py).
    voice_remark: what to know of the voices that it should have. spoken: see `Result.words`.
    notice: float32 [n], with which
    its file begins; the times of words are those of the file."""

    samples: np.ndarray
    sample_rate: int
    codes: np.ndarray
    figures: Figures
    request: Request
    health: audio.Health
    notes: tuple[str, ...] = ()
    voices: tuple[str | None, str | None] | None = None
    frames_per_second: float | None = None
    words: tuple[TimedWord, ...] = ()
    voice_remark: str | None = None
    notice: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))
    spoken: tuple[SpokenWord, ...] | None = None

    @property
    def in_file(self) -> np.ndarray:
        """The samples of its file, float32 [n]: the take after the notice, if there is one."""
        return np.concatenate([self.notice, self.samples])

    @property
    def notice_seconds(self) -> float:
        """How long the notice is."""
        return len(self.notice) / self.sample_rate

    @property
    def remarks(self) -> tuple[str, ...]:
        """Problems with the audio or its length, one sentence each."""
        others = length_remark(self.figures), self.voice_remark
        return self.health.problems() + tuple(filter(None, others))

    def report(self) -> dict:
        """The figures, the voices, the remarks and the words, for programs."""
        remarks, words = [*self.remarks, *self.notes], [asdict(word) for word in self.words]
        return asdict(self.figures) | {"voices": self.voices, "remarks": remarks, "words": words}

    def metadata(self) -> dict:
        """The metadata of the audio file: enough to generate the take again."""
        return self.request.metadata(self.figures.seed) | {
            "voices": self.voices,
            "figures": asdict(self.figures),
            "frames_per_second": self.frames_per_second,
            "words": [asdict(word) for word in self.words],
            "codes": pack_codes(self.codes),
            **self._spoken_in_file,
            **about_notice(self.notice_seconds),
        }

    @property
    def _spoken_in_file(self) -> dict:
        """The words with the times in seconds of the codes, for those who keep its voice."""
        if self.spoken is None:
            return {}
        speed = self.request.speed
        spoken = [(word.word, round(word.seconds * speed, 4), word.speaker) for word in self.spoken]
        return {"spoken_words": spoken}

    def save(self, path: Path | str) -> Path:
        """Write a file with settings, seed and model inside. Its suffix is one of audio.FORMATS."""
        return audio.write_audio(path, self.in_file, self.sample_rate, self.metadata())


def request_metadata(
    script: str,
    params: GenerationParams,
    speed: float,
    normalise: bool,
    pronunciations: Pronunciations,
    transcript: str | None,
    voices: tuple[str | None, str | None] = (None, None),
) -> dict:
    """What a take's file says about its request. transcript: of a voice prompt."""
    return {
        "script": script,
        "settings": asdict(params),
        "speed": speed,
        "normalise": normalise,
        "pronunciations": pronunciations.text,
        "voice_transcript": transcript,
        "chosen_voices": voices,
    }


def check_together(requests: Sequence[Request]) -> None:
    """Raise InputError unless the requests can be the rows of one run."""
    if len({(each.model.name, each.runtime, each.with_audio) for each in requests}) > 1:
        raise InputError(
            "Takes generated together must have the same model, precision, device and threads."
        )


def sound_of(request: Request, result: Result) -> np.ndarray:
    """The samples of a result. Raises RunError if it contains no audio or only silence."""
    if result.samples is None or not len(result.samples):
        raise RunError(
            "The model ended before it generated any audio. Try another seed, or a longer script."
        )
    if is_silent(result.samples, result.figures.sample_rate):
        advice = "Try another seed, or a longer script."
        if request.voice is not None:
            advice = "Enter exactly the words spoken in the voice prompt, or try another seed."
        raise RunError(f"The take contains no speech, only silence. {advice}")
    return result.samples


def finished_result(event: Event) -> Result | None:
    """The result in a last event; None for other events and for a stop before any audio."""
    match event:
        case Finished(result=result):
            return result
        case Cancelled(result=Result(samples=samples) as result) if samples is not None:
            return result if len(samples) else None
    return None


def drop_silent_result(event: Event) -> Event:
    """The event, without its result if the take was stopped before anything could be heard."""
    if not isinstance(event, Cancelled) or event.result is None or event.result.samples is None:
        return event
    rate = event.result.figures.sample_rate
    return replace(event, result=None) if is_silent(event.result.samples, rate) else event


def read_words(path: Path) -> str:
    """What a take's file says; nothing for another file and for a take that was cut off."""
    metadata = audio.read_metadata(path) or {}
    script, figures = metadata.get("script"), metadata.get("figures")
    ended = isinstance(figures, dict) and figures.get("finish_reason") == FinishReason.END
    return script.strip() if isinstance(script, str) and ended else ""
