"""The values of the Compare tab: what is asked, as a plan, and what it will cost and can show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dia_demo.audio import SPEEDS
from dia_demo.config import PARAMS, Range, RuntimeConfig
from dia_demo.errors import InputError
from dia_demo.services.listening.plan import (
    MAX_TRIALS,
    NAMES,
    ComparisonPlan,
    Setting,
    draw_seeds,
    make_plan,
    split_scripts,
)
from dia_demo.services.synthesis import Synthesis, VoicePrompt
from dia_demo.text.script import MAX_SCRIPT_CHARACTERS, expected_seconds
from dia_demo.ui.generate import form

# What may differ, in the order of the page: label, step of its number field (None: a choice).
SIDE_FIELDS: dict[str, tuple[str, float | None]] = {
    **{name: (spec.label, spec.step) for name, spec in PARAMS.items() if spec.step},
    "speed": ("Speed", 0.05),
    "seed_shift": ("Seed shift", 1),
    "model": ("Model", None),
    "precision": ("Precision", None),
}
KINDS = [
    ("Blind A/B", "preference"),
    ("ABX: can the two be told apart?", "abx"),
    ("Round of 3 to 6 values", "round"),
    ("Side by side, not blind", "sighted"),
]
# All scripts of one comparison together.
MAX_SCRIPTS_CHARACTERS = 5 * MAX_SCRIPT_CHARACTERS
HEAD = ("kind", "scripts", "seeds", "first_seed", "vary", "values", "use_voice")
FIELDS = (*HEAD, *(f"{side}_{name}" for side in "ab" for name in SIDE_FIELDS))
VOICE = ("voice_prompt", "voice_transcript")


@dataclass(frozen=True)
class CompareForm:
    """One reading of the tab's fields: `head` by the names of HEAD, both sides by SIDE_FIELDS."""

    head: dict
    sides: tuple[dict, dict]
    voice: VoicePrompt | None = None

    @classmethod
    def of(cls, values: Sequence) -> CompareForm:
        """From the values of FIELDS and, where the voice counts, of VOICE after them.

        Raises InputError where a voice prompt is asked for and none is there.
        """
        named = dict(zip((*FIELDS, *VOICE), values, strict=False))
        voice = None
        if named["use_voice"] and "voice_prompt" in named:
            if not named["voice_prompt"]:
                raise InputError(
                    "The Generate tab holds no voice prompt: add one there, or take the tick off "
                    "its box here."
                )
            transcript = (named.get("voice_transcript") or "").strip()
            voice = VoicePrompt(audio=Path(named["voice_prompt"]), transcript=transcript)
        sides = tuple({name: named[f"{side}_{name}"] for name in SIDE_FIELDS} for side in "ab")
        return cls({name: named[name] for name in HEAD}, sides, voice)

    @property
    def kind(self) -> str:
        return "preference" if self.head["kind"] == "round" else self.head["kind"]

    def settings(self, synthesis: Synthesis) -> list[Setting]:
        """The settings to compare. Raises InputError, naming the side, for what is none."""
        first = self._setting(synthesis, 0)
        if self.head["kind"] != "round":
            return [first, self._setting(synthesis, 1)]
        values = [part.strip() for part in str(self.head["values"] or "").split(",")]
        values = [value for value in values if value]
        if not 2 <= len(values) <= len(NAMES):
            raise InputError(
                f"A round takes from 2 to {len(NAMES)} values with commas between them, such as "
                f"0.8, 1.2, 1.6: there are {len(values)}."
            )
        return [first.changed({self.head["vary"]: value}) for value in values]

    def _setting(self, synthesis: Synthesis, side: int) -> Setting:
        given = self.sides[side]
        info = synthesis.info(given["model"])
        runtime = RuntimeConfig(model=info.name)
        try:
            return Setting(info.config.defaults, runtime).changed(given)
        except InputError as error:
            raise InputError(f"Settings {NAMES[side]}: {error}") from None

    def scripts(self) -> tuple[str, ...]:
        """The scripts, one or several. Raises InputError for more text than is looked at."""
        text = self.head["scripts"] or ""
        if len(text) > MAX_SCRIPTS_CHARACTERS:
            raise InputError(
                f"The scripts have {len(text):,} characters together, and "
                f"{MAX_SCRIPTS_CHARACTERS:,} are allowed: take fewer or shorter ones."
            )
        return split_scripts(text)

    def seeds(self) -> int:
        """How many seeds each script is made with, 0 while nothing is asked. InputError for what
        is no number."""
        count = self.head["seeds"] or 0
        Range(0, MAX_TRIALS, whole=True).check("The number of seeds", count)
        return int(count)

    def plan(self, synthesis: Synthesis) -> ComparisonPlan:
        """The plan that is asked for. Raises InputError where there is none."""
        text = str(self.head["first_seed"] or "").strip()
        first = None if text in ("", "-1") else form.chosen_seed(text)
        seeds = draw_seeds(self.seeds(), first)
        return make_plan(self.kind, self.settings(synthesis), self.scripts(), seeds)

    def seconds_to_make(self, synthesis: Synthesis, settings: Sequence[Setting]) -> float:
        """Seconds of audio the whole plan is expected to have."""
        total = 0.0
        for setting in settings:
            SPEEDS.check("speed", setting.speed)
            info = synthesis.info(setting.runtime.model)
            most = info.seconds_of(setting.params.max_tokens)
            for script in self.scripts():
                pace = info.seconds_per_character
                total += min(expected_seconds(script, pace), most) / setting.speed
        return total * self.seeds()


def side_of(values: dict, defaults: dict) -> dict:
    """A side's fields from the Generate tab's, or from an earlier take's, values."""
    return defaults | {name: values[name] for name in SIDE_FIELDS if values.get(name) is not None}


def default_side(synthesis: Synthesis, model: str, precision: str = "auto") -> dict:
    """A model's own settings."""
    setting = Setting(synthesis.info(model).config.defaults, RuntimeConfig(model=model))
    setting = replace(setting, runtime=replace(setting.runtime, precision=precision))
    return {name: setting.values()[name] for name in SIDE_FIELDS}
