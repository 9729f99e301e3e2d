"""Engine: one loaded model and its codec; rows in, typed events out."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import lru_cache

import numpy as np

from dia_demo.audio import integrated_loudness
from dia_demo.codec.codec import Codec
from dia_demo.config import ModelConfig, RuntimeConfig
from dia_demo.engine.engine_thread import EngineThread, EventStream
from dia_demo.engine.events import Event, Failed, Loading
from dia_demo.engine.family import ModelInfo
from dia_demo.engine.loading.memory import rows_that_fit
from dia_demo.engine.loading.model_loader import (
    ModelLoader,
    PlacedModel,
    load_on_cpu,
    loading_events,
)
from dia_demo.engine.row_stream import RowStream, StreamSettings
from dia_demo.engine.rows.base_row import BaseRow
from dia_demo.engine.sampling import check_sampler
from dia_demo.engine.scheduler import PLACES, SPARE_PLACES, Turns
from dia_demo.errors import RunError
from dia_demo.machine.processor import numerics_here
from dia_demo.model.cpu_model import torch_threads
from dia_demo.prompt.prompt import resample_for_analysis
from dia_demo.prompt.voice_traits import VoiceTraits, voice_traits
from dia_demo.task import result_of

# The voice prompts whose traits are kept: decoding one takes seconds with Dia's codec.
PROMPTS_KEPT = 8


class Engine:
    """Built by `Engine.load`. Requests from several threads share the places of its scheduler.

    turns: whose row is next; in order of arrival if left out. places: the most rows that advance
    together, fewer where there is little memory. An engine that is `closed` cannot be used again.
    """

    def __init__(
        self,
        info: ModelInfo,
        placed: PlacedModel,
        turns: Turns | None = None,
        places: int = PLACES,
    ) -> None:
        self.info = info
        self.model = placed.model
        self.placement = placed.placement
        self.loaded = placed.loaded
        self.closed = False
        self._check_take = placed.check_take
        self._close_model = placed.close
        self._notes = (self.loaded.note,) if self.loaded and self.loaded.note else ()
        self._codec: Codec | None = None
        spare = min(SPARE_PLACES, places // 2)
        if self.loaded is not None:
            fitting = rows_that_fit(info, self.placement.precision, places + spare)
            places, spare = min(places, fitting), max(0, fitting - places)
        self.places = places
        self._traits_of = lru_cache(PROMPTS_KEPT)(self._measure_traits)
        device, free_cores = self.placement.device, min(places, self.placement.free_cores)
        self._thread = EngineThread(
            self.model, places, turns, device, self.close, spare, free_cores
        )

    @classmethod
    def load(
        cls,
        info: ModelInfo,
        runtime: RuntimeConfig,
        load_model: ModelLoader = load_on_cpu,
        turns: Turns | None = None,
        places: int = PLACES,
    ) -> Generator[Loading, None, Engine]:
        """Load a model whose files are on this machine; yields Loading events.

        load_model: the loader of the runtime's device. Raises InputError where the model does not
        fit into memory, or cannot run as requested.
        """
        placed = yield from load_model(info, runtime)
        check_sampler()  # It compiles here, so that the first take need not wait for it.
        return cls(info, placed, turns, places)

    @property
    def config(self) -> ModelConfig:
        return self.model.config

    def take_notes(self) -> tuple[str, ...]:
        """Return and clear the loading notes."""
        notes, self._notes = self._notes, ()
        return notes

    def open_codec(self) -> Generator[Loading, None, Codec]:
        """Fetch the checkpoint's codec if necessary, and load it; later calls do nothing."""
        if self._codec is None:
            assert self.info.folder is not None, "the model was loaded from it"
            loading = self.info.family.codecs.open(self.info.folder)
            threads = self.placement.threads
            self._codec = yield from loading_events("Loading the codec", loading, threads)
        return self._codec

    @property
    def has_codec(self) -> bool:
        """Whether the codec is loaded."""
        return self._codec is not None

    def load_codec(self) -> Codec:
        """The codec, once `open_codec` has finished."""
        return result_of(self.open_codec())

    @property
    def codec(self) -> Codec:
        """The checkpoint's codec, loaded at the first access."""
        return self.load_codec()

    def traits_of(self, prompt: np.ndarray) -> VoiceTraits:
        """How a voice prompt [frames, C] sounds. Measured after the codec, so that a prompt is the
        same one as a file and as codes, and once for all takes with the same one."""
        return self._traits_of(prompt.tobytes(), prompt.shape, prompt.dtype.str)

    def _measure_traits(self, codes: bytes, shape: tuple[int, ...], dtype: str) -> VoiceTraits:
        with torch_threads(self.placement.threads):
            wave = self.codec.decode(np.frombuffer(codes, dtype).reshape(shape).copy())
        return voice_traits(resample_for_analysis(wave, self.info.codec.sample_rate))

    def warm_up(self) -> None:
        """Run model and codec once on very little, so that everything built lazily is built."""
        with torch_threads(self.placement.threads):
            self.codec.decode(np.zeros((1, self.codec.num_codebooks), np.int64))
        if self.config.voices is not None:  # Its takes are measured before their first sound.
            rate = self.info.codec.sample_rate
            integrated_loudness(np.zeros(rate), rate)
        params = replace(self.config.defaults, max_tokens=self.config.shortest_max_tokens)
        family = self.info.family
        row = family.row(self.config, family.encode("[S1] Hello.", ""), params)
        for event in self.stream([row], [0.0], False):
            if isinstance(event, Failed):
                raise RunError(event.message)

    def stream(
        self,
        rows: Sequence[BaseRow],
        expected_seconds: Sequence[float],
        with_audio: bool = True,
        speeds: Sequence[float] | None = None,
    ) -> Generator[Event, None, None]:
        """`submit`, and the events as a generator; closing it stops the rows."""
        with closing(self.submit(rows, expected_seconds, with_audio, speeds)) as events:
            yield from events

    def submit(
        self,
        rows: Sequence[BaseRow],
        expected_seconds: Sequence[float],
        with_audio: bool = True,
        speeds: Sequence[float] | None = None,
    ) -> EventStream:
        """Let rows wait for places beside those of other requests; returns their events. Every row
        ends with Finished, Cancelled or Failed; its Started event comes when it has a place.

        expected_seconds: an estimate of each row's audio at speed 1. speeds: of each row's audio, 1
        if left out. Without audio no codec is loaded and results contain codes only. A row that
        comes alone is assumed to be heard while it is generated. Raises RunError once the engine is
        closed.
        """
        settings = StreamSettings(
            model=self.info.name,
            placement=self.placement,
            format=self.info.codec,
            codec=self.codec if with_audio else None,
            numerics=self._numerics(with_audio),
            check_take=self._check_take,
            is_heard=len(rows) == 1,
        )
        seconds_and_speeds = zip(expected_seconds, speeds or [1.0] * len(rows), strict=True)
        return self._thread.submit(
            [
                RowStream(index, row, seconds, speed, settings)
                for index, (row, (seconds, speed)) in enumerate(
                    zip(rows, seconds_and_speeds, strict=True)
                )
            ]
        )

    def _numerics(self, with_audio: bool) -> dict[str, str]:
        """What decides how takes are rounded; see Figures."""
        kernel = self.loaded.choice.kernel.name if self.loaded else self.placement.device
        found = numerics_here() | {"kernel": kernel, "sampling": "compiled"}
        if self.loaded and self.loaded.weights:
            found["weights"] = self.loaded.weights
        if with_audio:
            found |= {"codec": self.codec.numerics, "codebooks": self.codec.identity}
        return found

    def close(self) -> None:
        """Fail what is running, end the thread, and free what Python does not free by itself, such
        as an accelerator's process."""
        if not self.closed:
            self.closed = True
            self._thread.close()
            self._close_model()
