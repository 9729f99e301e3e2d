"""Milliseconds a decoder step, ours in every precision beside transformers', in one run.

    python -m tools.compare_speed                          # Dia-1.6B's size, random weights
    python -m tools.compare_speed FOLDER --precision bfloat16 --steps 40
    python -m tools.compare_speed --precision int8 --rows 1 2 8 --codec

All sides lie in memory together and take five steps in turn, so that a noisy neighbour disturbs
all of them alike; the median counts. Each utterance has guidance (two branches). FOLDER holds a
checkpoint (tools/make_random_dia.py writes one); without it weights are drawn at random, since
speed does not depend on the values. transformers, a development dependency, runs in the dtype that
is fastest for it on this processor, which a trial on a few layers finds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from dia_demo.config import ModelConfig
from dia_demo.engine.decoder_model import DecoderModel
from dia_demo.engine.scheduler import run
from dia_demo.machine.system import granted_cores
from dia_demo.services.bench.plan import MEASURED
from dia_demo.services.measurements.codec import streamed_rate
from dia_demo.services.measurements.fixtures import load_engine, make_rows
from dia_demo.services.measurements.types import Job, JobKind
from tools.make_random_dia import config_json
from tools.torchaudio_guard import hide_broken_torchaudio

THEIRS = "transformers"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
TRIAL_LAYERS, TRIAL_STEPS = 2, 8
TEXT_BYTES = 80
TURN = 5  # steps that count before another side goes on
CODEC_SECONDS, DECODE_SECONDS = 6.0, 4.0

Step = Callable[[], None]


def ours(model: DecoderModel, rows: int, tokens: int) -> Step:
    """A function that runs one step of `rows` utterances, sampling included."""
    together = make_rows(model.config, rows, TEXT_BYTES, tokens)
    stepping: Iterator = run(model, together)

    def step() -> None:
        for _ in together:
            next(stepping)

    return step


def fastest_dtype() -> str:
    """The name of the dtype in which transformers' steps are fastest here, by a few layers."""
    config = config_json(ModelConfig())
    for part in ("encoder_config", "decoder_config"):
        config[part] = config[part] | {"num_hidden_layers": TRIAL_LAYERS}
    seconds = {}
    for name, dtype in DTYPES.items():
        step = transformers(random_transformers(config, dtype))
        step()
        seconds[name] = min(time_step(step) for _ in range(TRIAL_STEPS))
    return min(seconds, key=seconds.__getitem__)


def transformers(model) -> Step:
    """A function that runs one step of transformers' Dia with its cache and guidance batch."""
    from transformers.cache_utils import DynamicCache, EncoderDecoderCache

    text = torch.randint(1, 128, (1, TEXT_BYTES))
    ids = torch.cat([text, torch.zeros_like(text)])
    mask = torch.ones_like(ids)
    with torch.inference_mode():
        states = model.model.encoder(input_ids=ids, attention_mask=mask)
    cache = EncoderDecoderCache(
        DynamicCache(config=model.config.decoder_config),
        DynamicCache(config=model.config.decoder_config),
    )
    bos = model.config.decoder_config.bos_token_id
    codes = torch.full((2, 1, model.config.decoder_config.num_channels), bos)

    @torch.inference_mode()
    def step() -> None:
        nonlocal codes
        out = model(
            encoder_outputs=states,
            attention_mask=mask,
            decoder_input_ids=codes,
            past_key_values=cache,
            use_cache=True,
        )
        logits = out.logits.view(2, codes.shape[2], -1)
        guided = logits[:1] + 3.0 * (logits[:1] - logits[1:])
        codes = guided[..., : bos - 2].argmax(-1)[:, None].expand(2, -1, -1)

    return step


def transformers_model(folder: Path | None, dtype: torch.dtype):
    """transformers' Dia, of a checkpoint or of random weights."""
    from transformers import DiaForConditionalGeneration

    if folder is None:
        return random_transformers(config_json(ModelConfig()), dtype)
    return DiaForConditionalGeneration.from_pretrained(folder, dtype=dtype).eval()


