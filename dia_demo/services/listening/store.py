"""ComparisonStore: every person's own folder of comparisons (see services/people.py)."""

from __future__ import annotations

import re
import secrets
import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable, Generator
from pathlib import Path

from dia_demo.errors import DiaDemoError, InputError, RunError
from dia_demo.files import bytes_in, size_of
from dia_demo.services.listening import archive
from dia_demo.services.listening.clips import write_takes
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.panel.store import panel_folder
from dia_demo.services.listening.plan.plan import ComparisonKind, ComparisonPlan, TakeState
from dia_demo.services.listening.plan.plan_file import NAME
from dia_demo.services.listening.plan.rebuild import rebuild_plan
from dia_demo.services.listening.plan_time import expected_audio
from dia_demo.services.listening.quota import enforce_quota
from dia_demo.services.listening.render import CLIPS, RenderEvent
from dia_demo.services.listening.voice import VOICES, voice_of
from dia_demo.services.listening.votes.table import write_table
from dia_demo.services.people import folder_of
from dia_demo.services.scratch import Scratch
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import VoicePrompt
from dia_demo.services.voices.kept import KeptVoices

MAX_COMPARISONS = 40
# Listeners of the shared comparison in memory; others are read from their folders again.
LISTENERS_OPEN = 500
MAX_BYTES = 3 * 10**9
# Bytes per expected sample: 16 bits, and the length may be underestimated by half.
BYTES_A_SAMPLE = 2 * 1.5
# The largest table: the most pairs, each with the longest note and script.
MOST_TABLE_BYTES = 10**7
_ID = re.compile(r"[0-9a-f]{24}")


