"""Milliseconds a decoder step, ours beside transformers', alternating in one run.

    python -m tools.compare_speed FOLDER --precision bfloat16 --steps 40

FOLDER holds a checkpoint (tools/make_random_dia.py writes one of random weights: speed does not
depend on the values). Both decode one utterance with guidance, greedily; the median of the steps
counts, so that a noisy neighbour does not. transformers is a development dependency.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from dia_demo.config import GenerationParams
from dia_demo.engine.loop import Batch
from dia_demo.engine.rows import Row
from dia_demo.machine import granted_cores
from dia_demo.model import checkpoint
from dia_demo.model.linear import use_fastest
from dia_demo.text import encode_script
from tools.torchaudio_guard import hide_broken_torchaudio

SCRIPT = "[S1] Dia speaks on an ordinary processor. [S2] How fast? [S1] That is measured here."


def ours(folder: Path, precision: str, positions: int) -> Callable[[], None]:
    """A function that runs one step of this project's decoder."""
    loading = checkpoint.load(folder, precision)
    while True:
        try:
            next(loading)
        except StopIteration as stop:
            model = stop.value
            break
    params = GenerationParams(temperature=1.2, max_tokens=positions)
    row = Row(model.config, encode_script(SCRIPT), params)
    row.cache = model.encode(row.text, row.guidance, positions)
    use_fastest(model)
    return Batch(model, [row]).step


def transformers(folder: Path, precision: str, positions: int) -> Callable[[], None]:
    """A function that runs one step of transformers' Dia with its cache and guidance batch."""
    hide_broken_torchaudio()
    from transformers import DiaForConditionalGeneration
    from transformers.cache_utils import DynamicCache, EncoderDecoderCache

    dtype = checkpoint.DTYPES[precision]
    model = DiaForConditionalGeneration.from_pretrained(folder, dtype=dtype).eval()
    text = torch.tensor([list(encode_script(SCRIPT))])
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
    def run() -> None:
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

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--precision", choices=tuple(checkpoint.DTYPES), default="bfloat16")
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()
    torch.set_num_threads(granted_cores())
    positions = options.steps + 40
    sides = {
        "ours": ours(options.folder, options.precision, positions),
        "transformers": transformers(options.folder, options.precision, positions),
    }
    print(f"both loaded; timing {options.steps} steps of each", flush=True)
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(options.steps + 3):
        for name, run in sides.items():
            began = time.perf_counter()
            run()
            if number >= 3:  # the first steps fill caches and pick kernels
                times[name].append(time.perf_counter() - began)
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    for name, seconds in medians.items():
        spread = np.percentile(times[name], [10, 90]) * 1000
        print(f"{name:>13}: {1000 * seconds:7.1f} ms a step ({spread[0]:.1f} to {spread[1]:.1f})")
    print(f"ours is {medians['transformers'] / medians['ours']:.2f} times as fast")


if __name__ == "__main__":
    main()
