"""The runs of the Generate tab: thin functions between the page and the services.

What the form's own events do is in `form_handlers`.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import gradio as gr

from dia_demo import audio
from dia_demo.engine.events import (
    AudioChunk,
    Cancelled,
    Event,
    Failed,
    Finished,
    Progress,
    Result,
    Started,
)
from dia_demo.errors import RunError
from dia_demo.services.history import MadeTakes
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Take
from dia_demo.ui import html, xpu
from dia_demo.ui.generate import form
from dia_demo.ui.generate.layout import GenerateParts
from dia_demo.ui.generate.live_audio import LiveAudio, LiveRun
from dia_demo.ui.runs import SECONDS_BETWEEN_UPDATES, LongRun, Updates
from dia_demo.ui.status import PREPARING, explain, failed, figure_rows, status_of, with_remarks

# The longest take at half speed, as WAV and FLAC, and gradio's copies of both. gradio does not
# explain a full disk.
TAKE_BYTES = 30_000_000


class GenerateHandlers:
    """The runs of the Generate tab, over one `Synthesis`."""

    def __init__(self, synthesis: Synthesis, parts: GenerateParts, live: LiveAudio) -> None:
        self.synthesis = synthesis
        self.parts = parts
        self.live = live
        self.made = MadeTakes()
        self.run = LongRun([parts.generate], parts.stop)

    def generate(self, request: gr.Request, *values) -> Iterator[Updates]:
        """Generate a take from the page's fields."""
        parts, live = self.parts, LiveRun()

        def work(cancel: threading.Event) -> Iterator[Updates]:
            try:
                with self.scratch() as folder:
                    yield from self._run(form.Form.of(values), cancel, live, folder)
            finally:
                live.done = True

        def error_update(error: Exception) -> Updates:
            status = html.status_card(failed(explain(error)))
            return {parts.status: status} | self._ended(live)

        first = {
            parts.status: html.status_card(PREPARING),
            parts.on_cpu: gr.update(visible=False),
            parts.live: live.state(),
        }
        yield from self.run.updates(request, first, work, error_update)

    def _ended(self, live: LiveRun) -> Updates:
        """The live audio is complete, and there is nothing left to stop."""
        live.done = True
        return {
            self.parts.stop: gr.update(interactive=False),
            self.parts.live: live.state(),
        }

    def _run(
        self, values: form.Form, cancel: threading.Event, live: LiveRun, folder: Path
    ) -> Iterator[Updates]:
        asked = values.to_request(self.synthesis.settings.runtime)
        status, shown_at = PREPARING, 0.0
        with closing(self.synthesis.stream(asked, cancel)) as events:
            for event in events:
                status, update = status_of(event, status), {}
                if isinstance(event, Started):
                    live.start(event)
                    self.live.admit(live)
                if isinstance(event, AudioChunk):
                    # Shown with the progress that follows, which says when it can be played.
                    live.add(event.samples, event.sample_rate)
                    continue
                if isinstance(event, Progress):
                    live.expect(event)
                    if time.monotonic() - shown_at < SECONDS_BETWEEN_UPDATES:
                        continue
                    shown_at = time.monotonic()
                if isinstance(event, Failed) and event.device != "cpu":
                    update = self._cpu_instead(asked.params.seed)
                if result := finished_result(event):
                    live.done = True
                    yield {self.parts.live: live.state()}
                    take = self.synthesis.take(asked, result)
                    status = with_remarks(status, take.health)
                    update = self._show(take, folder)
                update |= {
                    self.parts.status: html.status_card(status),
                    self.parts.live: live.state(),
                }
                if isinstance(event, Finished | Cancelled | Failed):
                    update |= self._ended(live)
                yield update

    def _cpu_instead(self, seed: int) -> Updates:
        """After a failed accelerator: it is off, and one button generates the take on the CPU."""
        parts = self.parts
        return {
            parts.on_cpu: gr.update(visible=True),
            parts.fields["xpu"]: xpu.after_failure(),
            parts.xpu.report: xpu.outdated(),
            parts.fields["seed"]: seed,
        }

    def _show(self, take: Take, folder: Path) -> Updates:
        """Everything on the page that shows a take."""
        figures = take.figures
        name = f"dia-{Path(figures.model).name}-seed{figures.seed}"
        wav, flac = (take.save(folder / f"{name}{suffix}") for suffix in (".wav", ".flac"))
        self.made.add(wav)
        picture = audio.spectrogram(take.samples, take.sample_rate, *html.SPECTROGRAM_SIZE)
        seconds = len(take.samples) / take.sample_rate
        parts = self.parts
        return {
            # The 16-bit file: gradio would scale an array of floats to full level.
            parts.take: str(wav),
            parts.wav: gr.update(value=str(wav), interactive=True),
            parts.flac: gr.update(value=str(flac), interactive=True),
            parts.keep_seed: gr.update(interactive=True),
            parts.take_seed: figures.seed,
            parts.figures: html.figures_table(figure_rows(figures)),
            parts.spectrogram: html.spectrogram_figure(picture, seconds),
        }

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for the files of one take. Raises RunError if it cannot be created.

        It is removed with the block: gradio copies a yielded file before it continues.
        """
        home = self.synthesis.settings.served_folder
        try:
            home.mkdir(parents=True, exist_ok=True)
            free = shutil.disk_usage(home).free
            if free < TAKE_BYTES:
                raise OSError(
                    f"{free / 1e6:.0f} MB are free, but a take needs {TAKE_BYTES / 1e6:.0f} MB"
                )
            folder = tempfile.TemporaryDirectory(prefix="take-", dir=home)
        except OSError as error:
            reason = error.strerror or error
            raise RunError(
                f"The folder for takes is not writable: {reason}. Free some space, or start the "
                "app with another folder in DIA_TAKES."
            ) from error
        with folder as path:
            yield Path(path)


def finished_result(event: Event) -> Result | None:
    """The result in a last event; None for other events and for a stop before any audio."""
    match event:
        case Finished(result=result):
            return result
        case Cancelled(result=Result(samples=samples) as result) if samples is not None:
            return result if len(samples) else None
    return None
