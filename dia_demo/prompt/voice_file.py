"""Voice files: a kept voice as the codes of a take or of a recording, with the exact words.

One safetensors file, `NAME.dia-voice.safetensors`, of a few kilobytes: the tensor `codes`, int16
[frames, channels], and metadata. The codes are never decoded and encoded again.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from dia_demo.errors import InputError, RunError
from dia_demo.files import write_atomic
from dia_demo.text.script import TAG, parse_turns
from dia_demo.untrusted import read_regular

SUFFIX = ".dia-voice.safetensors"
FORMAT = "1"
LONGEST_NAME = 60
LONGEST_TRANSCRIPT = 2000
_LONGEST_NOTE = 500
# A minute of Dia's codes is a tenth of it.
MOST_BYTES = 10**6
_MOST_CHANNELS = 64
TAKE, RECORDING = "take", "recording"
# What `word_times` says if those of a recording are from an aligner.
ALIGNED = "aligned"


# A word, when it begins in seconds, and its speaker, 1 or 2.
WordTime = tuple[str, float, int]


@dataclass(frozen=True)
class VoiceFile:
    """A kept voice. codes: int16 [frames, channels]. transcript: their exact words, with tags.

    codec: `Codec.identity` of the codec that made the codes. sample_rate: of its audio, in Hz; fps:
    its frames per second. model, seed, settings: of the take that it came from, None and empty for
    a recording. source: TAKE or RECORDING. consent: what the person who kept a recording said about
    the consent of the person heard. created: in UTC. licence: a note of the person's own. words:
    of a take whose model knows when they begin, or of a recording, aligned or estimated.
    """

    name: str
    codes: np.ndarray
    transcript: str
    codec: str
    sample_rate: int
    fps: float
    model: str
    source: str = TAKE
    seed: int | None = None
    settings: dict = field(default_factory=dict)
    created: str = ""
    consent: str = ""
    licence: str = ""
    words: tuple[WordTime, ...] = ()
    is_aligned: bool = False

    @property
    def are_words_estimated(self) -> bool:
        """Whether the times of its words are not known."""
        return self.source == RECORDING and not self.is_aligned

    @property
    def speakers(self) -> tuple[int, ...]:
        """Who speaks in it, 1, 2 or both; words before any tag are those of speaker 1."""
        return tuple(sorted({turn.speaker or 1 for turn in parse_turns(self.transcript)}))

    @property
    def seconds(self) -> float:
        """Its length. All of it is read before a take, which takes time on a CPU."""
        return len(self.codes) / self.fps

    @property
    def identity(self) -> str:
        """A hash of what is heard and said in it, which stays when it is renamed."""
        digest = hashlib.sha256(self.codes.astype("<i2").tobytes())
        digest.update(f"{self.codes.shape} {self.codec} {self.transcript}".encode())
        return digest.hexdigest()[:16]

    def extract_speaker(self, speaker: int) -> VoiceFile:
        """The same voice as that of `speaker`. Raises InputError for a dialogue of two."""
        if len(self.speakers) > 1:
            raise InputError(
                f"{self.name} has the voices of two speakers, so it is for both. To use one of "
                "them alone, keep a part of the take in which only that speaker is heard."
            )
        words = TAG.sub("", self.transcript).strip()
        times = tuple((word, seconds, speaker) for word, seconds, _ in self.words)
        return replace(self, transcript=f"[S{speaker}] {words}", words=times)

    def write(self, path: Path) -> Path:
        """Write the file, completely or not at all. Raises RunError if that fails."""
        from safetensors.numpy import save

        metadata = {
            "format": FORMAT,
            "name": self.name,
            "transcript": self.transcript,
            "speakers": " ".join(map(str, self.speakers)),
            "codec": self.codec,
            "sample_rate": str(self.sample_rate),
            "frames_per_second": repr(self.fps),
            "model": self.model,
            "source": self.source,
            "seed": "" if self.seed is None else str(self.seed),
            "settings": json.dumps(self.settings),
            "created": self.created or datetime.now(UTC).isoformat(timespec="seconds"),
            "consent": self.consent,
            "licence": self.licence,
        }
        if self.words:
            metadata["words"] = json.dumps(self.words)
        if self.is_aligned:
            metadata["word_times"] = ALIGNED
        data = save({"codes": np.ascontiguousarray(self.codes, np.int16)}, metadata)
        try:
            with write_atomic(path, sync=True) as part:
                part.write_bytes(data)
        except OSError as error:
            reason = error.strerror or error
            raise RunError(
                f"The voice {self.name} could not be saved: {reason}. Free some space, or choose "
                "another folder."
            ) from error
        return path

    @classmethod
    def read(cls, path: Path) -> VoiceFile:
        """Read a voice file from anywhere. Raises InputError that says what is wrong with it."""
        try:
            data = read_regular(path)
        except FileNotFoundError:
            raise InputError(f"There is no voice file {path}.") from None
        except OSError as error:
            raise InputError(f"{path.name} cannot be read: {error.strerror}.") from error
        return _parse(data, path.name)


def checked_name(name: object) -> str:
    """A voice's name on one line. Raises InputError if it is empty, too long, or like a path."""
    words = "".join(letter for letter in " ".join(str(name).split()) if letter.isprintable())
    if not words:
        raise InputError("Give the voice a name, such as Anna.")
    if len(words) > LONGEST_NAME:
        raise InputError(
            f"A voice's name may have at most {LONGEST_NAME} characters, not {len(words)}."
        )
    if set(words) & set("/\\=,") or words.startswith(("-", ".")):
        raise InputError(f"A voice's name may not contain / \\ = or a comma, as in {words!r}.")
    return words


