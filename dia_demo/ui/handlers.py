"""What the Generate tab does when something is pressed: thin, between page and services."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import gradio as gr

from dia_demo import audio
from dia_demo.engine.events import AudioChunk, Cancelled, Failed, Finished, Progress, Result
from dia_demo.errors import DiaDemoError
from dia_demo.services.synthesis import Synthesis, Take
from dia_demo.ui import form, markup, present, xpu_panel
from dia_demo.ui.generate_tab import Parts, max_tokens_info
from dia_demo.ui.live import LiveAudio
from dia_demo.ui.sessions import Sessions

# A page redraws this often at most; the rest of the two cores belongs to the model.
SECONDS_BETWEEN_UPDATES = 0.2

Updates = dict[gr.components.Component, object]


class Handlers:
    """The events of one page, over one `Synthesis`."""

    def __init__(self, synthesis: Synthesis, parts: Parts, live: LiveAudio) -> None:
        self.synthesis = synthesis
        self.parts = parts
        self.live = live
        self.sessions = Sessions()

    # -- a run ---------------------------------------------------------------------------------

    def generate(self, request: gr.Request, *values) -> Iterator[Updates]:
        """One run from the page's fields: updates until it has ended, in whatever way.

        A page that goes away closes this generator, which stops the run.
        """
        parts = self.parts
        live = self.live.begin()
        status = present.PREPARING
        yield {
            parts.generate: gr.update(interactive=False),
            parts.stop: gr.update(interactive=True),
            parts.status: markup.status_card(status),
            parts.on_cpu: gr.update(visible=False),
            parts.live: live.state(),
        }
        # gradio copies what it is handed before it asks for the next update, so the files may go
        # with this block.
        with (
            self.sessions.run(request.session_hash) as cancel,
            self.scratch() as folder,
        ):
            try:
                yield from self._run(form.Form(*values), cancel, live, Path(folder))
            except Exception as error:
                yield {parts.status: markup.status_card(present.failed(present.explain(error)))}
            finally:
                live.done = True
        yield {
            parts.generate: gr.update(interactive=True),
            parts.stop: gr.update(interactive=False),
            parts.live: live.state(),
        }

    def _run(self, values, cancel, live, folder: Path) -> Iterator[Updates]:
        asked = values.to_request(self.synthesis.settings.runtime)
        status, shown_at = present.PREPARING, 0.0
        with closing(self.synthesis.stream(asked, cancel)) as events:
            for event in events:
                status = present.status_of(event, status)
                if isinstance(event, AudioChunk):
                    live.add(event.samples, event.sample_rate)
                if isinstance(event, AudioChunk | Progress):
                    if time.monotonic() - shown_at < SECONDS_BETWEEN_UPDATES:
                        continue
                    shown_at = time.monotonic()
                update = {
                    self.parts.status: markup.status_card(status),
                    self.parts.live: live.state(),
                }
                if isinstance(event, Finished | Cancelled) and has_audio(event.result):
                    update |= self._show(self.synthesis.take(asked, event.result), folder)
                if isinstance(event, Failed) and event.device != "cpu":
                    update |= self._offer_cpu(asked.params.seed)
                yield update

    def _offer_cpu(self, seed: int) -> Updates:
        """An accelerator failed: it is off now, and one press makes the same take on the CPU."""
        parts = self.parts
        return {
            parts.on_cpu: gr.update(visible=True),
            parts.fields["xpu"]: xpu_panel.after_failure(),
            parts.fields["seed"]: seed,
        }

    def _show(self, take: Take, folder: Path) -> Updates:
        """Everything about a take that is new on the page."""
        figures = take.figures
        name = f"dia-{Path(figures.model).name}-seed{figures.seed}"
        wav, flac = (take.save(folder / f"{name}{suffix}") for suffix in (".wav", ".flac"))
        picture = audio.spectrogram(take.samples, take.sample_rate, *markup.SPECTROGRAM_SIZE)
        seconds = len(take.samples) / take.sample_rate
        parts = self.parts
        return {
            # The 16-bit file itself: gradio would rescale an array of floats to full level.
            parts.take: str(wav),
            parts.wav: gr.update(value=str(wav), interactive=True),
            parts.flac: gr.update(value=str(flac), interactive=True),
            parts.keep_seed: gr.update(interactive=True),
            parts.take_seed: figures.seed,
            parts.figures: markup.figures_table(present.figure_rows(figures)),
            parts.spectrogram: markup.spectrogram_figure(picture, seconds),
        }

    def scratch(self) -> tempfile.TemporaryDirectory:
        """A folder for the files of one take, until gradio has its own copies."""
        home = self.synthesis.settings.takes_folder
        home.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(prefix="take-", dir=home)

    def stop(self, request: gr.Request) -> Updates:
        """Ask this page's run to stop; the run itself says what became of it."""
        self.sessions.stop(request.session_hash)
        return gr.update(interactive=False)

    def closed(self, request: gr.Request) -> None:
        """The page was closed or reloaded: nobody waits for its run any more."""
        self.sessions.stop(request.session_hash)

    # -- the form ------------------------------------------------------------------------------

    def check(self, script: str, model: str, max_tokens: int, transcript: str):
        """The remarks on a script, and what the max tokens mean in seconds."""
        try:
            info = self.synthesis.info(model)
            report = self.synthesis.check(script or "", model, int(max_tokens), transcript or "")
        except DiaDemoError as error:
            raise _shown(error) from error
        limit = info.config.encoder.max_positions
        hint = gr.update(info=max_tokens_info(info, max_tokens))
        return markup.script_report(report, limit), hint

    def repair(
        self, script: str, model: str, max_tokens: int, transcript: str, event: gr.EventData
    ):
        """The script after the repair that was pressed, if that finding still stands."""
        report = self.synthesis.check(script or "", model, int(max_tokens), transcript or "")
        finding = report.findings[event.index] if event.index < len(report.findings) else None
        if finding is None or finding.code != event.code or finding.repaired is None:
            return gr.skip()
        return finding.repaired

    def change_model(self, model: str):
        """A model brings its defaults: sliders in the order of `form.SAMPLING`, then its note."""
        try:
            info = self.synthesis.info(model)
        except DiaDemoError as error:
            raise _shown(error) from error
        defaults = form.defaults_of(info)
        sliders = [
            gr.update(minimum=low, maximum=high, value=defaults[name])
            for name, (low, high) in form.slider_ends(info).items()
        ]
        return [*sliders, markup.model_note(info)]

    def restore(self, saved):
        """What a reload brings back: fields in the order of `form.REMEMBERED`, then the note."""
        names = [info.name for info in self.synthesis.models()]
        info = self._info_or_none(saved.get("model")) if isinstance(saved, dict) else None
        if info is None:
            return [gr.skip()] * (len(form.REMEMBERED) + 1)
        ends = form.slider_ends(info)
        values = form.restored(saved, ends, names)
        updates = []
        for name in form.REMEMBERED:
            reach = (
                dict(zip(("minimum", "maximum"), ends[name], strict=True)) if name in ends else {}
            )
            given = {"value": values[name]} if name in values else {}
            updates.append(gr.update(**reach, **given))
        return [*updates, markup.model_note(info)]

    def _info_or_none(self, model):
        try:
            return self.synthesis.info(model)
        except DiaDemoError:
            return None


def has_audio(result: Result | None) -> bool:
    """Whether there is something to hear."""
    return result is not None and result.samples is not None and len(result.samples) > 0


def _shown(error: Exception) -> gr.Error:
    return gr.Error(present.explain(error), title="Not possible", print_exception=False)
