"""The loss of quality with fewer bits: each precision compared with float32.

Teacher-forced: float32 generates takes, and every precision predicts each step from the codes of
these takes. For the embedded voice, free-running takes are also transcribed by a recogniser.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dia_demo.engine.engine import Engine
from dia_demo.engine.row import Row
from dia_demo.engine.rows.base_row import BaseRow
from dia_demo.engine.scheduler import run_to_end
from dia_demo.errors import DiaDemoError
from dia_demo.model.dia2.forced import FrameRecording, Recorder
from dia_demo.model.dia2.forced import forced_logits as frame_logits
from dia_demo.model.dia2.torch_model import TorchDia2
from dia_demo.model.linear import SMALL_WEIGHTS
from dia_demo.services.measurements import words
from dia_demo.services.measurements.fixtures import guided_params, load_engine
from dia_demo.services.measurements.types import Job, PrecisionQuality, QualityResult
from dia_demo.services.worker.messages import ReportProgress

REFERENCE = "float32"
FORCED_TAKES = 8
# A large model needs a quarter of a second per step in float32, so it gets two short takes.
LARGE_TAKES, LARGE_TOKENS = 2, 180
TOGETHER = 8


@dataclass(frozen=True)
class Forced:
    """A take in float32: its row's text and parameters, and the codes [steps, F * C] it read, or
    what a row of Dia2 read and drew.

    guidance: how far the guided logits are beyond the conditional ones, in differences.
    """

    row: BaseRow
    codes: np.ndarray | FrameRecording
    guidance: float


def run_job(job: Job, report_progress: ReportProgress) -> QualityResult:
    """KL divergence and top-1 agreement by channel for each precision of the job, and word error.

    A precision that fails has an error in their place; a failure of float32 ends the job.
    """
    others = (name for name in job.precisions if name not in (REFERENCE, "auto"))
    precisions = [REFERENCE, *others]
    comparison = _Comparison(job)
    for number, precision in enumerate(precisions):
        try:
            comparison.precisions[precision] = comparison.measure(
                precision, _part_of(report_progress, precision, number, len(precisions))
            )
        except (DiaDemoError, RuntimeError) as error:
            if precision == REFERENCE:
                raise
            comparison.precisions[precision] = PrecisionQuality(error=str(error))
        done = (number + 1) / len(precisions)
        report_progress(f"{precision}: done", done, **comparison.result().to_json())
    return comparison.result()


def _part_of(
    report_progress: ReportProgress, precision: str, number: int, count: int
) -> ReportProgress:
    """Converts the progress of one of several precisions to that of the whole job."""

    def report(doing: str, fraction: float, /, **_: object) -> None:
        report_progress(f"{precision}: {doing}", (number + fraction) / count)

    return report


class _Comparison:
    """The takes and logits of float32, and the other precisions compared with them."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.takes: list[Forced] = []
        self.expected: list[Tensor] = []
        self.precisions: dict[str, PrecisionQuality] = {}
        self.note: str | None = None

    def result(self) -> QualityResult:
        """The results so far."""
        return QualityResult(
            reference=REFERENCE,
            takes=len(self.takes),
            steps=sum(map(len, self.expected)),
            precisions=dict(self.precisions),
            word_error_note=self.note,
        )

    def measure(self, precision: str, report_progress: ReportProgress) -> PrecisionQuality:
        """The figures of one precision; the first must be float32."""

        def report_loading(doing: str, fraction: float, /, **_: object) -> None:
            report_progress(doing, fraction / 5)

        engine = load_engine(replace(self.job, precision=precision), report_loading)
        if not self.takes:
            report_progress("making takes", 0.2)
            self.takes = make_takes(engine)
        report_progress("the same codes again", 0.4)
        logits = [forced_logits(engine.model, take) for take in self.takes]
        self.expected = self.expected or logits
        quality = compare(self.expected, logits, self.takes, engine.config.num_codes)
        if not engine.info.is_embedded:
            return quality
        report_progress("listening", 0.6)
        word_error, self.note = heard_error(engine, self.job.sentences)
        return replace(quality, word_error=word_error)


# Teacher-forced


