"""One comparison: its folder, its blind trials, its votes, its result. Its plan is in `plan`.

A folder holds plan.json, clips/ and votes.csv. `store` knows whose it is.
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

# A vote counts when so much of each clip was heard, or all of a shorter one but for the margin.
HEARD_SECONDS, HEARD_MARGIN = 10.0, 0.1
# Of a comparison with many listeners: their folders, and the file of one who ended the test.
LISTENERS, REVEALED = "listeners", "revealed"
MAX_LISTENERS = 1000
_CLIP_LETTERS = "ABX"


@dataclass(frozen=True)
class Revealed:
    """A trial after the test: what was heard as A and B, and what is known of both takes."""

    trial: Trial
    order: int
    heard: tuple[str, str]
    facts: tuple[dict, dict]
    gains_db: tuple[float, ...]
    vote: Vote | None
    x: str | None


class Comparison:
    """A comparison in its folder. Safe to use from several threads.

    listener: the folder of one listener of many, with votes and a reveal of their own.
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
        """Keep a new plan in `folder`, with its voice prompt.

        Raises InputError where the folder is in use or a take could never be made.
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
        """A comparison made earlier. InputError where the folder holds none, or a damaged one."""
        return cls(folder, checked_folder(folder))

    def heard_by(self, name: str) -> Comparison:
        """The same pairs for one listener of many, whose votes and reveal are no one else's."""
        heard = Comparison(self.folder, self.plan, self.folder / LISTENERS / name)
        heard._running = self._running
        return heard

    def follow(self, plan: ComparisonPlan) -> None:
        """What was made since, as a listener of many hears it."""
        with self._lock:
            self.plan = replace(plan, revealed=plan.revealed or self.plan.revealed)

    def listeners(self) -> list[Comparison]:
        """Everybody who has voted in `heard_by`, or ended the test for themselves."""
        home = self.folder / LISTENERS
        names = sorted(os.listdir(home)) if home.is_dir() else []
        return [self.heard_by(name) for name in names if (home / name).is_dir()]

    @property
    def _votes_folder(self) -> Path:
        return self.folder if self.listener is None else self.listener

    def _make_listener(self) -> None:
        """A listener's folder, made with the first vote. InputError where there are too many."""
        if self.listener is None or self.listener.is_dir():
            return
        try:
            self.listener.parent.mkdir(exist_ok=True)
            if len(os.listdir(self.listener.parent)) >= MAX_LISTENERS:
                raise InputError(f"{MAX_LISTENERS:,} people have voted here, the maximum.")
            self.listener.mkdir(exist_ok=True)
        except OSError as error:
            reason = error.strerror or error
            raise RunError(f"Your votes cannot be saved: {reason}. Free some space.") from error

    # -- making --------------------------------------------------------------------------------

    def run(
        self, synthesis: Synthesis, cancel: threading.Event
    ) -> Generator[RenderEvent, None, None]:
        """Make what is missing (see Renderer.stream). One run at a time."""
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
        """The takes that failed; `run` tries them again."""
        return self.plan.failed()

    def remove_sound(self, and_voice: bool = False) -> bool:
        """Free disk space: clips and takes go, the plan and the votes stay, and `run` makes the
        same sound again, unless the voice prompt goes as well. False while it is being made."""
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
        """What `remove_sound` would give back."""
        return sum(path.stat().st_size for path in self.folder.glob("*/*.wav"))

    def last_used(self) -> float:
        """When it was last made, heard or voted on (seconds since 1970)."""
        return self.folder.stat().st_mtime

    def _touch(self) -> None:
        with suppress(OSError):
            os.utime(self.folder)

    def _save(self, plan: ComparisonPlan) -> None:
        with self._lock:
            # A run works on its own copy of the plan and must not undo a reveal.
            self.plan = replace(plan, revealed=self.plan.revealed)
            plan_file.write_plan(self.folder, self.plan)

    # -- listening -----------------------------------------------------------------------------

    def next_trial(self, on_show: str | None = None) -> Trial | None:
        """The trial to be heard. The one on show stays until it is voted on, whatever else is made
        meanwhile; the next one is the first of the shuffled order that is made.

        on_show: the trial a page holds, for a program that was started anew and does not know.
        """
        with self._lock:
            if self.plan.kind == ComparisonKind.SIGHTED or self.plan.revealed:
                return None
            ready = {
                trial.id: trial
                for trial in self.plan.trials
                if trial.made and trial.id not in self._votes
            }
            held = (name for name in (self._on_show, on_show, *ready) if name in ready)
            self._on_show = next(held, None)
            return None if self._on_show is None else ready[self._on_show]

    def trial(self, identity: str) -> Trial:
        """One trial by its id; InputError for a stranger's."""
        trials = [trial for trial in self.plan.trials if trial.id == identity]
        if not trials:
            raise InputError("This comparison has no such pair.")
        return trials[0]

    def clip(self, identity: str, letter: str) -> bytes:
        """Clip A, B or X of a trial: a 16-bit WAV that says nothing of itself."""
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
        """Whether both sides say the same codes at the same speed, and so keep step in time."""
        speeds = {self.plan.settings[setting].speed for setting in trial.settings}
        return self.plan.same_codes(trial) and len(speeds) == 1

    def needed_seconds(self, trial: Trial) -> float:
        """How much of each clip must have been heard before a vote counts."""
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
        """Count one answer, once it is on the disk. heard: seconds listened to A and B (and X);
        covered: the same without what was repeated, where that is known.

        Raises InputError for a second vote, for one given before both were heard or after the
        reveal, and for what is no answer.
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
        """Whether nothing is blind any more: sighted, revealed, or every pair voted on."""
        voted_all = all(trial.id in self._votes for trial in self.plan.trials)
        return self.plan.kind == ComparisonKind.SIGHTED or self.plan.revealed or voted_all

    def reveal(self) -> None:
        """End the test: nothing is blind from here on, and no further vote counts. A listener of
        many ends it for themselves alone."""
        with self._lock:
            revealed = replace(self.plan, revealed=True)
            if self.listener is None:
                plan_file.write_plan(self.folder, revealed)
            else:
                self._make_listener()
                plan_file.write_whole(self.listener / REVEALED, b"")
            self.plan = revealed

    def result(self) -> ComparisonResult:
        """What the votes say; counts alone while the test is open."""
        judge = evaluate if self.is_unblinded else interim_result
        return judge(self.plan, self.votes)

    def revealed(self) -> tuple[Revealed, ...]:
        """Every made trial with its sides. InputError while the test is blind."""
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
    """The plan for another comparison with the same pairs: nothing made, nothing revealed."""
    return replace(plan.unmade(), revealed=False, sound_removed=False)