def random_transformers(config: dict, dtype: torch.dtype):
    """transformers' Dia of this shape with random weights."""
    from transformers import DiaConfig, DiaForConditionalGeneration

    config = DiaConfig.from_dict(config)
    with torch.device("meta"):
        empty = DiaForConditionalGeneration(config)
    # Every weight is written: memory that never was reads from one page of zeros, in no time.
    weights = {
        name: torch.empty(weight.shape, dtype=dtype).uniform_(-0.03, 0.03)
        for name, weight in empty.state_dict().items()
    }
    return DiaForConditionalGeneration.from_pretrained(
        None, config=config, state_dict=weights, dtype=dtype
    ).eval()


def time_step(step: Step) -> float:
    """Seconds that a step takes."""
    began = time.perf_counter()
    step()
    return time.perf_counter() - began


def take_turns(sides: dict[str, Step], steps: int) -> dict[str, list[float]]:
    """Seconds of each side's steps, TURN at a time, at least `steps` of them.

    The first of a turn is left out: threads of the side before still wait by spinning.
    """
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(turns(steps)):
        for name, step in sides.items():
            step()
            times[name] += [time_step(step) for _ in range(TURN)]
    return times


def turns(steps: int) -> int:
    """How many turns of a side hold so many steps that count."""
    return -(-steps // TURN)


def row_name(precision: str, rows: int) -> str:
    """What a side of ours is called."""
    return f"ours, {precision}" + (f", {rows} together" if rows > 1 else "")


def print_times(times: dict[str, list[float]]) -> None:
    """A line a side: its milliseconds, and how many times as fast as transformers it is."""
    medians = {name: 1000 * statistics.median(seconds) for name, seconds in times.items()}
    theirs = next((ms for name, ms in medians.items() if name.startswith(THEIRS)), None)
    print(f"{'ms a step':<30} {'median':>7} {'10-90%':>14} {'against transformers':>21}")
    for name, ms in medians.items():
        low, high = 1000 * np.percentile(times[name], [10, 90])
        ratio = f"{theirs / ms:.2f} times as fast" if theirs and "together" not in name else ""
        print(f"{name:<30} {ms:7.1f} {low:6.1f}-{high:<7.1f} {ratio:>21}")
    for name, ms in medians.items():
        one = medians.get(name.rsplit(", ", 1)[0])
        if name.endswith("together") and one:
            print(f"{name}: {ms / one:.2f} times a step of one")


def print_together(engine, name: str, rows: int, ms: float, decoding: float | None) -> None:
    """The summed realtime factor of several utterances; with the codec's rate, its share too."""
    tokens = rows / (engine.info.codec.frames_per_second * ms / 1000)
    line = f"{name}: {tokens:.2f}x realtime summed, tokens alone"
    if decoding:
        whole = 1 / (1 / tokens + 1 / decoding)
        line += f"; {whole:.2f}x with the codec at {decoding:.2f}x"
    print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--precision", nargs="+", choices=MEASURED, default=MEASURED[1:])
    parser.add_argument("--rows", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--codec", action="store_true", help="count decoding in, for several rows")
    parser.add_argument("--no-transformers", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(granted_cores())
    size = None if options.folder else "dia-1.6b"
    job = Job(JobKind.RUN, str(options.folder), random=size)
    sides: dict[str, Step] = {}
    engines = {}
    for precision in options.precision:
        engine = load_engine(replace(job, precision=precision), lambda *_: None)
        print(f"loaded in {precision}", flush=True)
        for rows in options.rows:
            name = row_name(precision, rows)
            engines[name] = engine
            sides[name] = ours(engine.model, rows, turns(options.steps) * (TURN + 1) + 40)
    if not options.no_transformers:
        hide_broken_torchaudio()
        dtype = fastest_dtype()
        model = transformers_model(options.folder, DTYPES[dtype])
        sides[f"{THEIRS}, {dtype}"] = transformers(model)
    print(f"all loaded; timing {options.steps} steps of each", flush=True)
    times = take_turns(sides, options.steps)
    print_times(times)
    decoding = None
    if options.codec:
        codec = next(iter(engines.values())).codec
        decoding = streamed_rate(codec, CODEC_SECONDS, DECODE_SECONDS)
    for name, engine in engines.items():
        rows = int(name.split(", ")[-1].split()[0]) if name.endswith("together") else 1
        ms = 1000 * statistics.median(times[name])
        print_together(engine, name, rows, ms, decoding)


if __name__ == "__main__":
    main()