def _parse(data: bytes, source: str) -> VoiceFile:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    if len(data) > MOST_BYTES:
        raise InputError(f"{source} is {len(data) / 1e6:.1f} MB, and a voice file is at most 1 MB.")
    not_a_voice = f"{source} is not a voice file of this program (their names end in {SUFFIX})"
    try:
        tensors = load(data)
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        metadata = header.get("__metadata__", {})
    except (SafetensorError, ValueError, KeyError, RecursionError) as error:
        raise InputError(f"{not_a_voice}, or it is damaged.") from error
    if list(tensors) != ["codes"] or "transcript" not in metadata:
        raise InputError(f"{not_a_voice}.")
    if metadata.get("format") != FORMAT:
        raise InputError(
            f"{source} was written by a newer version of this program. Update the program."
        )
    try:
        return _voice(tensors["codes"], metadata)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(f"{source} is a damaged voice file: {error}.") from error


def _voice(codes: np.ndarray, metadata: dict[str, str]) -> VoiceFile:
    """Raises ValueError or KeyError for what no voice file contains."""
    if codes.dtype != np.int16 or codes.ndim != 2 or not codes.size:
        raise ValueError(f"its codes are {codes.dtype} {list(codes.shape)}")
    if codes.shape[1] > _MOST_CHANNELS or codes.min() < 0:
        raise ValueError("its codes are out of range")
    transcript, seed = metadata["transcript"], metadata["seed"]
    rate, fps = int(metadata["sample_rate"]), float(metadata["frames_per_second"])
    settings = json.loads(metadata["settings"])
    if not isinstance(settings, dict):
        raise ValueError("its settings are not an object")
    if not parse_turns(transcript) or len(transcript) > LONGEST_TRANSCRIPT:
        raise ValueError(f"its transcript must have 1 to {LONGEST_TRANSCRIPT} characters")
    if not (1000 <= rate <= 400_000 and 1 <= fps <= 1000):
        raise ValueError("its rates are out of range")
    notes = {name: metadata[name] for name in ("created", "consent", "licence", "codec", "model")}
    if any(len(note) > _LONGEST_NOTE for note in notes.values()):
        raise ValueError("one of its notes is too long")
    if metadata["source"] not in (TAKE, RECORDING):
        raise ValueError("its source is neither a take nor a recording")
    return VoiceFile(
        name=checked_name(metadata["name"]),
        codes=codes,
        transcript=transcript,
        sample_rate=rate,
        fps=fps,
        source=metadata["source"],
        seed=int(seed) if seed else None,
        settings=settings,
        is_aligned=metadata.get("word_times") == ALIGNED,
        words=parse_word_times(json.loads(metadata.get("words", "[]")), len(codes) / fps),
        **notes,
    )


def parse_word_times(raw: object, seconds: float) -> tuple[WordTime, ...]:
    """Words with their times from a file's metadata, of a sound so long. Raises ValueError."""
    if not isinstance(raw, list):
        raise ValueError("its words are not a list")
    words: list[WordTime] = []
    for item in raw:
        word, start, speaker = item
        is_time = isinstance(start, int | float) and 0 <= start <= seconds
        is_late = bool(words) and start < words[-1][1] if is_time else True
        if not isinstance(word, str) or is_late or speaker not in (1, 2):
            raise ValueError("the times of its words are damaged")
        words.append((word[:_LONGEST_NOTE], float(start), int(speaker)))
    return tuple(words)
