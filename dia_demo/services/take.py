"""A take: its request and its result."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from dia_demo import audio
from dia_demo.config import SEED_LIMIT, GenerationParams, RuntimeConfig
from dia_demo.engine.engine import Engine
from dia_demo.engine.events import Cancelled, Event, Figures, FinishReason, Result
from dia_demo.engine.family import ModelInfo
from dia_demo.errors import InputError, RunError
from dia_demo.model.cpu_model import torch_threads
from dia_demo.prompt.codes import pack_codes
from dia_demo.prompt.prompt import Prompt, read_prompt
from dia_demo.prompt.speech import is_silent
from dia_demo.services.wording import length_remark
from dia_demo.text.formats.check import note_on
from dia_demo.text.normaliser import Reading
from dia_demo.text.pronunciations import NONE, Pronunciations
from dia_demo.text.script import from_bytes, to_bytes
from dia_demo.voices import NO_NAMES, VoiceNames

NO_TRANSCRIPT = (
    "The voice prompt has no transcript, so the script is used as it is: the take may repeat or "
    "drop words. Enter the words spoken in the prompt."
)


@dataclass(frozen=True)
class VoicePrompt:
    """A voice to continue: an audio file, or its codes [frames, channels], and its transcript.

    has_own_words: the transcript was not given, but is in the file, which is a take. codec: the
    identity of the one that the codes belong to (`Codec.identity`), where it is known.
    """

    audio: Path | None = None
    codes: np.ndarray | None = None
    transcript: str = ""
    has_own_words: bool = False
    codec: str = ""

    @classmethod
    def of_file(cls, audio: Path, transcript: str) -> VoicePrompt:
        """A file with its words; without any, those that a take's own file contains."""
        given = transcript.strip()
        found = "" if given else words_in(audio)
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
    by the model's own names."""

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

    def reading(self, text: str) -> Reading:
        """How the model reads the script, or the words of the voice prompt."""
        return self.model.reading(text, self.normalise, self.pronunciations)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know of how the model reads the script, one sentence each."""
        is_read = self.model.profile.normalises or self.normalise
        note, remarks = note_on(self.script, is_read=is_read), self.reading(self.script).remarks
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

    def check_voices(self) -> None:
        """Raise InputError if the model has no voices by name, or none of a chosen name."""
        table = self.model.config.voices
        for name in filter(None, self.voices):
            if table is None:
                raise InputError(
                    f"{self.model.title} has no voices by name, such as {name!r}: its voices come "
                    "from the seed, or from a kept voice."
                )
            table.named(name)

    def prompt_codes(self, engine: Engine, longest: float) -> tuple[np.ndarray, tuple[str, ...]]:
        """The voice prompt's codes, int [frames, channels], and notes on how it was read. longest:
        see `VoicePrompt.read`. Raises InputError if it cannot be used."""
        voice = self.voice
        assert voice is not None
        notes = () if voice.transcript else (NO_TRANSCRIPT,)
        if voice.has_own_words:
            notes = (f"The voice prompt's file contains its words: “{voice.transcript}”.",)
        if voice.codes is not None:
            if voice.codec and voice.codec != engine.codec.identity:
                raise InputError(
                    "This voice was kept from a model with another codec, so its codes would be "
                    "noise here. Choose the model it came from, or keep the voice again."
                )
            return voice.codes, notes
        prompt = voice.read(self.model, self.params.max_tokens, longest)
        with torch_threads(engine.placement.threads):
            return engine.codec.encode(prompt.samples), prompt.notes + notes

    def metadata(self, seed: int) -> dict:
        """What a take's file says about its request. seed: that was used."""
        transcript = self.voice.transcript if self.voice else None
        beside = self.speed, self.normalise, self.pronunciations, transcript, self.voices
        return request_metadata(self.script, replace(self.params, seed=seed), *beside)

    def transcript_bytes(self) -> int:
        """How many of those bytes precede the script: the transcript of the voice prompt."""
        return len(self.encode()) - len(to_bytes(self.reading(self.script).text))


@dataclass(frozen=True)
class Take:
    """A finished or stopped take: samples float32 [n] at sample_rate in Hz, codes [frames,
    channels] of which there are frames_per_second, and the request that it was generated from.
    notes: how its script was read. voices: see `Result.voices`."""

    samples: np.ndarray
    sample_rate: int
    codes: np.ndarray
    figures: Figures
    request: Request
    health: audio.Health
    notes: tuple[str, ...] = ()
    voices: tuple[str | None, str | None] | None = None
    frames_per_second: float | None = None

    @property
    def remarks(self) -> tuple[str, ...]:
        """Problems with the audio or its length, one sentence each."""
        remark = length_remark(self.figures)
        return self.health.problems() + (() if remark is None else (remark,))

    def report(self) -> dict:
        """The figures, the voices and the remarks, for programs."""
        remarks = [*self.remarks, *self.notes]
        return asdict(self.figures) | {"voices": self.voices, "remarks": remarks}

    def metadata(self) -> dict:
        """The metadata of the audio file: enough to generate the take again."""
        return self.request.metadata(self.figures.seed) | {
            "voices": self.voices,
            "figures": asdict(self.figures),
            "frames_per_second": self.frames_per_second,
            "codes": pack_codes(self.codes),
        }

    def save(self, path: Path | str) -> Path:
        """Write a file with settings, seed and model inside. Its suffix is one of audio.FORMATS."""
        return audio.write_audio(path, self.samples, self.sample_rate, self.metadata())


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


def sound_of(request: Request, result: Result) -> np.ndarray:
    """The samples of a result. Raises RunError if it contains no audio or only silence."""
    if result.samples is None or not len(result.samples):
        raise RunError(
            "The model ended before it generated any audio. Try another seed, or a longer script."
        )
    if is_silent(result.samples, result.figures.sample_rate):
        advice = "Try another seed, or a longer script."
        if request.voice is not None:
            advice = "Write down exactly what the voice prompt says, or try another seed."
        raise RunError(f"The take contains no speech, only silence. {advice}")
    return result.samples


def without_silence(event: Event) -> Event:
    """The event, without its result if the take was stopped before anything could be heard."""
    if not isinstance(event, Cancelled) or event.result is None or event.result.samples is None:
        return event
    rate = event.result.figures.sample_rate
    return replace(event, result=None) if is_silent(event.result.samples, rate) else event


def words_in(path: Path) -> str:
    """What a take's file says; nothing for another file and for a take that was cut off."""
    metadata = audio.read_metadata(path) or {}
    script, figures = metadata.get("script"), metadata.get("figures")
    ended = isinstance(figures, dict) and figures.get("finish_reason") == FinishReason.END
    return script.strip() if isinstance(script, str) and ended else ""


def random_seed() -> int:
    """A seed where none was given."""
    return secrets.randbelow(SEED_LIMIT + 1)