class ComparisonStore:
    """The comparisons of all people; each can be opened only with its owner's key.

    limit: of all together in bytes. shared: the folder of a comparison that every key opens.
    """

    def __init__(
        self,
        home: Path,
        synthesis: Synthesis,
        limit: int = MAX_BYTES,
        shared: Path | None = None,
    ) -> None:
        self.home = home
        self.synthesis = synthesis
        self.limit = limit
        self.shared = None if shared is None else Comparison.open(shared)
        self._open: dict[Path, Comparison] = {}
        self._heard: OrderedDict[str, Comparison] = OrderedDict()
        self._downloads: dict[Path, str] = {}
        self._lock = threading.Lock()

    @classmethod
    def for_synthesis(cls, synthesis: Synthesis) -> ComparisonStore:
        """The store of what is kept on this machine: three quarters of the space, beside takes."""
        settings = synthesis.settings
        limit = settings.kept_bytes - settings.kept_bytes // 4
        shared = settings.shared_comparison
        # Whoever votes by the link of a shared test must not find its answers on the page.
        shared = None if shared is None or panel_folder(shared) else shared
        return cls(settings.kept_folder, synthesis, limit, shared)

    def create(
        self,
        key: str,
        plan: ComparisonPlan,
        voice: VoicePrompt | None = None,
        kept: KeptVoices | None = None,
    ) -> str:
        """Store a new comparison; returns its id. kept: the voices that it may name, by default
        those of the person."""
        self._check_models(plan)
        kept = kept or KeptVoices.for_person(self.synthesis.settings, key)
        prompt = size_of(voice.audio) if voice is not None and voice.audio is not None else 0
        return self.add(
            key,
            self._expected_bytes(plan) + prompt,
            lambda folder: Comparison.create(folder, plan, self.synthesis, voice, kept),
        )

    def add(self, key: str, size: int, write: Callable[[Path], Comparison]) -> str:
        """Store a comparison that `write` makes in a new folder; returns its id. size: its expected
        bytes."""
        self.make_room(size)
        identity, folder = self._new_place(key)
        try:
            comparison = write(folder)
        except DiaDemoError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        with self._lock:
            self._open[folder] = comparison
        return identity

    def run(
        self, key: str, identity: str, cancel: threading.Event
    ) -> Generator[RenderEvent, None, None]:
        """Generate what a comparison of the person lacks (see Renderer.stream)."""
        comparison = self.get(key, identity)
        if self.shared is not None and comparison.listener is not None:
            comparison = self.shared
        self._check_models(comparison.plan)
        self.make_room(self._expected_bytes(comparison.plan))
        yield from comparison.run(self.synthesis, cancel)

    def _check_models(self, plan: ComparisonPlan) -> None:
        """Raise InputError for models that this page does not offer: a zip may name any."""
        names = list(self.synthesis.models)
        for setting in plan.settings:
            if setting.runtime.model not in names and not setting.system:
                raise InputError(
                    f"The model {setting.runtime.model!r} is not offered here: choose one of "
                    f"{', '.join(names)}."
                )

    def load(self, key: str, path: Path) -> str:
        """Store a comparison from a zip; returns its id."""
        self.make_room(archive.unpacked_bytes(path))
        identity, folder = self._new_place(key)
        archive.import_zip(path, folder)
        return identity

    def repeat(self, key: str, identity: str) -> str:
        """A new comparison with the plan of another: the same pairs, generated again, no votes."""
        old = self.get(key, identity)
        voice, kept = voice_of(old.folder, old.plan), KeptVoices(old.folder / VOICES)
        return self.create(key, rebuild_plan(old.plan), voice, kept)

    def get(self, key: str, identity: str) -> Comparison:
        """One of the person's comparisons. Raises InputError if there is none with this id."""
        if not isinstance(identity, str) or not _ID.fullmatch(identity):
            raise InputError("Choose a comparison in the list first.")
        if self.shared is not None and identity == self.shared.plan.id:
            return self._shared_comparison(key, self.shared)
        return self._open_folder(self._comparisons_of(key) / identity)

    def _shared_comparison(self, key: str, shared: Comparison) -> Comparison:
        """The shared comparison as this person hears it: with their own votes."""
        name = folder_of(self.home, key).name
        with self._lock:
            if name not in self._heard:
                self._heard[name] = shared.for_listener(name)
            self._heard.move_to_end(name)
            while len(self._heard) > LISTENERS_OPEN:
                self._heard.popitem(last=False)
            shared.refresh()
            self._heard[name].follow(shared.plan)
            return self._heard[name]

    def _open_folder(self, folder: Path) -> Comparison:
        with self._lock:
            if folder not in self._open:
                if not (folder / NAME).is_file():
                    raise InputError("This comparison no longer exists here.")
                self._open[folder] = Comparison.open(folder)
            self._open[folder].refresh()
            return self._open[folder]

    def _expected_bytes(self, plan: ComparisonPlan) -> int:
        """The estimated bytes of the audio that is still to be generated."""
        if plan.is_uploaded:
            return 0  # it is on the disk already, or cannot be made
        names = {setting.runtime.model for setting in plan.settings}
        # Both sides of a pair have the higher of their sample rates.
        rate = max(self.synthesis.models[name].sample_rate for name in names)
        waiting = {slot.id for slot in plan.slots if slot.state != TakeState.MADE}
        slots = [slot for trial in plan.trials for slot in plan.slots_of(trial)]
        samples = rate * sum(
            expected_audio(plan, slot, self.synthesis) for slot in slots if slot.id in waiting
        )
        # ABX has a third clip, as long as the others.
        return int(samples * BYTES_A_SAMPLE * (1.5 if plan.kind == ComparisonKind.ABX else 1.0))

    def make_room(self, needed: int) -> None:
        """Remove what may be removed until so many bytes fit; see `enforce_quota`."""
        enforce_quota(self.home, self.limit, needed, self._open_folder, self._remove)

    def list(self, key: str) -> list[tuple[str, Comparison]]:
        """The person's comparisons, the latest first; one that cannot be read is left out."""
        home = self._comparisons_of(key)
        comparisons = []
        for folder in home.iterdir() if home.is_dir() else ():
            try:
                comparisons.append((folder.name, self.get(key, folder.name)))
            except DiaDemoError:
                continue
        comparisons.sort(key=lambda entry: entry[1].plan.created, reverse=True)
        if self.shared is None:
            return comparisons
        return [(self.shared.plan.id, self._shared_comparison(key, self.shared)), *comparisons]

    def delete(self, key: str, identity: str) -> None:
        """Delete one of the person's comparisons permanently."""
        comparison = self.get(key, identity)
        if comparison.listener is not None:
            raise InputError(
                "This comparison is shared: delete it in the folder that DIA_COMPARE names."
            )
        if not self._remove(comparison):
            raise InputError("This comparison is being generated: stop it first.")

    def _remove(self, comparison: Comparison) -> bool:
        """Delete its folder. Returns False during a run, and deletes nothing."""
        if comparison.running:
            return False
        with self._lock:
            self._open.pop(comparison.folder, None)
        shutil.rmtree(self._download_folder(comparison), ignore_errors=True)
        shutil.rmtree(comparison.folder, ignore_errors=True)
        return True

    def export(self, key: str, identity: str) -> Path:
        """The comparison as a zip that the page may download, in a folder whose name cannot be
        guessed, until the comparison is deleted. Raises InputError while it is blind."""
        comparison = self._get_unblinded(key, identity)
        size = bytes_in(comparison.folder)
        path = self._download(comparison, f"comparison-{identity}.zip", size)
        own_plan = None if comparison.listener is None else comparison.plan
        return archive.export_zip(comparison.folder, path, comparison.listener, own_plan)

    def export_table(self, key: str, identity: str) -> Path:
        """The votes as a CSV file in the same folder. Raises InputError while it is blind."""
        comparison = self._get_unblinded(key, identity)
        path = self._download(comparison, f"comparison-{identity}.csv", MOST_TABLE_BYTES)
        return write_table(comparison.plan, comparison.votes, path)

    def export_takes(self, key: str, identity: str, suffix: str) -> Path:
        """The takes as a zip of files in the format of a suffix, in the same folder. Raises
        InputError while it is blind, and while it has no takes."""
        comparison = self._get_unblinded(key, identity)
        if not (pairs := comparison.revealed_pairs()):
            raise InputError("This comparison has no audio yet: wait for a pair, or press Resume.")
        size = bytes_in(comparison.folder)
        name = f"comparison-{identity}-{suffix.removeprefix('.')}.zip"
        path = self._download(comparison, name, size)
        clips = comparison.folder / CLIPS
        return write_takes(clips, comparison.plan, pairs, path, suffix)

    def _get_unblinded(self, key: str, identity: str) -> Comparison:
        comparison = self.get(key, identity)
        if not comparison.is_unblinded:
            raise InputError(
                "The files contain the answers: you can download them when every pair has a vote, "
                "or when you end the test."
            )
        return comparison

    def _download(self, comparison: Comparison, name: str, size: int) -> Path:
        """The path of a new file of at most `size` bytes for the page."""
        settings = self.synthesis.settings
        Scratch(settings.takes_folder, settings.temp_bytes).reserve(size)
        folder = self._download_folder(comparison)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = error.strerror or error
            raise RunError(f"{name} could not be written: {reason}. Free some space.") from error
        return folder / name

    def _download_folder(self, comparison: Comparison) -> Path:
        folder = comparison.listener or comparison.folder
        with self._lock:
            name = self._downloads.setdefault(folder, f"zip-{secrets.token_hex(20)}")
        return self.synthesis.settings.served_folder / name

    def _comparisons_of(self, key: str) -> Path:
        return folder_of(self.home, key) / "comparisons"

    def _new_place(self, key: str) -> tuple[str, Path]:
        home = self._comparisons_of(key)
        try:
            home.mkdir(parents=True, exist_ok=True)
            count = sum(1 for _ in home.iterdir())
        except OSError as error:
            raise RunError(
                f"Comparisons cannot be saved: {error.strerror}. Free some space, or start the app "
                "with another folder in DIA_KEPT."
            ) from error
        if count >= MAX_COMPARISONS:
            raise InputError(f"You have {count} comparisons, the maximum. Delete one first.")
        identity = secrets.token_hex(12)
        return identity, home / identity
