"""What a Dia2 checkpoint's config.json says, as a `ModelConfig` with more in it.

`decoder` is the temporal transformer: its steps are frames, `eos` is where its codes end, and there
is no EOS among them. `encoder.max_positions` is the longest script in bytes; nothing else of the
encoder means anything here, because Dia2 reads its text as it speaks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from dia_demo.config import PRECISIONS, DecoderConfig, EncoderConfig, GenerationParams, ModelConfig

# What the guided logits have to be among, so that a code may be drawn (upstream: cfg_filter_k).
GUIDANCE_TOP = 50
# Of the action; the only two actions of the published models are never excluded by it.
ACTION_TOP_K = 50
# Steps after the largest delay that follow the end of the script, and the longest pause within it.
MAX_PADDING = 6
# Steps before the first word.
INITIAL_PADDING = 2
ACTION_NEW_WORD = 1
FRAMES_PER_SECOND = 12.5  # of Mimi
# Far more than fits into two minutes, and few enough to be checked at once.
SCRIPT_BYTES = 8000


@dataclass(frozen=True)
class TextIds:
    """Ids of the text vocabulary that no word has."""

    bos: int = 1
    new_word: int = 2
    pad: int = 3
    zero: int = 7


@dataclass(frozen=True)
class DepthConfig:
    """Sizes of the depth transformer. schedule: for each of its stages, the set of attention
    weights that it uses. apply_rope: rotate keys and queries by the stage."""

    num_layers: int = 3
    hidden_size: int = 1024
    num_heads: int = 8
    head_dim: int = 128
    intermediate_size: int = 3072
    schedule: tuple[int, ...] = (0,) * 8 + (1,) * 8 + (2,) * 15
    apply_rope: bool = True

    @property
    def sets(self) -> tuple[int, ...]:
        """The sets of attention weights."""
        return tuple(sorted(set(self.schedule)))


@dataclass(frozen=True)
class Dia2Config(ModelConfig):
    """A Dia2 checkpoint's shape. The defaults are those of Dia2-1B.

    text_vocab, text_width: of the text's table. actions: how many there are. second_stream_ahead:
    how many words ahead the second text stream is; 0: there is none. folder: where the tokenizer
    is; without one, as with random weights, a script is read byte by byte.
    """

    encoder: EncoderConfig = EncoderConfig(max_positions=SCRIPT_BYTES)
    decoder: DecoderConfig = DecoderConfig(
        num_layers=30,
        hidden_size=1024,
        num_heads=16,
        num_kv_heads=8,
        head_dim=128,
        intermediate_size=6144,
        vocab_size=2050,
        max_positions=1500,
        num_channels=32,
        eos=2048,
        pad=2049,
        bos=2048,
    )
    delay_pattern: tuple[int, ...] = (16,) + (18,) * 31
    defaults: GenerationParams = GenerationParams(
        temperature=0.8,
        text_temperature=0.6,
        cfg_scale=2.0,
        top_p=1.0,
        top_k=50,
        max_tokens=1500,
    )
    depth: DepthConfig = DepthConfig()
    text_ids: TextIds = TextIds()
    text_vocab: int = 49280
    text_width: int = 1024
    actions: int = 2
    second_stream_ahead: int = 2
    folder: Path | None = field(default=None, compare=False)

    @property
    def params(self) -> tuple[str, ...]:
        return ("temperature", "text_temperature", "cfg_scale", "top_k", "max_tokens", "seed")

    @property
    def cfg_scales(self) -> tuple[float, float]:
        return 1.0, 20.0

    @property
    def precisions(self) -> tuple[str, ...]:
        return PRECISIONS[1:] if self.prepared is None else (self.prepared.precision,)

    @property
    def stages(self) -> int:
        """Codebooks that the depth transformer draws: all but the first."""
        return self.decoder.num_channels - 1

    def branches(self, cfg_scale: float) -> int:
        """With guidance there are two. At scale 1 guided logits would be the conditional ones."""
        return 1 if cfg_scale == 1 else 2

    @property
    def light_steps(self) -> int:
        """Step t draws column t + 1, which nobody reads of a channel whose delay is longer. So
        the first steps have no depth part."""
        return max(0, min(self.delay_pattern[1:]) - 1)

    @property
    def shortest_max_tokens(self) -> int:
        """Two steps before the first word, and the delays of one frame."""
        return self.max_delay + INITIAL_PADDING + 1

    def frames_within(self, max_tokens: int, prompt_frames: int = 0) -> int:
        """Step t gives the column t + 1 of the delayed grid; a prompt's last step is repeated, and
        the frame that it belongs to is the first new one."""
        return max_tokens + 1 - self.max_delay - max(0, prompt_frames - 1)
