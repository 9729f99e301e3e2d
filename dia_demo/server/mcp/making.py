"""Makes what a tool is asked for: from its arguments to a file and its figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.requests import Request as HttpRequest

from dia_demo.audio import suffix_of
from dia_demo.config import random_seed
from dia_demo.errors import InputError
from dia_demo.server.mcp.files import ToolFiles
from dia_demo.server.mcp.results import Spoken
from dia_demo.server.tokens import access_of
from dia_demo.services.dialogue.output import write_dialogue
from dia_demo.services.dialogue.plan import make_plan, needs_chunks
from dia_demo.services.dialogue.subtitles import FORMATS as SUBTITLES
from dia_demo.services.dialogue.subtitles import write_subtitles
from dia_demo.services.earlier.labels import file_stem
from dia_demo.services.people import Caller, key_of_token
from dia_demo.services.programs.dialogue import make_dialogue
from dia_demo.services.programs.takes import Note, make_take
from dia_demo.services.scratch import work_folder
from dia_demo.services.speech.catalogue import Catalogue
from dia_demo.services.speech.job import SpeechJob
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request, TimedWord
from dia_demo.text.script import has_words


@dataclass(frozen=True)
class SpeechCall:
    """The arguments of a tool. voices: of S1 and S2. format: by its name. in_parts: in any case,
    not only where the text is too long for one take."""

    text: str
    voices: tuple[str, str]
    model: str
    speed: float
    seed: int | None
    format: str
    subtitles: bool = False
    in_parts: bool = False


class SpeechMaker:
    """Makes the speech of calls over one `Synthesis`. files: where it leaves them."""

    def __init__(self, synthesis: Synthesis, files: ToolFiles) -> None:
        self._synthesis, self._files = synthesis, files
        self._catalogue = Catalogue(synthesis.settings)

    def make(
        self, call: SpeechCall, http_request: HttpRequest, caller: Caller, note: Note
    ) -> Spoken:
        """Raises InputError for what cannot be made, RunError if it fails or is stopped."""
        suffix = suffix_of(call.format)
        request = self._request(call, owner_of(http_request))
        if call.in_parts or needs_chunks(request):
            path, report, words = self._make_parts(request, suffix, caller, note)
        else:
            path, report, words = self._make_take(request, suffix, caller, note)
        shown = None
        if call.subtitles:
            shown = write_subtitles(path.with_suffix(SUBTITLES[0]), words)
        speakers = {word.speaker for word in words}
        voices = enumerate(report["voices"] or (None, None), start=1)
        return Spoken(
            url=self._files.url_of(path, http_request),
            subtitles_url=None if shown is None else self._files.url_of(shown, http_request),
            seconds=round(report["audio_seconds"], 3),
            took_seconds=round(report["wall_seconds"], 3),
            seed=report["seed"],
            model=report["model"],
            voices=[voice for number, voice in voices if f"S{number}" in speakers],
            parts=len(report.get("chunks", [None])),
            remarks=report["remarks"],
        )

    def _request(self, call: SpeechCall, owner: str) -> Request:
        if not has_words(call.text):
            raise InputError("There are no words to say: write some, in letters or digits.")
        self._synthesis.check_length(call.text)
        catalogue = self._catalogue
        info = catalogue.find_model(call.model) if call.model else catalogue.models.first
        first, second = (catalogue.find_voice(name, info, owner) for name in call.voices)
        seed = random_seed() if call.seed is None else call.seed
        job = SpeechJob(call.text, info.name, seed, (first, second), call.speed, owner=owner)
        return job.request(info, self._synthesis.settings)

    def _make_take(
        self, request: Request, suffix: str, caller: Caller, note: Note
    ) -> tuple[Path, dict[str, Any], Sequence[TimedWord]]:
        made = make_take(self._synthesis, request, caller, note)
        stem = file_stem(request.script, vars(made.take.figures))
        path = made.take.save(self._files.new_folder() / f"{stem}{suffix}")
        return path, made.report(), made.take.words

    def _make_parts(
        self, request: Request, suffix: str, caller: Caller, note: Note
    ) -> tuple[Path, dict[str, Any], Sequence[TimedWord]]:
        plan, parent = make_plan(request), self._synthesis.settings.takes_folder
        with work_folder(parent, "parts-") as folder:
            made = make_dialogue(self._synthesis, plan, folder, caller, note)
            stem = file_stem(request.script, vars(made.figures))
            path = self._files.new_folder() / f"{stem}{suffix}"
            write_dialogue(path, made.run, made.figures)
            return path, made.report(), made.words


def owner_of(request: HttpRequest) -> str:
    """The key of whoever sends a request, "" without a token."""
    token = access_of(request).token_of(request)
    return key_of_token(token) if token else ""
