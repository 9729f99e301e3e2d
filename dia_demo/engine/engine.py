"""Engine: one loaded model and its codec; rows in, typed events out."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np

from dia_demo.audio import integrated_loudness
from dia_demo.codec.codec import Codec, open_codec
from dia_demo.codec.config import codec_format
from dia_demo.config import ModelConfig, RuntimeConfig
from dia_demo.engine import sampling
from dia_demo.engine.decoder_model import DeviceFailed
from dia_demo.engine.events import Event, Failed, Loading
from dia_demo.engine.loop import ROWS_AT_ONCE, run, run_to_end
from dia_demo.engine.model_loader import ModelLoader, PlacedModel, as_loading, load_on_cpu
from dia_demo.engine.row import Row
from dia_demo.engine.row_stream import RowStream, StreamSettings
from dia_demo.errors import DiaDemoError
from dia_demo.hub.fetch import fetch_checkpoint
from dia_demo.machine.processor import numerics_here
from dia_demo.model import checkpoint
from dia_demo.model.cpu_model import torch_threads
from dia_demo.prompt.prompt import at_analysis_rate
from dia_demo.prompt.speech import median_pitch
from dia_demo.task import result_of

log = logging.getLogger(__name__)


class Engine:
    """Built by `Engine.load`. Runs one stream at a time: callers take turns (services/queue.py).

    An engine that is `closed` cannot be used again.
    """

    def __init__(self, name: str, folder: Path, placed: PlacedModel) -> None:
        self.name = name
        self.folder = folder
        self.model = placed.model
        self.placement = placed.placement
        self.loaded = placed.loaded
        self.closed = False
        self.format = codec_format(folder)
        self._check_take = placed.check_take
        self._close_model = placed.close
        self._notes = (self.loaded.note,) if self.loaded and self.loaded.note else ()
        self._codec: Codec | None = None

    @classmethod
    def load(
        cls, runtime: RuntimeConfig, load_model: ModelLoader = load_on_cpu
    ) -> Generator[Loading, None, Engine]:
        """Find the model, fetch it if necessary, and load it; yields Loading events.

        load_model: the loader of the runtime's device. Raises InputError where the model is not
        available, does not fit into memory, or cannot run as requested.
        """
        folder = checkpoint.local_folder(runtime.model)
        if folder is None:
            fetching = fetch_checkpoint(runtime.model)
            folder = yield from as_loading(f"Fetching {runtime.model}", fetching)
        placed = yield from load_model(runtime, folder)
        sampling.can_compile()  # It compiles here, so that the first take need not wait for it.
        return cls(runtime.model, folder, placed)

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
            loading = open_codec(self.folder)
            threads = self.placement.threads
            self._codec = yield from as_loading("Loading the codec", loading, threads)
        return self._codec

    def load_codec(self) -> Codec:
        """The codec, once `open_codec` has finished."""
        return result_of(self.open_codec())

    @property
    def codec(self) -> Codec:
        """The checkpoint's codec, loaded at the first access."""
        return self.load_codec()

    def semitones_of(self, prompt: np.ndarray) -> float | None:
        """The median pitch above 100 Hz of a voice prompt [frames, C], of a model with voices by
        name. Measured after the codec, so that a prompt is the same one as a file and as codes."""
        if self.config.voices is None:
            return None
        with torch_threads(self.placement.threads):
            wave = self.codec.decode(prompt)
        hertz = median_pitch(at_analysis_rate(wave, self.format.sample_rate))
        return None if hertz is None else float(12 * np.log2(hertz / 100))

    def warm_up(self) -> None:
        """Run model and codec once on very little, so that everything built lazily is built."""
        with torch_threads(self.placement.threads):
            self.codec.decode(np.zeros((1, self.codec.num_codebooks), np.int64))
        if self.config.voices is not None:  # Its takes are measured before their first sound.
            rate = self.format.sample_rate
            integrated_loudness(np.zeros(rate), rate)
        params = replace(self.config.defaults, max_tokens=self.config.shortest_max_tokens)
        run_to_end(self.model, [Row(self.config, b"\x01 Hello.", params)])

    def stream(
        self,
        rows: Sequence[Row],
        expected_seconds: Sequence[float],
        with_audio: bool = True,
        speeds: Sequence[float] | None = None,
    ) -> Generator[Event, None, None]:
        """Run rows together; every row's events, each ended by Finished, Cancelled or Failed.

        Rows beyond ROWS_AT_ONCE wait for a place in the batch; their Started event comes when they
        join it.

        expected_seconds: an estimate of each row's audio at speed 1. speeds: of each row's audio, 1
        if left out. Without audio no codec is loaded and results contain codes only. Closing the
        iterator stops the rows.
        """
        settings = StreamSettings(
            model=self.name,
            placement=self.placement,
            format=self.format,
            codec=self.codec if with_audio else None,
            numerics=self._numerics(with_audio),
            check_take=self._check_take,
        )
        streams = {
            row: RowStream(index, row, seconds, speed, settings)
            for index, (row, seconds, speed) in enumerate(
                zip(rows, expected_seconds, speeds or [1.0] * len(rows), strict=True)
            )
        }
        for stream in list(streams.values())[:ROWS_AT_ONCE]:
            yield stream.started()
        try:
            yield from self._advance(rows, streams)
        except DeviceFailed as error:
            self.close()
            yield from _fail_all(streams, str(error), self.placement.device)
        except DiaDemoError as error:
            yield from _fail_all(streams, str(error))
        except Exception as error:
            log.exception("a run failed")
            what = f"{type(error).__name__}: {error}"
            yield from _fail_all(streams, f"The run failed: {what}. The app is still usable.")

    def _numerics(self, with_audio: bool) -> dict[str, str]:
        """What decides how takes are rounded; see Figures."""
        kernel = self.loaded.choice.kernel.name if self.loaded else self.placement.device
        sampling_route = "compiled" if sampling.can_compile() else "numpy"
        found = numerics_here() | {"kernel": kernel, "sampling": sampling_route}
        if self.loaded and self.loaded.weights:
            found["weights"] = self.loaded.weights
        if with_audio:
            found |= {"codec": self.codec.numerics, "codebooks": self.codec.identity}
        return found

    def _advance(self, rows: Sequence[Row], streams: dict[Row, RowStream]) -> Iterator[Event]:
        steps = run(self.model, rows)
        try:
            while True:
                began = perf_counter()
                row = next(steps, None)
                seconds = perf_counter() - began
                for stream in streams.values():
                    stream.token_seconds += seconds if stream.is_running else 0.0
                if row is None:
                    return
                if not streams[row].began:  # It waited for a place in the batch.
                    yield streams[row].started()
                yield from streams[row].after_step()
        finally:
            steps.close()

    def close(self) -> None:
        """Free what Python does not free by itself, such as an accelerator's process."""
        if not self.closed:
            self.closed = True
            self._close_model()


def _fail_all(streams: dict[Row, RowStream], message: str, device: str = "cpu") -> Iterator[Failed]:
    """Failed for every row that has not ended yet."""
    for stream in streams.values():
        if not stream.ended:
            yield Failed(message, stream.index, device)
