"""The values of the Compare tab, as settings, scripts, seeds and a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dia_demo.audio import SPEEDS
from dia_demo.config import PARAMS, Range, RuntimeConfig
from dia_demo.errors import InputError
from dia_demo.services.listening.plan.names import LABELS
from dia_demo.services.listening.plan.plan import (
    MAX_TRIALS,
    NAMES,
    ComparisonPlan,
    draw_seeds,
    make_plan,
    split_scripts,
)
from dia_demo.services.listening.plan.setting import Setting
from dia_demo.services.listening.plan_time import expected_audio, plan_time
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import VoicePrompt
from dia_demo.services.wording import time_left
from dia_demo.text.pronunciations import NONE, Pronunciations
from dia_demo.text.script import MAX_SCRIPT_CHARACTERS
from dia_demo.ui import form
from dia_demo.voices import VOICE_FIELDS

# The fields of a side, in the order of the page: label, step of a number field (None: a menu).
SIDE_FIELDS: dict[str, tuple[str, float | None]] = {
    **{name: (spec.label, spec.step) for name, spec in PARAMS.items() if spec.step},
    "speed": (LABELS["speed"], 0.05),
    "seed_shift": (LABELS["seed_shift"], 1),
    "model": (LABELS["model"], None),
    "precision": (LABELS["precision"], None),
    "normalise": (LABELS["normalise"], None),
    **{name: (LABELS[name], None) for name in VOICE_FIELDS},
}
MENUS = tuple(name for name, (_, step) in SIDE_FIELDS.items() if step is None)
KINDS = [
    ("Blind: which sounds better?", "preference"),
    ("ABX: is there an audible difference?", "abx"),
    ("Round: 3 to 6 values", "round"),
    ("Side by side, not blind", "sighted"),
]
MOST_TIES = 60  # percent
# Of all scripts of one comparison together.
MAX_SCRIPTS_CHARACTERS = 5 * MAX_SCRIPT_CHARACTERS
# differs: the setting in question, which has a value on each side (`first` and `second`, of a menu
# `first_choice` and `second_choice`), or one of the `values` of a round.
QUESTION = ("differs", "first", "second", "first_choice", "second_choice", "values")
# separate: the second side has values of its own for the other settings as well.
# ties: the expected share of "no difference" in percent, which the plan is judged by.
HEAD = (
    "kind",
    *QUESTION,
    "scripts",
    "seeds",
    "first_seed",
    "use_voice",
    "separate",
    "ties",
    "use_pronunciations",
)
FIELDS = (*HEAD, *(f"{side}_{name}" for side in "ab" for name in SIDE_FIELDS))
# What is taken from the Generate tab if the person wishes.
SHARED = ("voice_prompt", "voice_transcript", "pronunciations")
SIDES = ("First side", "Second side")


@dataclass(frozen=True)
class CompareForm:
    """The values of the tab's fields: `head` by the names of HEAD, both sides by SIDE_FIELDS."""

    head: dict
    sides: tuple[dict, dict]
    voice: VoicePrompt | None = None
    pronunciations: Pronunciations = NONE

    @classmethod
    def from_values(cls, values: Sequence) -> CompareForm:
        """From the values of FIELDS, followed by those of SHARED.

        Raises InputError if the voice prompt is to be used and there is none, and for a bad list of
        pronunciations.
        """
        named = dict(zip((*FIELDS, *SHARED), values, strict=True))
        voice = None
        if named["use_voice"]:
            if not named["voice_prompt"]:
                raise InputError(
                    "There is no voice prompt on the Generate tab: add one there, or untick the "
                    "box here."
                )
            words = named["voice_transcript"] or ""
            voice = VoicePrompt.from_file(Path(named["voice_prompt"]), words)
        a, b = ({name: named[f"{side}_{name}"] for name in SIDE_FIELDS} for side in "ab")
        listed = named["pronunciations"] if named["use_pronunciations"] else ""
        words = Pronunciations.parse(listed or "")
        return cls({name: named[name] for name in HEAD}, (a, b), voice, words)

    @property
    def kind(self) -> str:
        return "preference" if self.head["kind"] == "round" else self.head["kind"]

    @property
    def is_separate(self) -> bool:
        """Whether the second side has values of its own. A model brings its own defaults."""
        return has_own_values(self.head["kind"], self.head["differs"], self.head["separate"])

    def settings(self, synthesis: Synthesis) -> list[Setting]:
        """The settings to compare. Raises InputError, naming the side, for an invalid value."""
        name, (first, second) = self.head["differs"], self.sides
        if self.head["kind"] == "round":
            sides = [first | {name: value} for value in self._round_values()]
        else:
            fields = ("first_choice", "second_choice") if name in MENUS else ("first", "second")
            fold = (first, second if self.is_separate else first)
            sides = [
                side | {name: self.head[field]} for side, field in zip(fold, fields, strict=True)
            ]
        return [self._setting(synthesis, index, side) for index, side in enumerate(sides)]

    def _round_values(self) -> list[str]:
        name = self.head["differs"]
        if name == "model":
            raise InputError("A round needs one model: choose another setting, or compare two.")
        values = [part.strip() for part in str(self.head["values"] or "").split(",")]
        values = [value for value in values if value]
        if not 2 <= len(values) <= len(NAMES):
            raise InputError(
                f"A round needs 2 to {len(NAMES)} values separated by commas, such as "
                f"0.8, 1.2, 1.6, not {len(values)}."
            )
        return values

    def _setting(self, synthesis: Synthesis, index: int, values: dict) -> Setting:
        if not values["model"]:
            raise InputError("Choose a model.")
        info = synthesis.models[values["model"]]
        try:
            setting = Setting(info.config.defaults, RuntimeConfig(model=info.name)).change(values)
            setting.params.check(info.config)
            SPEEDS.check("speed", setting.speed)
        except InputError as error:
            side = f"{SIDES[index]}: " if self.is_separate else ""
            raise InputError(f"{side}{error}") from None
        return replace(setting, pronunciations=self.pronunciations)

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

    def ties(self) -> float:
        """The expected share of "no difference". Raises InputError for an invalid number."""
        percent = self.head["ties"] or 0
        Range(0, MOST_TIES).check("“No difference” expected", percent)
        return percent / 100

    def plan(self, synthesis: Synthesis) -> ComparisonPlan:
        """The plan of the comparison. Raises InputError for invalid values."""
        text = str(self.head["first_seed"] or "").strip()
        first = None if text in ("", "-1") else form.chosen_seed(text)
        seeds = draw_seeds(self.seeds(), first)
        return make_plan(self.kind, self.settings(synthesis), self.scripts(), seeds)


