"""The events of the Compare tab's form: the question, its costs, findings on the scripts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gradio as gr

from dia_demo.engine.family import ModelInfo
from dia_demo.errors import DiaDemoError
from dia_demo.services.listening.plan.names import LABELS, label_in_sentence
from dia_demo.services.listening.plan.plan import ComparisonPlan
from dia_demo.services.listening.plan.setting import differences
from dia_demo.services.listening.render import check_plan
from dia_demo.services.listening.verdict.claims import (
    design_warnings,
    holds_voices,
    what_it_can_show,
)
from dia_demo.services.people import is_key
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.voices.kept import KeptVoices
from dia_demo.services.wording import duration, plural
from dia_demo.text.checks.script_check import ScriptReport
from dia_demo.ui import form
from dia_demo.ui.compare.form import script_findings
from dia_demo.ui.compare.form.fields import (
    MENUS,
    QUESTION,
    SIDE_FIELDS,
    CompareForm,
    default_side,
    generation_time,
    has_own_values,
    seconds_to_make,
    side_of,
    with_voice_path,
)
from dia_demo.ui.compare.form.question import WORDS, default_values, menu_choices, round_values
from dia_demo.ui.compare.html import plan_note, problem_note
from dia_demo.ui.compare.layout import CompareParts, word
from dia_demo.ui.runs import Updates, event_value
from dia_demo.ui.status import explain
from dia_demo.ui.writing.findings import Replacements
from dia_demo.voices import VOICE_FIELDS

SIDES = ("a", "b")
# What `start_from` sets, in its order.
START = ("scripts", *QUESTION[1:], *(f"{side}_{name}" for side in SIDES for name in SIDE_FIELDS))
# The menus that offer voices; those of the question only while a voice is in question.
VOICE_MENUS = (
    *(f"{side}_{name}" for side in SIDES for name in VOICE_FIELDS), "first_choice", "second_choice"
)  # fmt: skip


class SetupHandlers:
    """The events of the form, over one `Synthesis`."""

    def __init__(self, synthesis: Synthesis, parts: CompareParts) -> None:
        self.synthesis = synthesis
        self.parts = parts
        self._replacements = Replacements()

    # -- the plan ------------------------------------------------------------------------------

    def describe(self, key: object, *values):
        """What the comparison costs, what it can show, and the report on its scripts.

        From the values as the page sent them, without gradio's own checks. key: the person whose
        kept voices may be chosen.
        """
        try:
            compare_form = CompareForm.from_values(with_voice_path(values))
        except DiaDemoError as error:
            return problem_note(explain(error)), gr.skip()
        return self._note(key, compare_form), self._report(compare_form)

    def _note(self, key: object, compare_form: CompareForm) -> str:
        try:
            plan = compare_form.plan(self.synthesis)
            # Without the voice prompt: its path is as the page sent it, and nobody checked that.
            kept = KeptVoices.for_person(self.synthesis.settings, key)
            check_plan(plan, self.synthesis, None, kept)
            ties = compare_form.ties()
        except DiaDemoError as error:
            return problem_note(explain(error))
        design = len(plan.scripts), len(plan.seeds), len(plan.settings)
        shows = what_it_can_show(plan.kind, *design, ties=ties)
        voice = compare_form.voice is not None
        cost = self._cost(plan, voice)
        if used := len(compare_form.pronunciations.entries):
            verb = "applies" if used == 1 else "apply"
            counted = plural(used, "pronunciation")
            cost += f" {counted} of the Generate tab {verb} to both sides."
        return plan_note(cost, shows, self._cautions(plan, voice))

    def _cost(self, plan: ComparisonPlan, has_voice: bool) -> str:
        size = f"{plural(len(plan.scripts), 'script')} × {plural(len(plan.seeds), 'seed')}"
        seconds = duration(seconds_to_make(plan, self.synthesis))
        time = generation_time(plan, self.synthesis)
        text = (
            f"{plural(len(plan.trials), 'pair')} to listen to, "
            f"{plural(len(plan.slots), 'take')} to generate ({size}), about {seconds} of audio"
            f"{f', {time} on this machine' if time else ''}."
        )
        same = has_voice or holds_voices(plan.settings, self._models(plan))
        return f"{text} Both sides of a pair have the same voices." if same else text

    def _models(self, plan: ComparisonPlan) -> dict[str, ModelInfo]:
        names = {setting.runtime.model for setting in plan.settings}
        return {name: self.synthesis.models[name] for name in names}

    def _cautions(self, plan: ComparisonPlan, has_voice: bool) -> list[str]:
        """What a result will not show."""
        differing = differences(plan.settings)
        cautions = []
        if len(differing) > 1 and "model" not in differing:
            names = ", ".join(label_in_sentence(LABELS[name]) for name in differing)
            cautions.append(
                f"More than one setting differs ({names}), so a result cannot show which one "
                "caused it."
            )
        models = self._models(plan)
        if "normalise" in differing and all(info.profile.normalises for info in models.values()):
            cautions.append("This voice always reads text in words, so both sides are the same.")
        return [*cautions, *design_warnings(plan.kind, plan.settings, models, has_voice)]

    def _report(self, compare_form: CompareForm):
        try:
            return script_findings.report_on(self._text(compare_form), self._check(compare_form))
        except DiaDemoError:
            return gr.skip()  # The note says what is wrong.

    def _text(self, compare_form: CompareForm) -> str:
        """The scripts as they were written. Raises InputError if they are too long."""
        compare_form.scripts()
        return compare_form.head["scripts"] or ""

    def _check(self, compare_form: CompareForm) -> script_findings.Check:
        """The script checker for every model and length of the settings. Raises InputError for
        invalid ones."""
        transcript = compare_form.voice.transcript if compare_form.voice else ""
        settings = compare_form.settings(self.synthesis)
        limits = dict.fromkeys(
            (setting.runtime.model, int(setting.params.max_tokens), setting.normalise)
            for setting in settings
        )
        listed = compare_form.pronunciations

        def check(script: str) -> ScriptReport:
            first, *others = (
                self.synthesis.models[model].check(script, tokens, transcript, in_words, listed)
                for model, tokens, in_words in limits
            )
            for other in others:
                codes = {finding.code for finding in first.findings}
                new = tuple(finding for finding in other.findings if finding.code not in codes)
                reading = first.reading or other.reading
                first = replace(first, findings=first.findings + new, reading=reading)
            return first

        return check

    def repair(self, event: gr.EventData, *values):
        """The scripts after the chosen repair, for the page to write them into their field."""
        code = str(event_value(event, "code"))
        try:
            compare_form = CompareForm.from_values(values)
            text, check = self._text(compare_form), self._check(compare_form)
            repaired = script_findings.repair_scripts(text, code, check)
        except DiaDemoError:
            return gr.skip()
        return self._replacements.replace(text, repaired)

    # -- the question --------------------------------------------------------------------------

    def choose_setting(self, kind: str, name: str, separate: bool, *side) -> Updates:
        """Two values of the chosen setting, and its fields among the others hidden."""
        values = dict(zip(SIDE_FIELDS, side, strict=True))
        return _merge_updates(
            self._question(name, values), self._visible_fields(kind, name, separate)
        )

    def choose_kind(self, kind: str, name: str, separate: bool) -> Updates:
        """The words and fields of a kind of comparison."""
        return self._visible_fields(kind, name, separate)

    def separate(self, kind: str, name: str, separate: bool, *side) -> Updates:
        """The second side's own fields, which begin as those of the first."""
        fields, updates = self.parts.fields, self._visible_fields(kind, name, separate)
        if not separate or name == "model":
            return updates
        own = {
            fields[f"b_{field}"]: gr.update(value=value)
            for field, value in zip(SIDE_FIELDS, side, strict=True)
        }
        return _merge_updates(updates, own)

    def offer_voices(self, key: object, name: str, *chosen: str) -> Updates:
        """The person's kept voices in the menus of voices; a choice that is no longer offered is
        the seed's. chosen: the values of those menus, in the order of VOICE_MENUS."""
        kept = [voice.name for voice in KeptVoices.for_person(self.synthesis.settings, key).list()]
        choices = menu_choices(VOICE_FIELDS[0], list(self.synthesis.models.values()), kept)
        offered = {value for _, value in choices}
        updates: Updates = {}
        for field, value in zip(VOICE_MENUS, chosen, strict=True):
            if field in QUESTION and name not in VOICE_FIELDS:
                updates[self.parts.fields[field]] = gr.skip()
                continue
            updates[self.parts.fields[field]] = gr.update(choices=choices)
            # Without a key, the page is about to get one, and the voices of before.
            if is_key(key) and value not in offered:
                updates[self.parts.fields[field]] |= {"value": ""}
        return updates

    def change_model(self, name: str, model: str, precision: str) -> Updates:
        """The defaults of the first side's model, as on the Generate tab."""
        values = default_side(self.synthesis, model, precision)
        question = {} if name in MENUS else self._question(name, values)
        return _merge_updates(self._defaults("a", model), question)

    def change_second_model(self, model: str) -> Updates:
        """The defaults of the second side's model."""
        return self._defaults("b", model)

    def choose_first(self, name: str, value: str) -> Updates:
        """A model that is compared brings its own defaults."""
        return self._choose("a", name, value)

    def choose_second(self, name: str, value: str) -> Updates:
        """The same for the second."""
        return self._choose("b", name, value)

    def _choose(self, side: str, name: str, value: str) -> Updates:
        if name == "model":
            return self._defaults(side, value)
        # gradio refuses an update of nothing.
        return {self.parts.fields[f"{side}_model"]: gr.skip()}

    def _defaults(self, side: str, model: str) -> Updates:
        values = form.defaults_of(self.synthesis.models[model]) | {"model": model}
        fields = self.parts.fields
        return {fields[f"{side}_{name}"]: gr.update(value=values[name]) for name in values}

    def _question(self, name: str, side: dict) -> Updates:
        """The values of the setting in question, from the fields of the first side."""
        fields, models = self.parts.fields, list(self.synthesis.models.values())
        first, second = default_values(name, side, models)
        values = {"values": round_values(name, first, second)}
        values |= _pair(name, first, second)
        updates = {fields[field]: gr.update(value=value) for field, value in values.items()}
        return _merge_updates(updates, self._defaults("b", second) if name == "model" else {})

    def _visible_fields(self, kind: str, name: str, separate: bool) -> Updates:
        """Which fields are shown: those that count, each once."""
        parts, fields = self.parts, self.parts.fields
        pair = kind != "round"
        shown = {
            "first": pair and name not in MENUS,
            "second": pair and name not in MENUS,
            "first_choice": pair and name in MENUS,
            "second_choice": pair and name in MENUS,
            "values": not pair,
            "separate": pair and name != "model",
        }
        own = has_own_values(kind, name, separate)
        shown |= {f"b_{field}": own for field in SIDE_FIELDS}
        updates: Updates = {
            fields[field]: gr.update(visible=visible) for field, visible in shown.items()
        }
        if name in MENUS:
            choices = menu_choices(name, list(self.synthesis.models.values()))
            for field in ("first_choice", "second_choice"):
                updates[fields[field]] |= {"choices": choices}
        else:
            for field in ("first", "second"):
                updates[fields[field]] |= {"step": SIDE_FIELDS[name][1]}
        updates |= {row: gr.update(visible=field != name) for field, row in parts.rows.items()}
        words = zip((parts.before, parts.between, parts.after), WORDS[kind], strict=True)
        return updates | {part: gr.update(value=word(text)) for part, text in words}

    # -- from elsewhere ------------------------------------------------------------------------

    def copy(self, name: str, *values) -> list:
        """The script and the settings of the Generate tab on both sides."""
        return self.start_from(dict(zip(form.FIELDS, values, strict=True)), name)

    def start_from(self, values: dict, name: str) -> list:
        """The fields of START from values of the Generate tab or of an earlier take."""
        side = side_of(values, default_side(self.synthesis, values["model"]))
        first, second = default_values(name, side, list(self.synthesis.models.values()))
        own = form.defaults_of(self.synthesis.models[second]) if name == "model" else {}
        other = side | own
        named = {"scripts": values["script"], "values": round_values(name, first, second)}
        named |= _pair(name, first, second)
        for letter, fields in zip(SIDES, (side, other), strict=True):
            named |= {f"{letter}_{field}": value for field, value in fields.items()}
        return [named.get(field, gr.skip()) for field in START]


def _pair(name: str, first: Any, second: Any) -> dict[str, Any]:
    """The two values by the fields that hold them."""
    fields = ("first_choice", "second_choice") if name in MENUS else ("first", "second")
    return dict(zip(fields, (first, second), strict=True))


def _merge_updates(*parts: Updates) -> Updates:
    """Updates of the same component as one."""
    merged: Updates = {}
    for updates in parts:
        for part, update in updates.items():
            merged[part] = merged.get(part, {}) | update
    return merged