def make_takes(engine: Engine) -> list[Forced]:
    """Takes with the checkpoint's default parameters, seeds 0, 1, 2..."""
    info, config, params = engine.info, engine.config, guided_params(engine.config)
    small = info.family.weights.step(config) < SMALL_WEIGHTS
    if not small:
        params = replace(params, max_tokens=min(LARGE_TOKENS, params.max_tokens))
    made = [
        info.family.row(config, info.family.encode(script, ""), replace(params, seed=seed))
        for seed, script in enumerate(scripts(FORCED_TAKES if small else LARGE_TAKES))
    ]
    if isinstance(engine.model, TorchDia2):
        recorder = Recorder(engine.model)
        run_to_end(recorder, made)
        pairs = zip(made, recorder.recordings, strict=True)
        return [Forced(row, read, row.params.cfg_scale - 1) for row, read in pairs]
    run_to_end(engine.model, made)
    rows = [row for row in made if isinstance(row, Row)]
    return [Forced(row, row.previous_inputs, row.params.cfg_scale) for row in rows]


def scripts(count: int) -> list[str]:
    """Sentences for the two speakers in turn."""
    return [f"[S{1 + n % 2}] {text}" for n, text in enumerate(words.SENTENCES[:count])]


@torch.inference_mode()
def forced_logits(model: Any, take: Forced) -> Tensor:
    """Conditional and unconditional logits [frames, 2, C, V] along the codes of a take; where
    guidance is distilled, one branch [frames, 1, C, V]."""
    if isinstance(take.codes, FrameRecording):
        return frame_logits(model, take.codes)
    row = take.row
    assert isinstance(row, Row), "of Dia"
    cache = model.encode(row.text, row.params.cfg_scale, row.max_steps + 1)
    steps = torch.from_numpy(take.codes).unflatten(1, (model.config.frames_per_step, -1))
    logits = []
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        logits.append(
            model(step.expand(cache.branches, 1, -1, -1).flatten(2), [cache])[:, 0].clone()
        )
        if following is None:  # The frames after the last step are not known.
            break
        for number, codes in enumerate(following[:-1], start=1):
            frame = codes.expand(cache.branches, -1)
            logits.append(model.next_frame(frame, [cache], number).clone())
    return torch.stack(logits)


def compare(
    expected: Sequence[Tensor], actual: Sequence[Tensor], takes: Sequence[Forced], codes: int
) -> PrecisionQuality:
    """Compare `actual` with `expected`, both logits [frames, branches, C, V] of each take.

    kl: KL divergence in nats of the sampled distribution (conditional, temperature 1) per channel.
    top1: per channel, the share of steps with the same most likely code after guidance.
    """
    kl, same = [], []
    for e, f, take in zip(expected, actual, takes, strict=True):
        lag = take.row.config.max_delay
        # Within the delays and after the end, a channel's codes are not sampled.
        steps = slice(lag, max(lag + 1, len(e) - lag))
        e, f = (logits[steps, ..., : codes + 1].double() for logits in (e, f))
        p, q = e[:, 0].log_softmax(-1), f[:, 0].log_softmax(-1)
        kl.append((p.exp() * (p - q)).sum(-1))
        scale = take.guidance
        best = [(x[:, 0] + scale * (x[:, 0] - x[:, -1]))[..., :codes].argmax(-1) for x in (e, f)]
        same.append((best[0] == best[1]).double())
    kl_C, same_C = torch.cat(kl).mean(0), torch.cat(same).mean(0)
    return PrecisionQuality(
        kl=tuple(kl_C.tolist()),
        kl_mean=kl_C.mean().item(),
        top1=tuple(same_C.tolist()),
        top1_mean=same_C.mean().item(),
    )


# Recognition


def heard_error(engine: Engine, count: int) -> tuple[float | None, str | None]:
    """(word error of `count` free-running takes, None), or (None, why it was not measured)."""
    try:
        recogniser = words.Recogniser()
    except ImportError:
        return None, words.GET_IT
    if engine.info.sample_rate != words.SAMPLE_RATE:
        return None, f"the recogniser only supports {words.SAMPLE_RATE} Hz"
    texts = scripts(count)
    heard = [recogniser.hear(samples) for samples in speak(engine, texts)]
    return words.word_error(texts, heard), None


def speak(engine: Engine, texts: Sequence[str]) -> Iterator[np.ndarray]:
    """The samples of a take of each script, with seeds 0, 1, 2... and the default parameters."""
    params, family = engine.config.defaults, engine.info.family
    for start in range(0, len(texts), TOGETHER):
        rows = [
            family.row(engine.config, family.encode(text, ""), replace(params, seed=start + number))
            for number, text in enumerate(texts[start : start + TOGETHER])
        ]
        run_to_end(engine.model, rows)
        for row in rows:
            yield engine.codec.decode(row.codes())
