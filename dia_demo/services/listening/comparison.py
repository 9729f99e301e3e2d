"""One comparison: its folder, its blind trials, its votes, its result. Its plan is in `plan`.

A folder contains plan.json, clips/ and votes.csv. `store` has the owners.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dia_demo.errors import InputError, RunError
from dia_demo.services.listening import plan_file
from dia_demo.services.listening.archive import checked_folder
from dia_demo.services.listening.clips import read_wave, wave_seconds
from dia_demo.services.listening.plan import (
    NAMES,
    ComparisonKind,
    ComparisonPlan,
    TakeSlot,
    Trial,
)
from dia_demo.services.listening.render import (
    CLIPS,
    TAKES,
    Renderer,
    RenderEvent,
    check_plan,
)
from dia_demo.services.listening.result import ComparisonResult, evaluate, interim_result
from dia_demo.services.listening.voice import keep_voice
from dia_demo.services.listening.votes import Vote, append_vote, make_vote, read_votes
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import VoicePrompt

# The seconds of each clip that must be heard before a vote, and the margin at a clip's end.
HEARD_SECONDS, HEARD_MARGIN = 10.0, 0.1
# The folders of the listeners of a shared comparison, and the file of one who ended the test.
LISTENERS, REVEALED = "listeners", "revealed"
MAX_LISTENERS = 1000
_CLIP_LETTERS = "ABX"


@dataclass(frozen=True)
class Revealed:
    """A trial after the test: the settings of A and B, and the measurements of both takes."""

    trial: Trial
    order: int
    heard: tuple[str, str]
    facts: tuple[dict, dict]
    gains_db: tuple[float, ...]
    vote: Vote | None
    x: str | None


class Comparison:
    """A comparison in its folder. Safe to use from several threads.

    listener: the folder of one of several listeners, with their own votes and reveal.
    """

    def __init__(self, folder: Path, plan: ComparisonPlan, listener: Path | None = None) -> None:
        self.folder = folder
        self.listener = listener
        revealed = plan.revealed or (listener is not None and (listener / REVEALED).exists())
        self.plan = replace(plan, revealed=revealed)
        self._votes = read_votes(self._votes_folder, plan)
        self._lock = threading.RLock()
        self._on_show: str | None = None
        self._running = threading.Lock()

    @classmethod
    def create(
        cls,
        folder: Path,
        plan: ComparisonPlan,
        synthesis: Synthesis,
        voice: VoicePrompt | None = None,
    ) -> Comparison:
        """Store a new plan in `folder`, with its voice prompt.

        Raises InputError if the folder is in use, or a take of the plan is impossible.
        """
        check_plan(plan, synthesis, voice)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()):
                raise InputError(f"{folder} is not empty: choose a new folder.")
            plan = keep_voice(folder, plan, voice)
        except OSError as error:
            reason = error.strerror or error
            raise InputError(f"{folder} cannot be used: {reason}. Choose another.") from error
        plan_file.write_plan(folder, plan)
        return cls(folder, plan)

    @classmethod
    def open(cls, folder: Path) -> Comparison:
        """An existing comparison. Raises InputError if the folder has none, or a damaged one."""
        return cls(folder, checked_folder(folder))

    def heard_by(self, name: str) -> Comparison:
        """The same pairs for one of several listeners, with their own votes and reveal."""
        heard = Comparison(self.folder, self.plan, self.folder / LISTENERS / name)
        heard._running = self._running
        return heard

    def follow(self, plan: ComparisonPlan) -> None:
        """Update a listener's plan with the pairs that were generated since."""
        with self._lock:
            self.plan = replace(plan, revealed=plan.revealed or self.plan.revealed)

    def listeners(self) -> list[Comparison]:
        """All listeners (see `heard_by`) who have voted or ended their test."""
        home = self.folder / LISTENERS
        names = sorted(os.listdir(home)) if home.is_dir() else []
        return [self.heard_by(name) for name in names if (home / name).is_dir()]

    @property
    def _votes_folder(self) -> Path:
        return self.folder if self.listener is None else self.listener

    def _make_listener(self) -> None:
        """Create a listener's folder at the first vote. Raises InputError if there are too many."""
        if self.listener is None or self.listener.is_dir():
            return
        try:
            self.listener.parent.mkdir(exist_ok=True)
            if len(os.listdir(self.listener.parent)) >= MAX_LISTENERS:
                raise InputError(f"{MAX_LISTENERS:,} people have voted here, which is the maximum.")
            self.listener.mkdir(exist_ok=True)
        except OSError as error:
            reason = error.strerror or error
            raise RunError(f"Your votes cannot be saved: {reason}. Free some space.") from error

    # -- making --------------------------------------------------------------------------------

    def run(
        self, synthesis: Synthesis, cancel: threading.Event
    ) -> Generator[RenderEvent, None, None]:
        """Generate what is missing (see Renderer.stream). One run at a time."""
        if not self._running.acquire(blocking=False):
            raise InputError("This comparison is already being generated. Wait for it, or stop it.")
        try:
            plan = replace(self.plan, sound_removed=False)
            yield from Renderer(self.folder, plan, self._save, synthesis, cancel).stream()
        finally:
            self._running.release()

    @property
    def running(self) -> bool:
        return self._running.locked()

    def failed(self) -> tuple[TakeSlot, ...]:
        """The failed takes; `run` retries them."""
        return self.plan.failed()

    def remove_sound(self, and_voice: bool = False) -> bool:
        """Delete clips and takes, but keep plan and votes: `run` generates the same audio again,
        unless and_voice removes the voice prompt as well. Returns False during a run."""
        if not self._running.acquire(blocking=False):
            return False
        try:
            self._save(replace(self.plan.unmade(), sound_removed=True))
            for name in (CLIPS, TAKES):
                shutil.rmtree(self.folder / name, ignore_errors=True)
            if and_voice and self.plan.voice_file is not None:
                (self.folder / self.plan.voice_file).unlink(missing_ok=True)
        finally:
            self._running.release()
        return True

    def sound_bytes(self) -> int:
        """The bytes that `remove_sound` would free."""
        return sum(path.stat().st_size for path in self.folder.glob("*/*.wav"))

    def last_used(self) -> float:
        """When it was last generated, heard or voted on (seconds since 1970)."""
        return self.folder.stat().st_mtime

    def _touch(self) -> None:
        with suppress(OSError):
            os.utime(self.folder)

    def _save(self, plan: ComparisonPlan) -> None:
        with self._lock:
            # A run has its own copy of the plan, which must not undo a reveal.
            self.plan = replace(plan, revealed=self.plan.revealed)
            plan_file.write_plan(self.folder, self.plan)

    # -- listening -----------------------------------------------------------------------------

    def next_trial(self, on_show: str | None = None) -> Trial | None:
        """The trial to listen to. The current one stays until it has a vote, even if others are
        completed meanwhile; the next one is the first completed one of the shuffled order.

        on_show: the trial that a page shows, for a program that was restarted since.
        """
        with self._lock:
            if self.plan.kind == ComparisonKind.SIGHTED or self.plan.revealed:
                return None
            ready = {
                trial.id: trial
                for trial in self.plan.trials
                if trial.made and trial.id not in self._votes
            }
            shown_next = (name for name in (self._on_show, on_show, *ready) if name in ready)
            self._on_show = next(shown_next, None)
            return None if self._on_show is None else ready[self._on_show]

    def trial(self, identity: str) -> Trial:
        """A trial by its id. Raises InputError if this comparison has none with this id."""
        trials = [trial for trial in self.plan.trials if trial.id == identity]
        if not trials:
            raise InputError("This comparison has no such pair. Reload the page.")
        return trials[0]

    def clip(self, identity: str, letter: str) -> bytes:
        """Clip A, B or X of a trial: a 16-bit WAV without metadata."""
        self._touch()
        try:
            return self._clip_path(identity, letter).read_bytes()
        except OSError as error:
            raise RunError(
                "This clip is missing from the disk: generate the pair again."
            ) from error

    def samples(self, identity: str, letter: str) -> tuple[np.ndarray, int]:
        """The same clip as float32 [n], and its sample rate."""
        return read_wave(self._clip_path(identity, letter))

    def _clip_path(self, identity: str, letter: str) -> Path:
        trial = self.trial(identity)
        index = _CLIP_LETTERS.find(letter)
        if len(letter) != 1 or not 0 <= index < len(trial.clips) or not trial.made:
            raise InputError(f"This pair has no clip {letter!r}.")
        return self.folder / CLIPS / trial.clips[index]

    def aligned(self, trial: Trial) -> bool:
        """Whether both sides have the same codes and speed, so that their times correspond."""
        speeds = {self.plan.settings[setting].speed for setting in trial.settings}
        return self.plan.same_codes(trial) and len(speeds) == 1

    def needed_seconds(self, trial: Trial) -> float:
        """The seconds of each clip that must be heard before a vote."""
        length = wave_seconds(self.folder / CLIPS / trial.clips[0])
        return max(0.0, min(HEARD_SECONDS, length) - HEARD_MARGIN)

    def vote(
        self,
        identity: str,
        answer: str,
        heard: dict[str, float],
        strength: int | None = None,
        note: str = "",
        covered: dict[str, float] | None = None,
    ) -> Vote:
        """Record an answer; it counts once it is on the disk. heard: seconds listened to A and B
        (and X). covered: the same without repetitions, if known.

        Raises InputError for a second vote, a vote before both clips were heard or after the
        reveal, and an invalid answer.
        """
        covered = heard if covered is None else covered
        trial = self.trial(identity)
        letters = _CLIP_LETTERS[: len(trial.clips)]
        needed = self.needed_seconds(trial) if trial.made else 0.0
        with self._lock:
            if self.plan.kind == ComparisonKind.SIGHTED or self.plan.revealed:
                raise InputError("The sides are already revealed, so votes are no longer accepted.")
            if not trial.made:
                raise InputError("This pair has not been generated yet.")
            if identity in self._votes:
                raise InputError("This pair already has a vote.")
            if not all(covered.get(letter, 0.0) >= needed - 0.01 for letter in letters):
                raise InputError("Listen to each clip to the end, or for 10 s, before you vote.")
            vote = make_vote(self.plan, trial, answer, strength, note, heard)
            self._make_listener()
            append_vote(self._votes_folder, vote)
            self._touch()
            self._votes[identity] = vote
            return vote

    # -- result --------------------------------------------------------------------------------

    @property
    def votes(self) -> dict[str, Vote]:
        with self._lock:
            return dict(self._votes)

    @property
    def is_unblinded(self) -> bool:
        """Whether the sides may be shown: sighted, revealed, or every pair has a vote."""
        voted_all = all(trial.id in self._votes for trial in self.plan.trials)
        return self.plan.kind == ComparisonKind.SIGHTED or self.plan.revealed or voted_all

    def reveal(self) -> None:
        """End the test: the sides may be shown, and no more votes are accepted. One of several
        listeners ends only their own test."""
        with self._lock:
            revealed = replace(self.plan, revealed=True)
            if self.listener is None:
                plan_file.write_plan(self.folder, revealed)
            else:
                self._make_listener()
                plan_file.write_whole(self.listener / REVEALED, b"")
            self.plan = revealed

    def result(self) -> ComparisonResult:
        """The result of the votes; only their number while the test is open."""
        judge = evaluate if self.is_unblinded else interim_result
        return judge(self.plan, self.votes)

    def revealed(self) -> tuple[Revealed, ...]:
        """Every completed trial with its sides. Raises InputError while the test is blind."""
        if not self.is_unblinded:
            raise InputError(
                "The sides stay hidden until every pair has a vote, or you end the test."
            )
        return tuple(
            self._revealed(order, trial)
            for order, trial in enumerate(self.plan.trials, start=1)
            if trial.made
        )

    def _revealed(self, order: int, trial: Trial) -> Revealed:
        secret = self.plan.secrets[trial.id]
        behind = [secret.setting_of(trial, clip) for clip in (0, 1)]
        slots = {slot.setting: slot for slot in self.plan.slots_of(trial)}
        first, second = (self.plan.facts.get(slots[setting].id, {}) for setting in behind)
        return Revealed(
            trial=trial,
            order=order,
            heard=(NAMES[behind[0]], NAMES[behind[1]]),
            facts=(first, second),
            gains_db=secret.gains_db,
            vote=self._votes.get(trial.id),
            x="AB"[secret.x] if self.plan.kind == ComparisonKind.ABX else None,
        )


def rebuilt(plan: ComparisonPlan) -> ComparisonPlan:
    """The plan of a new comparison with the same pairs: nothing generated, nothing revealed."""
    return replace(plan.unmade(), revealed=False, sound_removed=False)
