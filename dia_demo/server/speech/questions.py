"""From the body of a request to the job that it asks for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from dia_demo.config import random_seed
from dia_demo.errors import InputError
from dia_demo.server.speech.answers import Question
from dia_demo.server.speech.bodies import (
    BatchItem,
    DialogueBody,
    SpeechBody,
    TakeBody,
    TurnBody,
    Voice,
)
from dia_demo.services.speech.catalogue import OPENAI_VOICES, Catalogue, seed_of
from dia_demo.services.speech.job import SpeechJob
from dia_demo.services.speech.speaker import Speaker
from dia_demo.text.script import TAG


@dataclass(frozen=True)
class Asker:
    """Who asks. owner: see `SpeechJob`. name: by which requests are told apart from those of
    others. repeat_key: of a request that is repeated, if the client sends one."""

    name: str
    owner: str = ""
    repeat_key: str = ""


class Questions:
    """Makes questions of bodies."""

    def __init__(self, speaker: Speaker, catalogue: Catalogue) -> None:
        self._speaker, self.catalogue = speaker, catalogue

    def of_speech(self, body: SpeechBody | BatchItem, asker: Asker) -> Question:
        """Raises InputError for what cannot be made."""
        voices = body.voice if isinstance(body.voice, list) else [body.voice]
        return self._question(body, body.input, voices or [None], asker)

    def of_dialogue(self, body: DialogueBody, asker: Asker) -> Question:
        """Raises InputError for what cannot be made."""
        voices, script = script_of(body.turns, body.pause_between_turns)
        return self._question(body, script, voices, asker)

    def of_preview(self, body: SpeechBody, asker: Asker) -> Question:
        """The same in the embedded voice, without what is meant for another model."""
        embedded = next((info for info in self.catalogue.models.values() if info.is_embedded), None)
        if embedded is None:
            raise InputError("This server has no embedded voice for a preview: leave it out.")
        plain = body.model_copy(
            update={
                "model": embedded.name, "voice": None, "precision": "", "temperature": None,
                "cfg_scale": None, "top_p": None, "top_k": None, "max_tokens": None,
            }
        )  # fmt: skip
        return self.of_speech(plain, asker)

    def can_continue(self, question: Question) -> bool:
        """Whether what it asks for may begin before its text is complete."""
        return self._speaker.can_continue(question.job.model)

    def _question(
        self, body: TakeBody, text: str, voices: Sequence[Voice | None], asker: Asker
    ) -> Question:
        if not TAG.sub("", text).strip():
            raise InputError("The text is empty: write what should be said.")
        if len(voices) > 2:
            raise InputError(f"A script has two speakers, so at most 2 voices, not {len(voices)}.")
        info = self.catalogue.find_model(body.model)
        names = [voice if isinstance(voice, str | None) else voice.id for voice in voices]
        found = [self.catalogue.find_voice(name or "", info, asker.owner) for name in names]
        first, second = [*found, "", ""][:2]
        seed = body.seed
        if seed is None and names[0] and not first and names[0].casefold() in OPENAI_VOICES:
            seed = seed_of(names[0])
        job = SpeechJob(
            text=text,
            model=info.name,
            seed=random_seed() if seed is None else seed,
            voices=(first, second),
            speed=body.speed,
            params=body.params,
            precision=body.precision,
            normalise=body.normalise,
            pronunciations=body.pronunciations,
            owner=asker.owner,
        )
        is_random = seed is None
        key = _key(asker, job, body.response_format, is_random)
        return Question(job, body.response_format, key, not is_random, self._speaker.promise(job))


def script_of(turns: Sequence[TurnBody], pause: float | None) -> tuple[list[Voice | None], str]:
    """The voices of S1 and S2, in the order in which they come, and the turns as a script.

    Raises InputError for more than two voices, and for a text with tags.
    """
    voices: list[Voice | None] = []
    parts = []
    for turn in turns:
        if TAG.search(turn.text):
            raise InputError(
                "A turn's text must not contain [S1] or [S2]: its voice says who speaks."
            )
        if turn.voice not in voices:
            voices.append(turn.voice)
        parts.append(f"[S{voices.index(turn.voice) + 1}] {turn.text.strip()}")
    if len(voices) > 2:
        raise InputError(
            f"The turns have {len(voices)} different voices; a dialogue has at most 2 speakers."
        )
    return voices, (" " if pause is None else f" (pause {pause:g}) ").join(parts)


def _key(asker: Asker, job: SpeechJob, form: str, is_random: bool) -> str:
    """The same for a repeated request, whose seed may be random."""
    text = job.key if not is_random else SpeechJob(**{**vars(job), "seed": 0}).key
    values = json.dumps([asker.name, asker.repeat_key, text, form, is_random])
    return hashlib.sha256(values.encode()).hexdigest()
