"""What to measure: one frozen plan, checked before anything is loaded."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dia_demo.config import PRECISIONS, Range, RuntimeConfig
from dia_demo.engine.family import ModelInfo
from dia_demo.engine.loading.memory import fitting_precisions, gb, needed_bytes
from dia_demo.errors import InputError
from dia_demo.families.resolve import random_sizes
from dia_demo.machine import system
from dia_demo.services.measurements.sizes import TEXT_BYTES, model_info, warm_steps

MEASURED = tuple(name for name in PRECISIONS if name != "auto")
ROWS = Range(1, 16, whole=True)


@dataclass(frozen=True)
class BenchPlan:
    """One benchmark.

    model: nano, a folder, or a hub name that has been downloaded; random: a name of `random_sizes`
    in its place. precisions may contain "auto"; MEASURED stands for all that the weights can be
    loaded in. rows: utterances decoded together, each with guidance. steps: timed after
    `warm_steps`. quality: compare precisions with float32.
    """

    model: str = "nano"
    random: str | None = None
    precisions: tuple[str, ...] = MEASURED
    rows: tuple[int, ...] = (1,)
    steps: int = 60
    text_bytes: int = TEXT_BYTES
    threads: int | None = None
    quality: bool = False
    sentences: int = 32

    @property
    def name(self) -> str:
        """The model's name for people."""
        return random_sizes()[self.random].title if self.random else self.model

    @property
    def title(self) -> str:
        """What is measured, for people."""
        return f"{self.name}, random weights" if self.random else self.name

    @property
    def info(self) -> ModelInfo:
        """The measured model. Raises InputError if there is none."""
        return model_info(self.model, self.random)

    def memory_shortage(self) -> str | None:
        """Why no precision fits into this machine's memory; None if at least one fits."""
        available = system.memory_bytes()
        info = self.info
        if available is None or fitting_precisions(info, available):
            return None
        least = min(needed_bytes(info, precision) for precision in info.config.precisions)
        return f"it needs {gb(least)}, and this machine has {gb(available)}"

    def runtime(self, precision: str) -> RuntimeConfig:
        """The runtime of this plan's runs in a precision."""
        return RuntimeConfig(self.model, precision, threads=self.threads)

    def check(self) -> BenchPlan:
        """The same plan, or an InputError that names the invalid value and the allowed ones.

        A hub model that is not on this machine is rejected: a benchmark downloads nothing.
        """
        for precision in self.precisions:
            if precision not in PRECISIONS:
                allowed = ", ".join(PRECISIONS)
                raise InputError(f"precision must be one of {allowed}, not {precision!r}.")
        if not self.precisions or not self.rows:
            raise InputError("Give at least one precision and one number of rows.")
        for rows in self.rows:
            ROWS.check("rows", rows)
        self._check_model()
        config = self.info.config
        frames = config.decoder.max_positions - config.max_delay - 2
        most = frames // config.frames_per_step - warm_steps(config)
        Range(1, most, whole=True).check("steps", self.steps)
        Range(1, config.encoder.max_positions, whole=True).check("text-bytes", self.text_bytes)
        all_of_them = config.precisions if self.precisions == MEASURED else self.precisions
        once = tuple(dict.fromkeys(all_of_them))
        return replace(self, precisions=once, rows=tuple(dict.fromkeys(self.rows)))

    def _check_model(self) -> None:
        if self.random is not None:
            if self.random not in random_sizes():
                sizes = ", ".join(random_sizes())
                raise InputError(f"random-weights must be one of {sizes}, not {self.random!r}.")
            if self.quality:
                raise InputError("The quality of random weights cannot be compared: give --model.")
        elif self.info.folder is None:
            instead = "".join(
                f" Or use --random-weights {name}, which has the same speed."
                for name, size in random_sizes().items()
                if size.stands_for == self.model
            )
            raise InputError(
                f"{self.model} is not on this machine, and the benchmark downloads nothing: "
                f"generate a take with the model first.{instead}"
            )
        elif self.quality and (prepared := self.info.config.prepared) is not None:
            raise InputError(
                f"The quality of {self.model} cannot be compared: its weights were prepared in "
                f"{prepared.precision}, without those in float32. Use --model {prepared.base}."
            )
