"""Settings in three lifetimes, which never mix.

`ModelConfig` describes a checkpoint (`checkpoint_config` reads it); `RuntimeConfig` says how a
model runs on this machine; `GenerationParams` belongs to one row (one take). No torch here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dia_demo.errors import InputError

PRECISIONS = ("auto", "float32", "bfloat16", "int8", "int4")
# cuda goes through the same self-check as xpu; the page does not offer it.
DEVICES = ("cpu", "xpu", "cuda")


@dataclass(frozen=True)
class Range:
    """Allowed values of one number, both ends included."""

    low: float
    high: float
    whole: bool = False

    def check(self, name: str, value: float) -> None:
        """Raise InputError, naming the field, the value and the range, unless `value` is inside."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and self.low <= value <= self.high and (not self.whole or value == int(value)):
            return
        kind = "a whole number" if self.whole else "a number"
        raise InputError(
            f"{name} must be {kind} from {self.low:.10g} to {self.high:.10g}, not {value!r}."
        )


SEED_LIMIT = 2**32 - 1


@dataclass(frozen=True)
class GenerationParams:
    """How one row is sampled.

    temperature: 0 is greedy. cfg_scale: guided = cond + cfg_scale * (cond - uncond), so 0 is off.
    top_k counts the codes kept per channel; top_p is the probability mass kept. max_tokens is an
    absolute position: it includes a voice prompt and the tail that undoes the delays.
    """

    temperature: float = 1.2
    cfg_scale: float = 3.0
    top_p: float = 0.95
    top_k: int = 45
    max_tokens: int = 3072
    seed: int = 0

    def checked(self, config: ModelConfig) -> GenerationParams:
        """The same parameters, or an InputError that names the first field out of range."""
        for name, allowed in self.limits(config).items():
            allowed.check(name, getattr(self, name))
        whole = ("top_k", "max_tokens", "seed")
        return replace(self, **{name: int(getattr(self, name)) for name in whole})

    @staticmethod
    def limits(config: ModelConfig) -> dict[str, Range]:
        """What each field may be with this checkpoint."""
        return {
            "temperature": Range(0.0, 5.0),
            "cfg_scale": Range(0.0, 20.0),
            "top_p": Range(0.01, 1.0),
            "top_k": Range(1, config.decoder.vocab_size, whole=True),
            "max_tokens": Range(
                config.shortest_max_tokens, config.decoder.max_positions, whole=True
            ),
            "seed": Range(0, SEED_LIMIT, whole=True),
        }


@dataclass(frozen=True)
class RuntimeConfig:
    """Which model runs where and how. `threads` None means one per core really granted.

    insist: run on an accelerator although it was slower than the CPU in its race.
    """

    model: str = "nano"
    precision: str = "auto"
    device: str = "cpu"
    threads: int | None = None
    insist: bool = False

    def __post_init__(self) -> None:
        for name, allowed in (("precision", PRECISIONS), ("device", DEVICES)):
            value = getattr(self, name)
            if value not in allowed:
                raise InputError(f"{name} must be one of {', '.join(allowed)}, not {value!r}.")
        if self.threads is not None:
            Range(1, 1024, whole=True).check("threads", self.threads)


@dataclass(frozen=True)
class EncoderConfig:
    """Sizes of the text encoder. `max_positions` is the longest text in bytes."""

    num_layers: int = 12
    hidden_size: int = 1024
    num_heads: int = 16
    num_kv_heads: int = 16
    head_dim: int = 128
    intermediate_size: int = 4096
    vocab_size: int = 256
    max_positions: int = 1024
    norm_eps: float = 1e-5
    rope_theta: float = 10000.0


@dataclass(frozen=True)
class DecoderConfig:
    """Sizes of the audio decoder and its special codes. `max_positions` counts frames."""

    num_layers: int = 18
    hidden_size: int = 2048
    num_heads: int = 16
    num_kv_heads: int = 4
    head_dim: int = 128
    cross_num_heads: int = 16
    cross_num_kv_heads: int = 16
    cross_head_dim: int = 128
    intermediate_size: int = 8192
    vocab_size: int = 1028
    max_positions: int = 3072
    num_channels: int = 9
    eos: int = 1024
    pad: int = 1025
    bos: int = 1026
    norm_eps: float = 1e-5
    rope_theta: float = 10000.0


@dataclass(frozen=True)
class ModelConfig:
    """A Dia checkpoint's shape. The defaults are those of Dia-1.6B-0626."""

    encoder: EncoderConfig = EncoderConfig()
    decoder: DecoderConfig = DecoderConfig()
    delay_pattern: tuple[int, ...] = (0, 8, 9, 10, 11, 12, 13, 14, 15)
    defaults: GenerationParams = GenerationParams()

    @property
    def max_delay(self) -> int:
        return max(self.delay_pattern)

    @property
    def num_codes(self) -> int:
        """Codes below this are audio; EOS, PAD and BOS follow."""
        return self.decoder.eos

    @property
    def shortest_max_tokens(self) -> int:
        """BOS, one frame, and the tail that undoes the delays."""
        return self.max_delay + 2

    def frames_within(self, max_tokens: int, prompt_frames: int = 0) -> int:
        """New audio frames a row can yield before `max_tokens` cuts it."""
        return max_tokens - self.max_delay - 1 - prompt_frames