def has_own_values(kind: str, differs: str, separate: bool) -> bool:
    """Whether the fields of the second side count beside the setting in question."""
    return kind != "round" and (separate or differs == "model")


def seconds_to_make(plan: ComparisonPlan, synthesis: Synthesis) -> float:
    """The expected seconds of audio of a whole plan."""
    return sum(expected_audio(plan, slot, synthesis) for slot in plan.slots)


def generation_time(plan: ComparisonPlan, synthesis: Synthesis) -> str:
    """How long a whole plan takes here, in words; empty if nothing was measured."""
    left = plan_time(plan, synthesis)
    return "" if left is None else f"{time_left(left)} to generate"


def with_voice_path(values: Sequence) -> list:
    """Values as the page sends them, with the path of the voice prompt in place of its description.

    Nobody has checked that path: such a form describes a comparison, and no file of it is opened.
    """
    *fields, prompt, transcript, listed = values
    path = prompt.get("path") if isinstance(prompt, dict) else prompt
    return [*fields, path if isinstance(path, str) else None, transcript, listed]


def side_of(values: dict, defaults: dict) -> dict:
    """The fields of a side, from values of the Generate tab or of an earlier take."""
    return defaults | {
        name: _as_choice(values[name]) for name in SIDE_FIELDS if values.get(name) is not None
    }


def default_side(synthesis: Synthesis, model: str, precision: str = "auto") -> dict:
    """The fields of a side with the defaults of a model."""
    setting = Setting(synthesis.models[model].config.defaults, RuntimeConfig(model=model))
    setting = replace(setting, runtime=replace(setting.runtime, precision=precision))
    return {name: _as_choice(setting.values()[name]) for name in SIDE_FIELDS}


def _as_choice(value: Any) -> Any:
    """A value as its field has it: a menu has words for yes and no."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value
