"""The speed of the codec: decoding a whole take at once, and streamed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

import numpy as np
import torch

from dia_demo.codec.codec import Codec
from dia_demo.machine.system import granted_cores, peak_rss_bytes
from dia_demo.services.measurements.fixtures import load_any_codec
from dia_demo.services.measurements.types import CodecResult, Job
from dia_demo.services.worker.messages import ReportProgress

# Long enough for most of the stream's blocks to have their full length; less if decoding it once is
# expected to take more than DECODE_SECONDS.
AUDIO_SECONDS, DECODE_SECONDS = 10.0, 4.0
REPEATS = 3
# Frames per push: a fifth of a second on a machine as fast as playback.
ARRIVING = 17


def run_job(job: Job, report_progress: ReportProgress) -> CodecResult:
    """The codec in the precision and backend chosen on this machine, and in float32."""
    torch.set_num_threads(job.threads or granted_cores())
    report_progress("Loading the codec", 0.0)
    began = perf_counter()
    codec = load_any_codec(job)
    loaded, choice = perf_counter() - began, codec.choice
    result = CodecResult(loaded, choice.precision, choice.backend, choice.reason, codec.source)

    def report(doing: str, fraction: float) -> None:
        report_progress(doing, fraction, **result.to_json())

    report("Preparing the codec", 0.2)
    codes = random_codes(codec, job.codec_seconds or AUDIO_SECONDS)
    prepared = measure_seconds(lambda: codec.decode(codes[: len(codes) // 4]))
    codes = codes[: affordable_frames(codec, codes, DECODE_SECONDS)]
    seconds = len(codes) / codec.frames_per_second
    result = replace(result, prepare_seconds=prepared, audio_seconds=seconds)
    whole, streamed = [], []
    for turn in range(REPEATS):
        report("Decoding a whole take", 0.3 + 0.2 * turn)
        whole.append(measure_seconds(lambda: codec.decode(codes)))
        result = replace(result, realtime_whole=seconds / min(whole))
        report("Decoding as it arrives", 0.4 + 0.2 * turn)
        streamed.append(measure_seconds(lambda: stream(codec, codes)))
        result = replace(
            result,
            realtime_streamed=seconds / min(streamed),
            streamed_over_whole=min(streamed) / min(whole),
        )
    result = replace(result, peak_rss_bytes=peak_rss_bytes())
    report("Decoding in float32", 0.9)
    return replace(result, realtime_float32=_float32_rate(codec, codes, job), complete=True)


def affordable_frames(codec: Codec, codes_TC: np.ndarray, seconds: float) -> int:
    """How many of these frames can be decoded in about `seconds`; at least a few."""
    few = codes_TC[: max(2 * ARRIVING, len(codes_TC) // 8)]
    per_frame = measure_seconds(lambda: codec.decode(few)) / len(few)
    return min(len(codes_TC), max(len(few), int(seconds / per_frame)))


def _float32_rate(codec: Codec, codes_TC: np.ndarray, job: Job) -> float | None:
    """Seconds of audio per second in float32; None if float32 is the chosen precision."""
    if codec.choice.precision == "float32":
        return None
    codes_TC = codes_TC[: len(codes_TC) // 2]
    exact = load_any_codec(job, "float32")
    exact.decode(codes_TC[: len(codes_TC) // 4])
    return len(codes_TC) / exact.frames_per_second / measure_seconds(lambda: exact.decode(codes_TC))


def streamed_rate(codec: Codec, audio_seconds: float, decode_seconds: float) -> float:
    """Seconds of audio per second, streamed: the better of two takes, each of the length that is
    expected to take at most `decode_seconds`."""
    codes = random_codes(codec, audio_seconds)
    codes = codes[: affordable_frames(codec, codes, decode_seconds)]
    took = min(measure_seconds(lambda: stream(codec, codes)) for _ in range(2))
    return len(codes) / codec.frames_per_second / took


def random_codes(codec: Codec, seconds: float) -> np.ndarray:
    """Random codes int64 [T, C] for `seconds` of audio; speed does not depend on the values."""
    frames = max(2 * ARRIVING, round(seconds * codec.frames_per_second))
    seed = np.random.default_rng(0)
    return seed.integers(0, codec.codebook_size, (frames, codec.num_codebooks))


def stream(codec: Codec, codes_TC: np.ndarray) -> None:
    """Decode codes as they arrive during a take."""
    decoding = codec.stream()
    for start in range(0, len(codes_TC), ARRIVING):
        decoding.push(codes_TC[start : start + ARRIVING])
    decoding.finish()


def measure_seconds(run: Callable[[], object]) -> float:
    """Seconds that `run` takes."""
    began = perf_counter()
    run()
    return perf_counter() - began
