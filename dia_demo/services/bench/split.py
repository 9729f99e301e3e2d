"""The parts of a frame of Dia2, each with its limit."""

from __future__ import annotations

from dataclasses import dataclass

from dia_demo.services.measurements.types import FrameSplit, RunResult


@dataclass(frozen=True)
class SplitReport:
    """Milliseconds of a frame of all rows together, with decoding, and the limits of its parts.

    temporal_limit_ms, depth_memory_ms: reading the weights from memory once; None where the
    bandwidth is not known. depth_limit_ms: the depth's products at the rate that they reach with
    weights in the nearest cache. codec_ms: decoding the frames.
    """

    temporal_ms: float
    depth_ms: float
    drawing_ms: float
    codec_ms: float
    rest_ms: float
    depth_limit_ms: float
    temporal_limit_ms: float | None
    depth_memory_ms: float | None

    @property
    def whole_ms(self) -> float:
        return self.temporal_ms + self.depth_ms + self.codec_ms + self.rest_ms


def split_report(run: RunResult, split: FrameSplit, read_gb_s: float | None) -> SplitReport:
    """The parts of a run's frames. read_gb_s: the machine's bandwidth, if it is known."""
    return SplitReport(
        temporal_ms=split.temporal_ms,
        depth_ms=split.depth_ms,
        drawing_ms=split.drawing_ms,
        codec_ms=1000 * run.rows / run.frames_per_second / run.realtime_codec,
        rest_ms=split.rest_ms,
        depth_limit_ms=split.depth_weights / split.weights_per_ms,
        temporal_limit_ms=split.temporal_bytes / read_gb_s / 1e6 if read_gb_s else None,
        depth_memory_ms=split.depth_bytes / read_gb_s / 1e6 if read_gb_s else None,
    )


def as_sentence(split: SplitReport) -> str:
    """For people, on one line."""
    return (
        f"{split.whole_ms:.1f} ms a frame with its sound: temporal {split.temporal_ms:.1f} ms "
        f"(memory: {_share(split.temporal_limit_ms, split.temporal_ms)}), depth "
        f"{split.depth_ms:.1f} ms (instructions: {_share(split.depth_limit_ms, split.depth_ms)}; "
        f"memory: {_share(split.depth_memory_ms, split.depth_ms)}), of which drawing codes "
        f"{split.drawing_ms:.1f} ms; codec {split.codec_ms:.1f} ms, rest {split.rest_ms:.1f} ms"
    )


def _share(limit: float | None, reached: float) -> str:
    if limit is None:
        return "limit not known"
    return f"at least {limit:.1f} ms, {limit / reached:.0%} reached"
