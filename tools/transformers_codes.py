"""Codes of transformers' own Dia, greedy in float32: what ours are compared with.

    python -m tools.transformers_codes FOLDER "[S1] Hello." -o codes.npy --frames 100

In a process of its own, since the weights fill the memory.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from dia_demo.checkpoint_config import read_model_config
from dia_demo.config import ModelConfig
from dia_demo.model.delay import apply_delay
from dia_demo.text.script import encode_script
from tools.torchaudio_guard import hide_broken_torchaudio

# Codes that guidance chooses among: transformers needs a number, ours has the same default.
TOP_K = 45
CFG_SCALE = 3.0


def generate(
    model,
    config: ModelConfig,
    text: bytes,
    cfg_scale: float,
    max_tokens: int,
    prompt: np.ndarray | None = None,
) -> np.ndarray:
    """Codes [frames, C] by transformers' own generate and the published delay rules.

    Its max_length leaves the tail of the delays outside, ours (as nari's) includes it.
    """
    from transformers import GenerationConfig

    decoder, lags = config.decoder, config.delay_pattern
    prompt = np.zeros((0, decoder.num_channels), np.int64) if prompt is None else prompt
    given = apply_delay(prompt, lags, decoder.bos)
    ids = torch.from_numpy(np.where(given < 0, decoder.pad, given))[None]
    settings = GenerationConfig(
        do_sample=False,
        guidance_scale=cfg_scale or None,
        top_k=TOP_K,
        eos_token_id=decoder.eos,
        pad_token_id=decoder.pad,
        bos_token_id=decoder.bos,
        decoder_start_token_id=decoder.bos,
    )
    text_ids = torch.tensor([list(text)])
    out = model.generate(
        input_ids=text_ids,
        attention_mask=torch.ones_like(text_ids),
        decoder_input_ids=ids,
        decoder_attention_mask=torch.ones(ids.shape[:2], dtype=torch.long),
        generation_config=settings,
        max_length=max_tokens - max(lags) + 1,
    )[0].numpy()
    end = int(np.argmax(out[:, 0] == decoder.eos))
    first = len(prompt) + 1
    return np.stack([out[first + lag : end + lag, c] for c, lag in enumerate(lags)], axis=1)


def max_tokens_for(config: ModelConfig, frames: int) -> int:
    """The max_tokens that leaves room for so many frames."""
    return frames + config.max_delay + 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("script")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--frames", type=int, default=100)
    options = parser.parse_args()
    hide_broken_torchaudio()
    from transformers import DiaForConditionalGeneration

    config = read_model_config(options.folder)
    model = DiaForConditionalGeneration.from_pretrained(options.folder, dtype=torch.float32).eval()
    text, most = encode_script(options.script), max_tokens_for(config, options.frames)
    codes = generate(model, config, text, CFG_SCALE, most)
    with open(options.output, "wb") as file:  # By its name, numpy would add a suffix.
        np.save(file, codes)


if __name__ == "__main__":
    main()
