"""Takes and dialogues of the model under test, as the app makes them; the model stays in memory.

Long dialogues stay in the work folder, because several bars measure the same ones.
"""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from dia_demo.audio import to_int16
from dia_demo.config import RuntimeConfig
from dia_demo.engine.events import Failed, Finished, Result
from dia_demo.errors import RunError
from dia_demo.files import write_atomic
from dia_demo.services.dialogue.events import DialogueFailed
from dia_demo.services.dialogue.plan import make_plan
from dia_demo.services.dialogue.run import DialogueRun, JoinedSound
from dia_demo.services.dialogue.store import DialogueStore
from dia_demo.services.models import find_model
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request, TimedWord
from tools.voice_bars import scripts
from tools.voice_bars.hearing import hear_pieces


@dataclass(frozen=True)
class Dialogue:
    """A dialogue as it was written: samples in -1..1. starts: the sample at which each chunk begins
    with the silence before it. verdicts: what was said of the first attempt at each chunk."""

    samples: np.ndarray
    sample_rate: int
    starts: list[int]
    words: list[TimedWord]
    verdicts: list[str]
    voices: list[str | None]

    def chunk_of(self, word: TimedWord) -> int:
        """The number of the chunk that a word is in."""
        return int(np.searchsorted(self.starts, word.start * self.sample_rate, "right")) - 1


class Studio:
    """model: nano, a name or a folder. is_quick: everything is short."""

    def __init__(self, work: Path, model: str, threads: int | None, is_quick: bool = False) -> None:
        self.work, self.is_quick, self.threads = work, is_quick, threads
        self.runtime = replace(Settings.from_env().runtime, model=model)
        if threads is not None:
            self.runtime = replace(self.runtime, threads=threads)

    @cached_property
    def synthesis(self) -> Synthesis:
        """Made when the first take is."""
        return Synthesis(Settings.from_env())

    @property
    def turns(self) -> int:
        """How many a long dialogue has."""
        return 6 if self.is_quick else scripts.TURNS

    def request(self, script: str, seed: int, **changes) -> Request:
        """One take in the settings of the model; changes: other fields of the request."""
        info = find_model(self.runtime.model)
        params = replace(info.config.defaults, seed=seed)
        return Request(script=script, params=params, model=info, runtime=self.runtime, **changes)

    def takes(self, requests: Sequence[Request]) -> list[Result]:
        """One take of each, made together. Raises RunError if one fails."""
        found: dict[int, Result] = {}
        for event in self.synthesis.stream_together(list(requests), threading.Event()):
            if isinstance(event, Failed):
                raise RunError(event.message)
            if isinstance(event, Finished):
                found[event.row] = event.result
        return [found[row] for row in range(len(requests))]

    def sounds(self, requests: Sequence[Request]) -> list[np.ndarray]:
        """The samples of `takes`, [n] in -1..1. Raises RunError for one that nobody can hear."""
        made = zip(requests, self.takes(requests), strict=True)
        return [self.synthesis.take(request, result).samples for request, result in made]

    def speak(self, request: Request) -> Dialogue:
        """A dialogue, made in a folder of its own. Raises RunError if it fails."""
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            run = DialogueRun(self.synthesis, make_plan(request), DialogueStore(Path(folder) / "d"))
            for event in run.stream(threading.Event()):
                if isinstance(event, DialogueFailed):
                    raise RunError(event.message)
            return join_dialogue(run)

    def long_dialogue(self, number: int) -> Dialogue:
        """The long dialogue of this number, made once."""
        path = self._file("dialogue", number, ".npz")
        if not path.exists():
            made = self.speak(self.request(scripts.dialogue(number, self.turns), seed=number))
            about = asdict(made) | {"samples": None}
            with write_atomic(path) as part, open(part, "wb") as file:
                text = np.frombuffer(json.dumps(about).encode(), np.uint8)
                np.savez_compressed(file, samples=to_int16(made.samples), about=text)
        stored = np.load(path)
        about = json.loads(bytes(stored["about"]))
        words = [TimedWord(**word) for word in about.pop("words")]
        samples = stored["samples"].astype(np.float32) / 32768
        return Dialogue(**about | {"samples": samples, "words": words})

    def heard_in(self, number: int) -> str:
        """What is heard in a long dialogue."""
        path = self._file("heard", number, ".txt")
        if not path.exists():
            made = self.long_dialogue(number)
            path.write_text(hear_pieces(made.samples, made.sample_rate))
        return path.read_text()

    def _file(self, what: str, number: int, suffix: str) -> Path:
        size = "-quick" if self.is_quick else ""
        return self.work / f"{what}{size}-{number:02d}{suffix}"


def join_dialogue(run: DialogueRun) -> Dialogue:
    """The whole of a run that has ended."""
    pieces = list(JoinedSound(run).ready_pieces())
    rate = pieces[0].sample_rate
    chunks = run.plan.chunks
    return Dialogue(
        samples=np.concatenate([piece.samples for piece in pieces]),
        sample_rate=rate,
        starts=[round(piece.start * rate) for piece in pieces[: len(chunks)]],
        words=[word for piece in pieces for word in piece.words],
        verdicts=[run.attempts[chunk.index][0].verdict.text for chunk in chunks],
        voices=list(run.take(chunks[0]).voices or (None, None)),
    )


def runtime_options(runtime: RuntimeConfig) -> list[str]:
    """The options of `say` for the same runtime."""
    threads = [] if runtime.threads is None else ["--threads", str(runtime.threads)]
    return ["--model", runtime.model, *threads]
