"""A job of speech: plain values that can be sent to another process, and the request they mean.

Programs send single sentences without tags, which is the hardest case for Dia: a short text whose
end is open. A text of one speaker, with or without a tag, gets the closing tag that keeps its last
word whole, and a limit near its expected length.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from dia_demo.config import PARAMS
from dia_demo.engine.family import ModelInfo
from dia_demo.errors import InputError
from dia_demo.services.settings import Settings
from dia_demo.services.take import Request
from dia_demo.services.voices.choice import add_voices
from dia_demo.services.voices.kept import KeptVoices
from dia_demo.services.wording import LONGEST_FACTOR, LONGEST_MORE_SECONDS
from dia_demo.text.pronunciations import Pronunciations
from dia_demo.text.script import MAX_SCRIPT_CHARACTERS, parse_turns


@dataclass(frozen=True)
class SpeechJob:
    """Everything that speech depends on.

    text: a script with [S1] and [S2], or words of one speaker without tags. voices: of S1 and S2,
    by name; "" for one that the seed chooses. params: sampling parameters that differ from the
    model's defaults. precision: see `RuntimeConfig`; "" for that of the app. owner: the key of the
    person whose kept voices may be used beside the shared ones, "" for the shared ones alone.
    """

    text: str
    model: str
    seed: int
    voices: tuple[str, str] = ("", "")
    speed: float = 1.0
    params: Mapping[str, Any] = field(default_factory=dict)
    precision: str = ""
    normalise: bool = False
    pronunciations: str = ""
    owner: str = ""

    @property
    def key(self) -> str:
        """A hash of all of it: equal jobs have equal samples on machines with equal numerics."""
        values = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(values.encode("utf-8", "surrogatepass")).hexdigest()

    def request(self, info: ModelInfo, settings: Settings) -> Request:
        """The request that it means for its model.

        Raises InputError for a voice that does not exist, a parameter that does not, and a text
        that is too long.
        """
        if unknown := sorted(self.params.keys() - PARAMS.keys()):
            raise InputError(f"{unknown[0]!r} is not a parameter; there are {', '.join(PARAMS)}.")
        if (length := len(self.text)) > MAX_SCRIPT_CHARACTERS:
            raise InputError(
                f"The text has {length:,} characters; {MAX_SCRIPT_CHARACTERS:,} are allowed: split "
                "it into several requests."
            )
        params = replace(info.config.defaults, seed=self.seed, **self.params)
        runtime = settings.runtime
        if self.precision:
            runtime = replace(runtime, precision=self.precision)
        request = Request(
            script=self.text,
            params=params,
            model=info,
            runtime=replace(runtime, model=info.name),
            speed=self.speed,
            normalise=self.normalise,
            pronunciations=Pronunciations.parse(self.pronunciations),
        )
        turns = parse_turns(self.text)
        speakers = {turn.speaker or 1 for turn in turns}
        voices = self.voices
        if speakers == {2} and not voices[1]:  # The only voice is that of whoever speaks.
            voices = ("", voices[0])
        request = add_voices(request, voices, KeptVoices.for_person(settings, self.owner))
        if len(speakers) != 1:
            return request
        words = " ".join(turn.text for turn in turns)
        return one_speaker_request(request, words, speakers.pop(), "max_tokens" in self.params)


def one_speaker_request(
    request: Request, words: str, speaker: int, has_limit: bool = False
) -> Request:
    """The words of one speaker, with the closing tag and, unless the request has a limit of its
    own, one near their length."""
    info = request.model
    closing = f" [S{3 - speaker}]" if info.needs_last_tag else ""
    request = replace(request, script=f"[S{speaker}] {words}{closing}")
    if has_limit:
        return request
    seconds = info.expected_seconds(request.reading(request.script).text)
    codes = None if request.voice is None else request.voice.codes
    frames = round((LONGEST_FACTOR * seconds + LONGEST_MORE_SECONDS) * info.frames_per_second)
    frames += info.config.shortest_max_tokens + (0 if codes is None else len(codes))
    params = replace(request.params, max_tokens=min(request.params.max_tokens, frames))
    return replace(request, params=params)
