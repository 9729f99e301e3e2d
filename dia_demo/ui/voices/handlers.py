"""What the menus and the panel of voices do."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np

from dia_demo import audio
from dia_demo.engine.events import Failed, Finished
from dia_demo.errors import DiaDemoError, InputError, RunError
from dia_demo.prompt.voice_file import VoiceFile, checked_name
from dia_demo.services.dialogue.part_voice import is_joined, keep_part
from dia_demo.services.people import Allowance, is_key
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request, Take
from dia_demo.services.voices.choice import add_voices
from dia_demo.services.voices.keep import WHOLE, Part, keep_recording, keep_take
from dia_demo.services.voices.kept import KeptVoices
from dia_demo.ui.dialogue.answers import kept_dialogue, run_of
from dia_demo.ui.runs import Sessions, Updates, visitor_of
from dia_demo.ui.voices.layout import KeepPanel, VoiceMenus, choices_of

ADDRESS_VOICES = 100
SAMPLE = "[S1] Hello, this is how I sound."


class VoiceHandlers:
    """The events of the voices, over one `Synthesis`."""

    def __init__(self, synthesis: Synthesis, voices: VoiceMenus, panel: KeepPanel) -> None:
        self.synthesis, self.voices, self.panel = synthesis, voices, panel
        self.sessions = Sessions()
        self._allowance = Allowance(ADDRESS_VOICES, "voices")

    def refresh(self, key: object, model: str, one: object, two: object, kept: object) -> Updates:
        """The voices that the menus offer; a choice that is no longer offered is the seed's."""
        voices = self._kept_voices(key)
        choices = choices_of(
            self.synthesis.models[model], voices.list(), self.synthesis.speed.prompt_seconds
        )
        values = {value for _, value in choices}
        updates: Updates = {
            # Without a value where it stays: the page may be about to restore another one.
            menu: gr.update(choices=choices)
            if chosen in values
            else gr.update(choices=choices, value="")
            for menu, chosen in zip(self.voices.menus, (one, two), strict=True)
        }
        own = [voice.name for voice in voices.own_voices()] if is_key(key) else []
        chosen = kept if kept in own else next(iter(own), None)
        panel = self.panel
        for part in (panel.new_name, panel.rename, panel.export, panel.remove):
            updates[part] = gr.update(visible=True if own else "hidden")
        return updates | {panel.kept: gr.update(choices=own, value=chosen, visible=bool(own))}

    def hear(self, request: gr.Request, key: object, model: str, name: str):
        """A sentence in the voice, as the model speaks it now."""
        if not name:
            raise InputError("Choose a voice first: the seed chooses another one in every take.")
        settings = self.synthesis.settings
        info = self.synthesis.models[model]
        params = replace(info.config.defaults, seed=0)
        asked = Request(SAMPLE, params, info, settings.runtime)
        asked = add_voices(asked, [name], self._kept_voices(key))
        self.synthesis.downloads.check_here(info)
        with (
            self.sessions.run(request) as cancel,
            closing(self.synthesis.stream(asked, cancel)) as events,
        ):
            for event in events:
                if isinstance(event, Failed):
                    raise RunError(event.message)
                if isinstance(event, Finished):
                    take = self.synthesis.take(asked, event.result)
                    return _audio_element(take)
        return gr.skip()

    def sessions_closed(self, request: gr.Request) -> None:
        """A page was closed: what it wanted to hear is not made."""
        self.sessions.stop(request.session_hash)

    def keep_take(
        self,
        request: gr.Request,
        key: object,
        name: str,
        take: str | None,
        start: str,
        end: str,
        words: str,
    ) -> Updates:
        """Keep the voices of the take on show."""

        def make() -> VoiceFile:
            if not take:
                raise InputError("There is no take yet: press Generate first.")
            part, contents = _part(start, end), audio.read_metadata(Path(take)) or {}
            if is_joined(contents) and is_key(key):
                run = run_of(kept_dialogue(self.synthesis, key), self.synthesis)
                return keep_part(run, contents, name, part, words)
            return keep_take(contents, name, part, words)

        return self._keep(request, key, make)

    def keep_prompt(
        self,
        request: gr.Request,
        key: object,
        name: str,
        sound: str | None,
        transcript: str,
        model: str,
        consent: bool,
        start: str,
        end: str,
        words: str,
    ) -> Updates:
        """Keep the voice of the recording that is the voice prompt."""

        def make() -> VoiceFile:
            if not sound:
                raise InputError("Add a recording under Settings, Voice prompt, with its words.")
            part = _part(start, end)
            said = transcript if part == WHOLE else words
            info, agreed = self.synthesis.models[model], consent is True
            return keep_recording(
                Path(sound), checked_name(name), said, info, has_consent=agreed, part=part
            )

        return self._keep(request, key, make)

    def add_file(self, request: gr.Request, key: object, path: str) -> Updates:
        """Keep the voice of an uploaded voice file."""
        return self._keep(request, key, lambda: VoiceFile.read(Path(path)))

    def _keep(self, request: gr.Request, key: object, make: Callable[[], VoiceFile]) -> Updates:
        def work() -> str:
            with self._allowance.spend(visitor_of(request)):
                voice = self._own_voices(key).add(make())
            return f"{voice.name} is kept: choose it as the voice of S1 or S2."

        return self._run_and_report(work)

    def rename(self, key: object, kept: str, new: str) -> Updates:
        """Rename one of the person's voices."""

        def work() -> str:
            return f"{kept} is now {self._own_voices(key).rename(kept, new).name}."

        return self._run_and_report(work)

    def remove(self, key: object, kept: str) -> Updates:
        """Delete one of the person's voices."""

        def work() -> str:
            self._own_voices(key).remove(kept)
            return f"{kept} was removed."

        return self._run_and_report(work)

    def export(self, key: object, kept: str | None) -> dict:
        """The chosen voice's file for the page to download, in a folder whose name cannot be
        guessed."""
        if not kept:
            raise InputError("No voice is kept yet.")
        folder = self.synthesis.settings.served_folder / f"voice-{secrets.token_hex(20)}"
        folder.mkdir(parents=True)
        return {"file": str(self._own_voices(key).export_file(kept, folder))}

    def _run_and_report(self, work: Callable[[], str]) -> Updates:
        """The message of what was done, or of what is wrong; then the fields it was done with."""
        panel = self.panel
        try:
            text, name = work(), "done"
        except DiaDemoError as error:
            text, name = str(error), "failed"
        message = f'<p class="voice-{name}" role="status">{escape(text)}</p>'
        cleared: dict[Any, Any] = {}
        if name == "done":
            cleared = {panel.name: "", panel.new_name: "", panel.consent: False}
            cleared |= dict.fromkeys((panel.start, panel.end, panel.words), "")
        return {panel.message: message} | cleared

    def _kept_voices(self, key: object) -> KeptVoices:
        return KeptVoices.for_person(self.synthesis.settings, key)

    def _own_voices(self, key: object) -> KeptVoices:
        """The person's own folder. Raises InputError for a page without a key."""
        if not is_key(key):
            raise InputError("This browser stores no data for the page, so no voice can be kept.")
        return self._kept_voices(key)


def _audio_element(take: Take) -> str:
    """What plays a take at once, without controls. It differs each time: the page skips a value
    that it shows already."""
    source = audio.data_url(take.samples, take.sample_rate)
    return f'<audio id="sample-{secrets.token_hex(4)}" autoplay src="{source}"></audio>'


def _part(start: str, end: str) -> Part:
    """Seconds from two fields, None for a blank one. Raises InputError for anything else."""
    return _seconds(start), _seconds(end)


def _seconds(text: str) -> float | None:
    if not (text or "").strip():
        return None
    try:
        value = float(text.strip().replace(",", "."))
    except ValueError:
        value = np.nan
    if not 0 <= value < 3600:
        raise InputError(f"A time is a number of seconds, such as 2.5, not {text.strip()!r}.")
    return value
