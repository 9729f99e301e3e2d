"""The runs of the Generate tab: thin functions between the page and the services.

What the form's own events do is in `form_handlers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import gradio as gr

from dia_demo.audio import suffix_of
from dia_demo.engine.events import (
    AudioChunk,
    Cancelled,
    Failed,
    Finished,
    Progress,
    SpokenWord,
    Started,
)
from dia_demo.errors import InputError
from dia_demo.services.dialogue.kept import KeptDialogue
from dia_demo.services.dialogue.plan import DialoguePlan, make_plan, needs_chunks
from dia_demo.services.dialogue.single_take import with_words, words_so_far
from dia_demo.services.earlier.formats import convert_take
from dia_demo.services.earlier.history import History
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request, finished_result
from dia_demo.services.voices.choice import add_voices
from dia_demo.services.voices.kept import KeptVoices
from dia_demo.ui import form, html
from dia_demo.ui.dialogue.answers import GONE, kept_dialogue
from dia_demo.ui.dialogue.layout import NO_PARTS
from dia_demo.ui.dialogue.maker import DialogueMaker
from dia_demo.ui.generate.candidate_list import NO_CANDIDATES
from dia_demo.ui.generate.layout import GenerateParts
from dia_demo.ui.generate.live_audio import LiveAudio, LiveRun
from dia_demo.ui.generate.take_files import TakeFiles, no_take, player_take, take_updates
from dia_demo.ui.machine import xpu
from dia_demo.ui.person_runs import ABANDONED, PersonRuns, WatchedRun, Work
from dia_demo.ui.runs import Sessions, Updates, UpdateTimes, event_value
from dia_demo.ui.status import PREPARING, explain, failed_status, status_of, with_remarks

ALREADY_RUNNING = (
    "Your other take is still being generated, and this page now shows it. Wait for it, or press "
    "Stop, then press Generate again."
)

EARLIER = "Earlier take"
HIDDEN = gr.update(visible=False)


class GenerateHandlers:
    """The runs of the Generate tab, over one `Synthesis`."""

    def __init__(
        self, synthesis: Synthesis, parts: GenerateParts, live: LiveAudio, history: History
    ) -> None:
        self.synthesis = synthesis
        self.parts = parts
        self.live = live
        self.files = TakeFiles(synthesis.settings.served_folder, history)
        buttons = [parts.generate, parts.make_candidates]
        self.run = PersonRuns(buttons, parts.stop, synthesis.run_in_background)
        # Programs that use the endpoint.
        self.calls = Sessions()

    def generate(self, request: gr.Request, key: str, *values) -> Iterator[Updates]:
        """Generate a take from the page's fields; key: the person who keeps it."""
        live = LiveRun(self.synthesis.notice.samples)

        def work(run: WatchedRun) -> Iterator[Updates]:
            with self.files.mark_unfinished(key):
                yield from self._run(form.Form.from_values(values), run, live)

        def error_update(error: Exception) -> Updates:
            return self.failed_updates(error) | self._without_take(live, key)

        first = no_take(self.parts) | {self.parts.player: live.state()}
        first |= {self.parts.dialogue: NO_PARTS, self.parts.candidates: NO_CANDIDATES}
        yield from self.begin_and_watch(request, key, live, first, work, error_update)

    def press_parts(self, request: gr.Request, event: gr.EventData, key: str) -> Iterator[Updates]:
        """A press in the list of parts: {do: resume}, or {do: again, index, words} for one part.

        While a part is made again, the take of before stays in the player.
        """
        kept = kept_dialogue(self.synthesis, key)
        plan = kept.plan
        if plan is None:
            raise InputError(GONE)
        live = LiveRun(self.synthesis.notice.samples)
        index, words = event_value(event, "index"), event_value(event, "words")
        words = words if isinstance(words, str) else None
        is_again = event_value(event, "do") == "again"
        if is_again and (type(index) is not int or not 0 <= index < len(plan.chunks)):
            raise InputError(GONE)

        def work(run: WatchedRun) -> Iterator[Updates]:
            made = kept.make_again(index, words) if is_again else plan
            yield from self._make_dialogue(kept, made, run, live, is_heard=not is_again)

        rows = kept.shown | {"key": key}

        def error_update(error: Exception) -> Updates:
            return self.failed_updates(error) | {self.parts.dialogue: rows}

        first = {self.parts.dialogue: rows | {"running": True}}
        yield from self.begin_and_watch(request, key, live, first, work, error_update)

    def begin_and_watch(
        self,
        request: gr.Request,
        key: str,
        live: LiveRun,
        first: Updates,
        work: Work,
        error_update: Callable[[Exception], Updates],
    ) -> Iterator[Updates]:
        """Start `work` in the background, unless the person has a run already, and watch it."""

        def make(run: WatchedRun) -> Iterator[Updates]:
            try:
                yield from work(run)
            finally:
                live.done = True

        first |= {self.parts.status: html.status_card(PREPARING), self.parts.on_cpu: HIDDEN}
        run, is_new = self.run.begin(request, key, first, make, error_update)
        if not is_new:
            gr.Info(ALREADY_RUNNING, duration=20, title="One take at a time")
        yield from self.run.watch(run)

    def failed_updates(self, error: Exception) -> Updates:
        """The status of a run that an error ended."""
        return {self.parts.status: html.status_card(failed_status(explain(error)))}

    def download(self, file: str | None, name: object) -> dict:
        """The take on show in the format with this name, for the page to download."""
        if file is None:
            raise InputError("There is no take to download. Generate one, or reload the page.")
        return {"file": str(convert_take(Path(file), suffix_of(name)))}

    def _ended_updates(self, live: LiveRun) -> Updates:
        """The live audio is complete, and there is nothing left to stop."""
        live.done = True
        return {
            self.parts.stop: gr.update(interactive=False),
            self.parts.player: live.state(),
        }

    def _without_take(self, live: LiveRun, key: object) -> Updates:
        """The end of a run without a take: the person's last one comes back, labelled as such."""
        shown = no_take(self.parts)
        earlier = self.files.latest(key)
        # What was heard of a failed run stays in the player.
        if earlier is not None and not live.has_sound:
            live.take = player_take(earlier, EARLIER)
            shown = take_updates(self.parts, earlier)
        return shown | self._ended_updates(live)

    def _run(self, values: form.Form, run: WatchedRun, live: LiveRun) -> Iterator[Updates]:
        self.files.check_space()
        request = self.request_of(values, run.key)
        self.synthesis.downloads.check_here(request.model)
        if values.in_parts is True and run.key is not None and needs_chunks(request):
            self.synthesis.check_length(request.script)
            plan, kept = make_plan(request), kept_dialogue(self.synthesis, run.key)
            yield from self._make_dialogue(kept, kept.begin(plan), run, live)
        else:
            yield from self._make_take(request, run, live)

    def _make_dialogue(
        self,
        kept: KeptDialogue,
        plan: DialoguePlan,
        run: WatchedRun,
        live: LiveRun,
        is_heard: bool = True,
    ) -> Iterator[Updates]:
        """Make what is missing. is_heard: from the beginning, while it is made; otherwise the take
        of before stays in the player until there is a new one."""
        parts, maker = self.parts, DialogueMaker(self.synthesis, kept, plan)
        live.sample_rate = plan.info.sample_rate
        self.live.admit(live)
        for shown in maker.updates(run.cancel):
            status, update = shown.status, Updates()
            if is_heard:
                if shown.sound is not None:
                    live.add(shown.sound.samples, shown.sound.sample_rate)
                if shown.progress is not None:
                    live.expect_whole(shown.progress.total_seconds, shown.progress.left)
                update = no_take(parts) | {parts.player: live.state()}
            if shown.figures is not None:
                live.done = True
                saved = self.files.save_dialogue(maker.dialogue, shown.figures, str(run.key))
                status = replace(status, notes=status.notes + saved.notes)
                live.take = player_take(saved)
                update = take_updates(parts, saved)
                update[parts.player] = live.state() if is_heard else {"take": live.take}
            if shown.is_over:
                live.done = True
                update[parts.stop] = gr.update(interactive=False)
                if run.abandoned:
                    status = replace(status, notes=(*status.notes, ABANDONED))
            yield update | {
                parts.on_cpu: HIDDEN,
                parts.status: html.status_card(status),
                parts.dialogue: shown.rows | {"key": run.key},
            }

    def _make_take(self, request: Request, run: WatchedRun, live: LiveRun) -> Iterator[Updates]:
        status, times = PREPARING, UpdateTimes()
        spoken: list[SpokenWord] = []
        with closing(self.synthesis.stream(request, run.cancel, in_int8_meanwhile=True)) as events:
            for event in events:
                status = status_of(event, status)
                # Also in every update: see `RunButtons.busy`.
                update: Updates = no_take(self.parts) | {self.parts.on_cpu: HIDDEN}
                if isinstance(event, Started):
                    live.start(event)
                    self.live.admit(live)
                if isinstance(event, AudioChunk):
                    # Shown with the progress that follows, which says when it can be played.
                    live.add(event.samples, event.sample_rate)
                    continue
                if isinstance(event, Progress):
                    live.expect(event)
                    spoken += event.words
                    if spoken:
                        said = words_so_far(request, spoken, event.audio_seconds)
                        live.tell(said, request.script)
                    if not times.is_due(event):
                        continue
                if isinstance(event, Failed) and event.device != "cpu":
                    update |= self._cpu_instead(request.params.seed)
                if result := finished_result(event):
                    live.done = True
                    yield {self.parts.player: live.state()}
                    take = with_words(self.synthesis.take(request, result), result)
                    status = with_remarks(status, take.remarks)
                    saved = self.files.save(take, run.key)
                    status = replace(status, notes=status.notes + saved.notes)
                    live.take = player_take(saved)
                    update = take_updates(self.parts, saved)
                elif isinstance(event, Finished | Cancelled | Failed):
                    update |= self._without_take(live, run.key)
                if isinstance(event, Cancelled) and run.abandoned:
                    status = replace(status, notes=(*status.notes, ABANDONED))
                update |= {
                    self.parts.status: html.status_card(status),
                    self.parts.player: live.state(),
                }
                if isinstance(event, Finished | Cancelled | Failed):
                    update |= self._ended_updates(live)
                yield update

    def request_of(self, values: form.Form, key: str | None = None) -> Request:
        """The request of a form with the voices that the person has kept; without a key, of those
        that everybody may use. Raises InputError for values that cannot be used."""
        settings = self.synthesis.settings
        request = values.to_request(self.synthesis.models[values.model], settings.runtime)
        return add_voices(request, values.voices, KeptVoices.for_person(settings, key))

    def _cpu_instead(self, seed: int) -> Updates:
        """After a failed accelerator: it is off, and one button generates the take on the CPU."""
        parts = self.parts
        return {
            parts.on_cpu: gr.update(visible=True),
            parts.fields["xpu"]: xpu.toggle_after_failure(),
            parts.xpu.report: xpu.outdated_notice(),
            parts.fields["seed"]: seed,
        }
