"""What is compared: checkpoints, scripts, voice prompts and settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from dia_demo.config import GenerationParams
from dia_demo.families.dia2.prompt import HeardWord, Recording
from dia_demo.model.dia2.config import Dia2Config
from tools.compare_dia2.make_random_dia2 import SMALL

SHORT = "[S1] Hello there, my friend. [S2] Who is it? [S1] It’s me: your neighbour."
WITH_BREAKS = 'Wait <break time="1.2s"/>a moment. [S2] Now<break time="0.5s" /> go on, please.'
# Without a mark, and with more words than a short context holds.
LONG = "one two three four five six seven eight nine ten eleven twelve " * 4

# Shapes that differ in everything that the code asks for.
CONFIGS = {
    "as published, small": SMALL,
    "one text stream": replace(SMALL, second_stream_ahead=0),
    "no rotation in the depth, a narrow text table": replace(
        SMALL, depth=replace(SMALL.depth, apply_rope=False), text_width=12
    ),
    "a short context": replace(
        SMALL, decoder=replace(SMALL.decoder, max_positions=60), second_stream_ahead=3
    ),
    "three actions, equal delays": replace(SMALL, actions=3, delay_pattern=(3,) * 6),
}


@dataclass(frozen=True)
class Comparison:
    """One generation. prompts: recordings of the speakers, in their order."""

    name: str
    script: str
    params: GenerationParams
    prompts: tuple[Recording, ...] = field(default=(), repr=False)


def comparisons(config: Dia2Config) -> Iterator[Comparison]:
    """The generations with one checkpoint."""
    defaults = config.defaults
    settings = {
        "greedy": replace(defaults, temperature=0.0, text_temperature=0.0),
        "greedy, no guidance": replace(
            defaults, temperature=0.0, text_temperature=0.0, cfg_scale=1.0
        ),
        "drawn": replace(defaults, seed=5),
        "drawn, scale 6, top-k 7": replace(defaults, seed=6, cfg_scale=6.0, top_k=7),
        "drawn, no guidance": replace(defaults, seed=7, cfg_scale=1.0),
    }
    scripts = {"short": SHORT, "breaks": WITH_BREAKS, "long": LONG}
    for setting, params in settings.items():
        for name, script in scripts.items():
            yield Comparison(f"{name}, {setting}", script, params)
        if config.decoder.max_positions >= 200:  # Upstream fails beyond its context.
            for count in (1, 2):
                prompts = (_recording(config, 0), _recording(config, 1))[:count]
                name = f"prompt of {count}, {setting}"
                yield Comparison(name, SHORT, params, prompts)


def _recording(config: Dia2Config, number: int) -> Recording:
    frames = (21, 17)[number]
    generator = np.random.default_rng(number)
    shape = frames, config.decoder.num_channels
    codes = generator.integers(0, config.num_codes, shape)
    texts = (("so", 0.1), ("we", 0.5), ("begin", 0.62)), (("yes,", 0.3), ("indeed", 0.9))
    words = [HeardWord(text, start, start + 0.3) for text, start in texts[number]]
    return Recording(codes, words)
