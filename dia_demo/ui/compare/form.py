"""The values of the Compare tab, as settings, scripts, seeds and a plan."""

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
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import VoicePrompt
from dia_demo.text.script import MAX_SCRIPT_CHARACTERS, expected_seconds
from dia_demo.ui.generate import form

# The fields of a side, in the order of the page: label, step of a number field (None: a menu).
SIDE_FIELDS: dict[str, tuple[str, float | None]] = {
    **{name: (spec.label, spec.step) for name, spec in PARAMS.items() if spec.step},
    "speed": ("Speed", 0.05),
    "seed_shift": ("Seed shift", 1),
    "model": ("Model", None),
    "precision": ("Precision", None),
}
KINDS = [
    ("Blind A/B", "preference"),
    ("ABX: is there an audible difference?", "abx"),
    ("Round of 3 to 6 values", "round"),
    ("Side by side, not blind", "sighted"),
]
# Of all scripts of one comparison together.
MAX_SCRIPTS_CHARACTERS = 5 * MAX_SCRIPT_CHARACTERS
HEAD = ("kind", "scripts", "seeds", "first_seed", "vary", "values", "use_voice")
FIELDS = (*HEAD, *(f"{side}_{name}" for side in "ab" for name in SIDE_FIELDS))
VOICE = ("voice_prompt", "voice_transcript")


@dataclass(frozen=True)
class CompareForm:
    """The values of the tab's fields: `head` by the names of HEAD, both sides by SIDE_FIELDS."""

    head: dict
    sides: tuple[dict, dict]
    voice: VoicePrompt | None = None

    @classmethod
    def of(cls, values: Sequence) -> CompareForm:
        """From the values of FIELDS, followed by those of VOICE where takes will be made.

        Raises InputError if the voice prompt is to be used and there is none.
        """
        named = dict(zip((*FIELDS, *VOICE), values, strict=False))
        voice = None
        if named["use_voice"] and "voice_prompt" in named:
            if not named["voice_prompt"]:
                raise InputError(
                    "There is no voice prompt on the Generate tab: add one there, or untick the "
                    "box here."
                )
            transcript = (named.get("voice_transcript") or "").strip()
            voice = VoicePrompt(audio=Path(named["voice_prompt"]), transcript=transcript)
        a, b = ({name: named[f"{side}_{name}"] for name in SIDE_FIELDS} for side in "ab")
        return cls({name: named[name] for name in HEAD}, (a, b), voice)

    @property
    def kind(self) -> str:
        return "preference" if self.head["kind"] == "round" else self.head["kind"]

    def settings(self, synthesis: Synthesis) -> list[Setting]:
        """The settings to compare. Raises InputError, naming the side, for an invalid value."""
        first = self._setting(synthesis, 0)
        if self.head["kind"] != "round":
            return [first, self._setting(synthesis, 1)]
        values = [part.strip() for part in str(self.head["values"] or "").split(",")]
        values = [value for value in values if value]
        if not 2 <= len(values) <= len(NAMES):
            raise InputError(
                f"A round needs 2 to {len(NAMES)} values separated by commas, such as "
                f"0.8, 1.2, 1.6, not {len(values)}."
            )
        return [first.changed({self.head["vary"]: value}) for value in values]

    def _setting(self, synthesis: Synthesis, side: int) -> Setting:
        values = self.sides[side]
        info = synthesis.info(values["model"])
        runtime = RuntimeConfig(model=info.name)
        try:
            return Setting(info.config.defaults, runtime).changed(values)
        except InputError as error:
            raise InputError(f"Settings {NAMES[side]}: {error}") from None

    def scripts(self) -> tuple[str, ...]:
        """The scripts, one or several. Raises InputError if they are too long."""
        text = self.head["scripts"] or ""
        if len(text) > MAX_SCRIPTS_CHARACTERS:
            raise InputError(
                f"The scripts have {len(text):,} characters in total; {MAX_SCRIPTS_CHARACTERS:,} "
                "are allowed. Use fewer or shorter scripts."
            )
        return split_scripts(text)

    def seeds(self) -> int:
        """The number of seeds for each script; 0 for an empty field.

        Raises InputError for an invalid number.
        """
        count = self.head["seeds"] or 0
        Range(0, MAX_TRIALS, whole=True).check("The number of seeds", count)
        return int(count)

    def plan(self, synthesis: Synthesis) -> ComparisonPlan:
        """The plan of the comparison. Raises InputError for invalid values."""
        text = str(self.head["first_seed"] or "").strip()
        first = None if text in ("", "-1") else form.chosen_seed(text)
        seeds = draw_seeds(self.seeds(), first)
        return make_plan(self.kind, self.settings(synthesis), self.scripts(), seeds)

    def seconds_to_make(self, synthesis: Synthesis, settings: Sequence[Setting]) -> float:
        """The expected seconds of audio of the whole plan."""
        total = 0.0
        for setting in settings:
            SPEEDS.check("speed", setting.speed)
            info = synthesis.info(setting.runtime.model)
            limit = info.seconds_of(setting.params.max_tokens)
            for script in self.scripts():
                pace = info.seconds_per_character
                total += min(expected_seconds(script, pace), limit) / setting.speed
        return total * self.seeds()


def side_of(values: dict, defaults: dict) -> dict:
    """The fields of a side, from values of the Generate tab or of an earlier take."""
    return defaults | {name: values[name] for name in SIDE_FIELDS if values.get(name) is not None}


def default_side(synthesis: Synthesis, model: str, precision: str = "auto") -> dict:
    """The fields of a side with the defaults of a model."""
    setting = Setting(synthesis.info(model).config.defaults, RuntimeConfig(model=model))
    setting = replace(setting, runtime=replace(setting.runtime, precision=precision))
    return {name: setting.values()[name] for name in SIDE_FIELDS}
