"""The sizes of what is measured: models with random weights, texts, and steps before the timing."""

from __future__ import annotations

from dia_demo.config import DecoderConfig, EncoderConfig, ModelConfig

# Models with random weights: speed and memory do not depend on the values. tiny is for trying out.
RANDOM_SIZES = {
    "dia-1.6b": ModelConfig(),
    "tiny": ModelConfig(
        encoder=EncoderConfig(2, 32, 2, 2, 16, 64),
        decoder=DecoderConfig(2, 64, 4, 2, 16, 2, 2, 16, 96, max_positions=512),
    ),
}
WARM_STEPS, TEXT_BYTES = 5, 120
