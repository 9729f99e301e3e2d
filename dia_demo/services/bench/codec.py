"""How fast the codec decodes: a take whole, and the same take as it arrives."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np
import torch

from dia_demo.codec.codec import Codec
from dia_demo.services.bench.fixtures import load_any_codec
from dia_demo.services.bench.worker import Say
from dia_demo.system import granted_cores, peak_rss_bytes

# As long as it takes for the stream's blocks to have their full length for most of the time; less
# where decoding it once is expected to take more than DECODE_SECONDS.
AUDIO_SECONDS, DECODE_SECONDS = 10.0, 4.0
REPEATS = 3
# Frames that arrive together: a fifth of a second on a machine that keeps up.
ARRIVING = 17


def job(job: dict, say: Say) -> dict:
    """The codec's figures: factors are seconds of audio over seconds of decoding.

    realtime_whole and realtime_streamed are of the form that this machine chose; float32, kept for
    reference, is measured beside it.
    """
    torch.set_num_threads(job.get("threads") or granted_cores())
    say("Loading the codec", 0.0)
    began = perf_counter()
    codec = load_any_codec(job)
    loaded = perf_counter() - began
    choice = codec.choice
    found = {"load_seconds": loaded, "precision": choice.precision, "form": choice.backend}
    found |= {"reason": choice.reason, "source": codec.source}
    say("Preparing the codec", 0.2, **found)
    codes = random_codes(codec, job.get("seconds", AUDIO_SECONDS))
    found["prepare_seconds"] = timed(lambda: codec.decode(codes[: len(codes) // 4]))
    codes = codes[: affordable_frames(codec, codes, DECODE_SECONDS)]
    seconds = len(codes) / codec.frames_per_second
    found["audio_seconds"] = seconds
    whole, streamed = [], []
    for turn in range(REPEATS):
        say("Decoding a whole take", 0.3 + 0.2 * turn, **found)
        whole.append(timed(lambda: codec.decode(codes)))
        found["realtime_whole"] = seconds / min(whole)
        say("Decoding as it arrives", 0.4 + 0.2 * turn, **found)
        streamed.append(timed(lambda: stream(codec, codes)))
        found["realtime_streamed"] = seconds / min(streamed)
        found["streamed_over_whole"] = min(streamed) / min(whole)
    found["peak_rss_bytes"] = peak_rss_bytes()
    say("Decoding in float32", 0.9, **found)
    return found | {"realtime_float32": _float32_rate(codec, codes, job)}


def affordable_frames(codec: Codec, codes_TC: np.ndarray, seconds: float) -> int:
    """How many of these frames can be decoded in about so many seconds; at least a few."""
    few = codes_TC[: max(2 * ARRIVING, len(codes_TC) // 8)]
    per_frame = timed(lambda: codec.decode(few)) / len(few)
    return min(len(codes_TC), max(len(few), int(seconds / per_frame)))


def _float32_rate(codec: Codec, codes_TC: np.ndarray, job: dict) -> float | None:
    """None where float32 is what was chosen anyway."""
    if codec.choice.precision == "float32":
        return None
    codes_TC = codes_TC[: len(codes_TC) // 2]
    exact = load_any_codec(job, "float32")
    exact.decode(codes_TC[: len(codes_TC) // 4])
    return len(codes_TC) / exact.frames_per_second / timed(lambda: exact.decode(codes_TC))


def random_codes(codec: Codec, seconds: float) -> np.ndarray:
    """Codes int64 [T, C] of so much audio: speed does not depend on what is said."""
    frames = max(2 * ARRIVING, round(seconds * codec.frames_per_second))
    seed = np.random.default_rng(0)
    return seed.integers(0, codec.codebook_size, (frames, codec.num_codebooks))


def stream(codec: Codec, codes_TC: np.ndarray) -> None:
    """Decode codes as they arrive during a take."""
    decoding = codec.stream()
    for start in range(0, len(codes_TC), ARRIVING):
        decoding.push(codes_TC[start : start + ARRIVING])
    decoding.finish()


def timed(run: Callable[[], object]) -> float:
    """Seconds that `run` takes."""
    began = perf_counter()
    run()
    return perf_counter() - began
