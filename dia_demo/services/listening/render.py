"""Generating a plan's takes and clips, as one stream with the progress of the whole plan.

Every take is stored as soon as it is finished, so that a stopped or interrupted plan can be
resumed. Takes with the same runtime are the rows of one run; one gets a place when another ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from time import perf_counter

from dia_demo import audio
from dia_demo.engine.events import Failed, Finished, Loading, Progress, Waiting
from dia_demo.engine.scheduler import PLACES
from dia_demo.engine.time_left import NOTHING, TimeLeft
from dia_demo.errors import InputError, RunError
from dia_demo.loudness import match_levels
from dia_demo.services.listening.clips import add_x, at_rate, facts_of, read_wave, write_clip
from dia_demo.services.listening.plan.plan import (
    ComparisonKind,
    ComparisonPlan,
    Secret,
    TakeSlot,
    TakeState,
    Trial,
)
from dia_demo.services.listening.plan.rebuild import UPLOADED_ONCE
from dia_demo.services.listening.plan_time import FACTOR, expected_audio, time_of
from dia_demo.services.listening.voice import VOICES, voice_of
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request, VoicePrompt
from dia_demo.services.voices.kept import KeptVoices

CLIPS, TAKES = "clips", "takes"
# The most takes of a run: a run with another model waits until all of them are done.
ROWS_TOGETHER = 2 * PLACES


@dataclass(frozen=True)
class RenderProgress:
    """Progress of the whole plan. phase: in words. fraction: of the expected audio, an estimate.

    realtime_factor is None until there is some audio, left until the speed is known.
    """

    phase: str
    pairs_made: int
    pairs: int
    takes_failed: int
    audio_seconds: float
    realtime_factor: float | None
    left: TimeLeft | None
    fraction: float


@dataclass(frozen=True)
class RenderEnded:
    """The end of the run: stopped, or all pairs tried. failures: the reason of each failed take."""

    stopped: bool
    pairs_made: int
    pairs: int
    audio_seconds: float
    wall_seconds: float
    failures: tuple[str, ...]


RenderEvent = RenderProgress | RenderEnded


class Renderer:
    """One run over a plan's folder. save: stores a changed plan. Call `stream` once."""

    def __init__(
        self,
        folder: Path,
        plan: ComparisonPlan,
        save: Callable[[ComparisonPlan], None],
        synthesis: Synthesis,
        cancel: threading.Event,
    ) -> None:
        self.folder, self.plan, self.save = folder, plan, save
        self.synthesis, self.cancel = synthesis, cancel
        self._voice, self._kept = voice_of(folder, plan), KeptVoices(folder / VOICES)
        self._made = self._under_way = 0.0
        # The time left of the running batch, and of those after it.
        self._left: TimeLeft | None = None
        self._rest: TimeLeft | None = NOTHING
        # Of the batches before it: the audio that was expected, and the time it took.
        self._expected = self._seconds_per_second = 0.0
        self._began = perf_counter()
        self._phase = "Getting ready"

    def stream(self) -> Iterator[RenderEvent]:
        """Generate what is missing, and retry failed takes; the last event is RenderEnded.

        Raises InputError if the model is not available or the queue is full; finished takes stay.
        """
        (self.folder / CLIPS).mkdir(exist_ok=True)
        (self.folder / TAKES).mkdir(exist_ok=True)
        self._finish_trials()
        self._fail_uploaded()
        for batch in self._batches():
            if self.cancel.is_set():
                break
            self._left, self._rest = None, self._time_after(batch)
            yield self._progress()
            yield from self._make(batch)
        trials = self.plan.trials
        yield RenderEnded(
            stopped=self.cancel.is_set() and not all(trial.made for trial in trials),
            pairs_made=sum(trial.made for trial in trials),
            pairs=len(trials),
            audio_seconds=self._made,
            wall_seconds=perf_counter() - self._began,
            failures=tuple(
                slot.message for slot in self.plan.slots if slot.state == TakeState.FAILED
            ),
        )

    # -- takes ---------------------------------------------------------------------------------

    def _batches(self) -> list[list[TakeSlot]]:
        """The missing takes by runtime, then in the order of scripts and seeds."""
        pending = [] if self.plan.is_uploaded else self._pending_takes()
        runtimes = [setting.runtime for setting in self.plan.settings]

        def runtime(slot: TakeSlot) -> int:
            return runtimes.index(runtimes[slot.setting])

        def order(slot: TakeSlot):
            return runtime(slot), slot.script, self.plan.seeds.index(slot.seed)

        batches = []
        for _, group in groupby(sorted(pending, key=order), key=runtime):
            slots = list(group)
            batches += [
                slots[at : at + ROWS_TOGETHER] for at in range(0, len(slots), ROWS_TOGETHER)
            ]
        return batches

    def _pending_takes(self) -> list[TakeSlot]:
        return [slot for slot in self.plan.slots if slot.state != TakeState.MADE]

    def _fail_uploaded(self) -> None:
        """Uploaded clips that are gone cannot be generated."""
        lost = self._pending_takes() if self.plan.is_uploaded else []
        if lost:
            changed = [
                replace(slot, state=TakeState.FAILED, message=slot.message or UPLOADED_ONCE)
                for slot in lost
            ]
            self._save(self.plan.with_slots(changed))

    def _make(self, slots: Sequence[TakeSlot]) -> Iterator[RenderProgress]:
        requests = [self._request(slot) for slot in slots]
        audio_of = dict.fromkeys(range(len(slots)), 0.0)
        stream = self.synthesis.stream_together(requests, self.cancel)
        with closing(stream) as events:
            for event in events:
                match event:
                    case Waiting(place=queued, left=left):
                        self._phase, self._left = f"Waiting, place {queued} in the queue", left
                    case Loading(left=left):
                        self._phase, self._left = event.text, left
                    case Progress(audio_seconds=seconds, row=row, left=left):
                        self._phase, self._left = "Generating", left
                        audio_of[row] = seconds
                    case Finished(result=result, row=row):
                        audio_of[row] = result.figures.audio_seconds
                        self._keep(slots[row], requests[row], result)
                        self._finish_trials()
                    case Failed(message=message, row=row):
                        self._fail(slots[row], message)
                    case _:
                        continue
                self._under_way = sum(audio_of.values())
                yield self._progress()
        self._made += self._under_way
        self._under_way = 0.0
        expected = sum(expected_audio(self.plan, slot, self.synthesis) for slot in slots)
        self._expected += expected
        self._seconds_per_second = (perf_counter() - self._began) / max(self._expected, 0.1)

    def _request(self, slot: TakeSlot) -> Request:
        setting = self.plan.settings[slot.setting]
        info, script = self.synthesis.models[setting.runtime.model], self.plan.scripts[slot.script]
        request = setting.request(info, script, slot.seed, self._voice, self._kept)
        # The number of threads is this machine's, wherever the plan comes from.
        threads = self.synthesis.settings.runtime.threads
        return replace(request, runtime=replace(request.runtime, threads=threads))

    def _keep(self, slot: TakeSlot, request: Request, result) -> None:
        try:
            take = self.synthesis.take(request, result)
            facts = facts_of(take)
            # The file's metadata must not name its side.
            audio.write_audio(self._take_path(slot), take.samples, take.sample_rate, {})
        except RunError as error:
            self._fail(slot, str(error))
            return
        plan = self.plan.with_slots([replace(slot, state=TakeState.MADE, message="")])
        self._save(replace(plan, facts=plan.facts | {slot.id: facts}))

    def _fail(self, slot: TakeSlot, message: str) -> None:
        self._save(self.plan.with_slots([replace(slot, state=TakeState.FAILED, message=message)]))

    def _save(self, plan: ComparisonPlan) -> None:
        self.save(plan)
        self.plan = plan

    def _take_path(self, slot: TakeSlot) -> Path:
        return self.folder / TAKES / self.plan.take_file(slot)

    # -- clips ---------------------------------------------------------------------------------

    def _finish_trials(self) -> None:
        """Complete every trial that has both takes, then delete takes that are no longer needed."""
        for trial in self.plan.trials:
            slots = self.plan.slots_of(trial)
            if trial.made or any(slot.state != TakeState.MADE for slot in slots):
                continue
            lost = [slot for slot in slots if not self._take_path(slot).is_file()]
            if lost:
                self._save(
                    self.plan.with_slots([replace(slot, state=TakeState.WAITING) for slot in lost])
                )
                continue
            self._finish(trial, slots)
        needed = {
            self.plan.take_file(slot)
            for trial in self.plan.trials
            if not trial.made
            for slot in self.plan.slots_of(trial)
        }
        for path in (self.folder / TAKES).glob(f"*{audio.STORED_SUFFIX}"):
            if path.name not in needed:
                path.unlink(missing_ok=True)

    def _finish(self, trial: Trial, slots: Sequence[TakeSlot]) -> None:
        secret = self.plan.secrets[trial.id]
        heard = slots[::-1] if secret.flip else slots
        sounds = [read_wave(self._take_path(slot)) for slot in heard]
        rate = max(each for _, each in sounds)
        try:
            matched = match_levels([at_rate(*sound, rate) for sound in sounds], rate)
        except RunError as error:
            self._fail(slots[0], str(error))
            return
        clips = list(matched.clips)
        if self.plan.kind == ComparisonKind.ABX:
            clips = add_x(clips, secret.x, rate)
        for name, clip in zip(trial.clips, clips, strict=True):
            write_clip(self.folder / CLIPS / name, clip, rate)
        secret = Secret(secret.flip, secret.x, matched.gains_db)
        self._save(self.plan.with_trial(replace(trial, made=True), secret))

    # -- progress ------------------------------------------------------------------------------

    def _progress(self) -> RenderProgress:
        plan, wall = self.plan, perf_counter() - self._began
        made = self._made + self._under_way
        left, rest = self._left, self._rest
        left = None if left is None or rest is None else left + rest
        passed = wall / (wall + left.middle) if left is not None and made else 0.0
        return RenderProgress(
            phase=self._phase,
            pairs_made=sum(trial.made for trial in plan.trials),
            pairs=len(plan.trials),
            takes_failed=len(plan.failed_takes()),
            audio_seconds=made,
            realtime_factor=made / wall if made else None,
            left=left,
            fraction=passed,
        )

    def _time_after(self, batch: Sequence[TakeSlot]) -> TimeLeft | None:
        """Of the batches after this one: by those before, or else by this machine's rates. Once a
        batch: it takes milliseconds, and there are updates after every step."""
        ids = {slot.id for slot in batch}
        later = [
            slot
            for slot in self.plan.slots
            if slot.state == TakeState.WAITING and slot.id not in ids
        ]
        if not later:
            return NOTHING
        if not self._made:
            return time_of(self.plan, later, self.synthesis)
        audio = sum(expected_audio(self.plan, slot, self.synthesis) for slot in later)
        return TimeLeft.from_estimate(audio * self._seconds_per_second, FACTOR)


def check_plan(
    plan: ComparisonPlan, synthesis: Synthesis, voice: VoicePrompt | None, kept: KeptVoices
) -> None:
    """Raise InputError if a take of the plan is impossible. kept: the voices that it may name."""
    for setting in plan.settings:
        if voice is not None and any(setting.voice_names):
            raise InputError("Compare with a voice prompt or with chosen voices, not with both.")
        info = synthesis.models[setting.runtime.model]
        for script in plan.scripts:
            synthesis.validate(setting.request(info, script, plan.seeds[0], voice, kept))
