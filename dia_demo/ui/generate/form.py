"""The values of the Generate form: what they are, what they mean, what a reload brings back."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from dia_demo.config import SEED_LIMIT, GenerationParams, RuntimeConfig
from dia_demo.errors import InputError
from dia_demo.services.models import ModelInfo
from dia_demo.services.synthesis import Request, VoicePrompt, random_seed


@dataclass(frozen=True)
class Form:
    """One reading of the page's fields, in the order in which they are wired.

    seed None, blank or -1 asks for a random one. voice_prompt is the path of an upload.
    """

    script: str
    temperature: float
    cfg_scale: float
    max_tokens: int
    top_p: float
    top_k: int
    seed: str | float | None
    speed: float
    voice_prompt: str | None
    voice_transcript: str
    model: str
    precision: str
    xpu: bool

    def to_request(self, runtime: RuntimeConfig) -> Request:
        """The request for the services; what the page does not ask is taken from `runtime`.

        Raises InputError for a seed that is none and for an unknown precision.
        """
        voice = None
        if self.voice_prompt:
            transcript = (self.voice_transcript or "").strip()
            voice = VoicePrompt(audio=Path(self.voice_prompt), transcript=transcript)
        params = GenerationParams(
            temperature=self.temperature,
            cfg_scale=self.cfg_scale,
            top_p=self.top_p,
            top_k=self.top_k,
            max_tokens=self.max_tokens,
            seed=chosen_seed(self.seed),
        )
        device = "xpu" if self.xpu else "cpu"
        runtime = replace(runtime, model=self.model, precision=self.precision, device=device)
        # Where the card is slower, the page says so beside the toggle: turning it on insists.
        runtime = replace(runtime, insist=self.xpu)
        return Request(self.script or "", params, runtime, voice, self.speed)


FIELDS = tuple(field.name for field in fields(Form))
# An upload does not outlive its page, and the experimental toggle starts off every time.
REMEMBERED = tuple(name for name in FIELDS if name not in ("voice_prompt", "xpu"))
SAMPLING = ("temperature", "cfg_scale", "max_tokens", "top_p", "top_k")


def chosen_seed(seed: str | float | None) -> int:
    """The seed asked for, or a random one for blank and -1. InputError for what is no seed."""
    text = "" if seed is None else str(seed).strip()
    if text in ("", "-1", "-1.0"):
        return random_seed()
    try:
        value = float(text)
        if value != int(value):
            raise ValueError
    except (ValueError, OverflowError):
        raise InputError(
            f"seed must be a whole number from 0 to {SEED_LIMIT}, or blank, not {text!r}."
        ) from None
    return int(value)


def defaults_of(info: ModelInfo) -> dict[str, float]:
    """The sampling settings a model asks for."""
    values = asdict(info.config.defaults)
    return {name: values[name] for name in SAMPLING}


def slider_ends(info: ModelInfo) -> dict[str, tuple[float, float]]:
    """How far each slider reaches: what is useful, within what the model allows."""
    limits = GenerationParams.limits(info.config)
    useful = {"temperature": (0.0, 2.5), "cfg_scale": (0.0, 10.0), "top_k": (1, 200)}
    ends = {}
    for name in SAMPLING:
        low, high = useful.get(name, (limits[name].low, limits[name].high))
        ends[name] = (max(low, limits[name].low), min(high, limits[name].high))
    return ends


def restored(saved: dict, ends: dict[str, tuple[float, float]]) -> dict:
    """The remembered values that still make sense; anything else is left out."""
    values = {name: saved[name] for name in REMEMBERED if name in saved}
    for name, (low, high) in ends.items():
        value = values.get(name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or value != value:
            values.pop(name, None)
        elif not low <= value <= high:
            values[name] = min(max(value, low), high)
    return values


def out_of_reach(saved: dict, ends: dict[str, tuple[float, float]]) -> dict[str, float]:
    """The numbers among the saved values that `restored` moves to the end of their slider, each
    with the end it is moved to."""
    kept = restored(saved, ends)
    return {name: kept[name] for name in ends if name in kept and kept[name] != saved[name]}
