"""What a take's file says about itself, and the values for a form from it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dia_demo.audio import read_metadata
from dia_demo.config import PRECISIONS
from dia_demo.voices import VOICE_FIELDS


def read_take(path: Path) -> dict | None:
    """The metadata of a file that this program saved: script, settings, speed, figures,
    whether the script was normalised, the list of pronunciations, the voices that were chosen by
    name, the kept ones (see `VoicePrompt.kept`), and the transcript of the voice prompt; None
    without it."""
    raw = read_metadata(path)
    if raw is None or not isinstance(raw.get("script"), str):
        return None
    settings, figures = raw.get("settings"), raw.get("figures")
    if not isinstance(settings, dict) or not isinstance(figures, dict):
        return None
    numbers = {
        name: value
        for name, value in settings.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    speed = raw.get("speed")
    speed = speed if isinstance(speed, int | float) and 0.5 <= speed <= 2.0 else 1.0
    voice, listed = raw.get("voice_transcript"), raw.get("pronunciations")
    return {
        "script": raw["script"],
        "settings": numbers,
        "speed": float(speed),
        "figures": figures,
        "voice_transcript": voice if isinstance(voice, str) else None,
        "normalise": raw.get("normalise") is True,
        "pronunciations": listed if isinstance(listed, str) else None,
        "voices": _of_both(raw.get("chosen_voices")),
        "kept_voices": _of_both(raw.get("kept_voices")),
    }


def _of_both(chosen: object) -> tuple[str, str]:
    """What a person chose for S1 and S2, "" for nothing."""
    if not isinstance(chosen, list) or len(chosen) != len(VOICE_FIELDS):
        return "", ""
    one, two = (name if isinstance(name, str) else "" for name in chosen)
    return one, two


def form_values(take: Mapping[str, Any]) -> dict:
    """The values for a form from the metadata that `read_take` returns: script, speed, every
    sampling parameter, seed, model, normalise, the voices by name, and the precision that was
    used."""
    figures = take["figures"]
    values = {name: take[name] for name in ("script", "speed", "normalise")} | take["settings"]
    values |= {name: figures[name] for name in ("model",) if name in figures}
    values |= zip(VOICE_FIELDS, take["voices"], strict=True)
    if figures.get("precision") in PRECISIONS:
        values["precision"] = figures["precision"]
    return values
