"""One comparison: its folder, its blind trials, its votes, its result. Its plan is in `plan`.

A folder contains plan.json, clips/ and votes.csv; after the reveal a file `revealed`, which every
process that has the comparison open looks for. `store` has the owners.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Generator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from dia_demo.errors import InputError, RunError
from dia_demo.files import bytes_in
from dia_demo.services.listening.archive import check_folder
from dia_demo.services.listening.audience.hearing import Hearing
from dia_demo.services.listening.audience.listeners import (
    LISTENERS,
    listeners_of,
    make_listener,
    own_order,
)
from dia_demo.services.listening.clips import MISSING, read_wave, wave_seconds
from dia_demo.services.listening.plan import plan_file
from dia_demo.services.listening.plan.plan import ComparisonKind, ComparisonPlan, TakeSlot, Trial
from dia_demo.services.listening.render import CLIPS, TAKES, Renderer, RenderEvent, check_plan
from dia_demo.services.listening.verdict.result import ComparisonResult, evaluate, interim_result
from dia_demo.services.listening.voice import VOICES, keep_voices
from dia_demo.services.listening.votes.reveal import Revealed, reveal_trial
from dia_demo.services.listening.votes.votes import (
    OWNER,
    Vote,
    append_vote,
    complete_votes,
    make_vote,
    read_votes,
)
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import VoicePrompt
from dia_demo.services.voices.kept import KeptVoices

# The seconds of each clip that must be heard before a vote, and the margin at a clip's end.
HEARD_SECONDS, HEARD_MARGIN = 10.0, 0.1
# The file that ends the test: for everybody, or in the folder of a listener for that one.
REVEALED = "revealed"
_CLIP_LETTERS = "ABX"
ENDED = (
    "The test has ended and its sides are revealed, so votes are no longer accepted: this one was "
    "not counted."
)


class Comparison:
    """A comparison in its folder. Safe to use from several threads.

    listener: the folder of one of several listeners, with their own votes and reveal.
    """

    def __init__(self, folder: Path, plan: ComparisonPlan, listener: Path | None = None) -> None:
        self.folder = folder
        self.listener = listener
        self.plan = replace(plan, revealed=plan.revealed or self._was_ended())
        self.hearing = Hearing()
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
        kept: KeptVoices | None = None,
    ) -> Comparison:
        """Store a new plan in `folder`, with its voice prompt and those of the `kept` voices that
        it names. Raises InputError if the folder is in use, or a take of the plan is impossible."""
        kept = kept or KeptVoices(folder / VOICES)
        check_plan(plan, synthesis, voice, kept)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()):
                raise InputError(f"{folder} is not empty: choose a new folder.")
            plan = keep_voices(folder, plan, voice, kept)
        except OSError as error:
            reason = error.strerror or error
            raise InputError(f"{folder} cannot be used: {reason}. Choose another.") from error
        plan_file.write_plan(folder, plan)
        return cls(folder, plan)

    @classmethod
    def open(cls, folder: Path) -> Comparison:
        """An existing comparison. Raises InputError if the folder has none, or a damaged one."""
        return cls(folder, check_folder(folder))

    def for_listener(self, name: str) -> Comparison:
        """The same pairs for one of several listeners, with their own votes and reveal."""
        plan = own_order(self.plan, name)
        heard = Comparison(self.folder, plan, self.folder / LISTENERS / name)
        heard._running = self._running
        return heard

    def follow(self, plan: ComparisonPlan) -> None:
        """Update a listener's plan with the pairs that were generated since."""
        assert self.listener is not None, "the comparison of a listener"
        plan = own_order(plan, self.listener.name)
        with self._lock:
            self.plan = replace(plan, revealed=plan.revealed or self.plan.revealed)

    def listeners(self) -> list[Comparison]:
        """All listeners (see `for_listener`) who voted or ended their test, by their first vote:
        the number of a listener stays the same while others join."""
        heard = [self.for_listener(name) for name in listeners_of(self.folder)]
        return sorted(heard, key=lambda one: min((v.time for v in one.votes.values()), default="~"))

    def _was_ended(self) -> bool:
        """Whether the test was ended, perhaps by another process."""
        folders = (self.folder, self.listener)
        return any(folder is not None and (folder / REVEALED).exists() for folder in folders)

    def refresh(self) -> None:
        """Take notice of a reveal by another process."""
        if not self.plan.revealed and self._was_ended():
            with self._lock:
                self.plan = replace(self.plan, revealed=True)

    @property
    def _votes_folder(self) -> Path:
        return self.folder if self.listener is None else self.listener

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

    def failed_takes(self) -> tuple[TakeSlot, ...]:
        """The failed takes; `run` retries them."""
        return self.plan.failed_takes()

    def remove_sound(self, and_voice: bool = False) -> bool:
        """Delete clips and takes, but keep plan and votes: `run` generates the same audio again,
        unless and_voice removes the voice prompt as well. Returns False during a run."""
        if not self._running.acquire(blocking=False):
            return False
        try:
            self._save(replace(self.plan.clear_takes(), sound_removed=True))
            for name in (CLIPS, TAKES):
                shutil.rmtree(self.folder / name, ignore_errors=True)
            if and_voice and self.plan.voice_file is not None:
                (self.folder / self.plan.voice_file).unlink(missing_ok=True)
        finally:
            self._running.release()
        return True

    def sound_bytes(self) -> int:
        """The bytes that `remove_sound` would free."""
        return sum(bytes_in(self.folder / name) for name in (CLIPS, TAKES))

    def last_used(self) -> float:
        """When it was last generated, heard or voted on (seconds since 1970)."""
        return self.folder.stat().st_mtime

    def _touch(self) -> None:
        with suppress(OSError):
            os.utime(self.folder)

    def _save(self, plan: ComparisonPlan) -> None:
        with self._lock:
            # A run has its own copy of the plan, which must not undo a reveal.
            self.refresh()
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
        """Clip A, B or X of a trial: a file of 16 bits without metadata."""
        self._touch()
        try:
            return self._clip_path(identity, letter).read_bytes()
        except OSError as error:
            raise RunError(MISSING) from error

    def samples(self, identity: str, letter: str) -> tuple[np.ndarray, int]:
        """The same clip as float32 [n], and its sample rate."""
        return read_wave(self._clip_path(identity, letter))

    def _clip_path(self, identity: str, letter: str) -> Path:
        trial = self.trial(identity)
        index = _CLIP_LETTERS.find(letter)
        if len(letter) != 1 or not 0 <= index < len(trial.clips) or not trial.made:
            raise InputError(f"This pair has no clip {letter!r}.")
        return self.folder / CLIPS / trial.clips[index]

    def is_aligned(self, trial: Trial) -> bool:
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
            self._refuse_after_end()
            if not trial.made:
                raise InputError("This pair has not been generated yet.")
            if identity in self._votes:
                raise InputError("This pair already has a vote.")
            if not all(covered.get(letter, 0.0) >= needed - 0.01 for letter in letters):
                raise InputError("Listen to each clip to the end, or for 10 s, before you vote.")
            rater = OWNER if self.listener is None else self.listener.name
            vote = make_vote(self.plan, trial, answer, strength, note, heard, rater)
            if self.listener is not None:
                make_listener(self.listener)
            append_vote(self._votes_folder, vote)
            # The test may have been ended by another process just before.
            self._refuse_after_end()
            self._touch()
            self._votes[identity] = vote
            if self.listener is None and self.is_unblinded:
                self._complete_records()
            return vote

    def _refuse_after_end(self) -> None:
        self.refresh()
        if self.plan.kind == ComparisonKind.SIGHTED or self.plan.revealed:
            raise InputError(ENDED)

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
        """End the test: the sides may be shown, and no more votes are accepted, in any process.
        One of several listeners ends only their own test, the owner ends that of all."""
        with self._lock:
            if self.listener is not None:
                make_listener(self.listener)
            else:
                # What another process has generated meanwhile stays in the file.
                current = plan_file.read_plan(self.folder / plan_file.NAME)
                plan_file.write_plan(self.folder, replace(current, revealed=True))
            plan_file.write_whole(self._votes_folder / REVEALED, b"")
            self.plan = replace(self.plan, revealed=True)
            if self.listener is None:
                self._complete_records()

    def _complete_records(self) -> None:
        """Fill in the sides in the files of votes, which had none during the test. The votes count
        without that: on a full disk their files stay as they are."""
        heard = (self, *(self.listeners() if self.plan.revealed else ()))
        with suppress(RunError):
            for one in heard:
                complete_votes(one._votes_folder, one.votes.values())

    def result(self) -> ComparisonResult:
        """The result of the votes; only their number while the test is open."""
        judge = evaluate if self.is_unblinded else interim_result
        return judge(self.plan, self.votes)

    def revealed_pairs(self) -> tuple[Revealed, ...]:
        """Every completed trial with its sides. Raises InputError while the test is blind."""
        if not self.is_unblinded:
            raise InputError(
                "The sides stay hidden until every pair has a vote, or you end the test."
            )
        return tuple(
            reveal_trial(self.plan, order, trial, self._votes.get(trial.id))
            for order, trial in enumerate(self.plan.trials, start=1)
            if trial.made
        )
