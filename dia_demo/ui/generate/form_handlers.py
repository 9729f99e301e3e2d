"""The events of the form: script checks and repairs, models and their defaults, what a reload
restores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr

from dia_demo.engine.family import ModelInfo
from dia_demo.errors import DiaDemoError, InputError
from dia_demo.services.dialogue.plan import needs_chunks
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import VoicePrompt, read_words
from dia_demo.services.wording import duration
from dia_demo.text.checks.checks import BAD_PAUSE
from dia_demo.text.checks.script_check import Finding, ScriptReport, fix_all
from dia_demo.text.dialogue.chunks import LONGEST_SECONDS, SHORTEST_SECONDS
from dia_demo.text.dialogue.pauses import find_pauses
from dia_demo.text.pronunciations import Pronunciations
from dia_demo.text.remark import Level
from dia_demo.ui import form, html
from dia_demo.ui.generate.layout import GenerateParts, slider_info
from dia_demo.ui.gradio_internals import upload_folder
from dia_demo.ui.runs import event_value
from dia_demo.ui.writing.findings import Replacements

IN_PARTS = "in_parts"
# Findings that do not apply to a script that is made in parts.
TOO_LONG = ("too_many_bytes", "over_max_tokens", "too_long", "no_last_tag")
LOST_PROMPT = (
    '<p class="lost-prompt">The voice prompt is no longer on the server: add the recording and its '
    "text again.</p>"
)


def _prompt_report(name: str, sentences: Sequence[str]) -> str:
    return f'<p class="{name}" role="status">{escape(" ".join(sentences))}</p>' if sentences else ""


class FormHandlers:
    """The events of the form, over one `Synthesis`."""

    def __init__(self, synthesis: Synthesis, parts: GenerateParts) -> None:
        self.synthesis = synthesis
        self.parts = parts
        self._replacements = Replacements()

    def check(self, *values):
        """The checks of a script, and the max tokens in seconds, from the fields of form.CHECKED.

        As typed: without gradio's own checks of numbers and files.
        """
        checked = dict(zip(form.CHECKED, values, strict=True))
        result = self._read(checked)
        if result is None:
            return gr.skip(), gr.skip()
        info, report = result
        in_parts = any(finding.code == IN_PARTS for finding in report.findings)
        limit = None if in_parts else info.config.encoder.max_positions
        tokens = gr.update(info=slider_info(info, "max_tokens", checked["max_tokens"]))
        unused = bool((checked["voice_transcript"] or "").strip() and not checked["voice_prompt"])
        return html.script_report(report, limit, unused), tokens

    def repair(self, event: gr.EventData, *values):
        """The script after the chosen repair, if the finding is still current, or after all.

        values: the fields of form.CHECKED. The page writes the script into its field as a person
        would type it, so that Ctrl+Z undoes it.
        """
        checked = dict(zip(form.CHECKED, values, strict=True))
        repaired = self._repair_script(checked, event)
        return self._replacements.replace(checked["script"], repaired)

    def _repair_script(self, checked: dict, event: gr.EventData) -> str | None:
        result = self._read(checked)
        if result is None:
            return None
        findings = result[1].findings
        index, code = event_value(event, "index"), event_value(event, "code")
        if code == html.FIX_ALL:
            script = checked["script"] or ""
            return fix_all(script, lambda draft: self._report(checked | {"script": draft}))
        known = type(index) is int and 0 <= index < len(findings)
        finding = findings[index] if known else None
        return finding.repaired if finding is not None and finding.code == code else None

    def _read(self, checked: dict) -> tuple[ModelInfo, ScriptReport] | None:
        """The model and the report on a script; None while a number is incomplete."""
        models, tokens = self.synthesis.models, checked["max_tokens"]
        if checked["model"] not in models or not isinstance(tokens, int | float):
            return None
        info = models[checked["model"]]
        low, high = form.slider_ends(info)["max_tokens"]
        return (info, self._report(checked)) if low <= tokens <= high else None

    def _report(self, checked: dict) -> ScriptReport:
        """The report on a script. The words of a voice prompt count only beside its sound, and a
        bad list of pronunciations is a finding."""
        try:
            listed = Pronunciations.parse(checked["pronunciations"] or "")
        except InputError as error:
            report = self._report(checked | {"pronunciations": ""})
            bad = Finding("pronunciations", Level.ERROR, str(error))
            return replace(report, findings=(bad, *report.findings))
        report = self.synthesis.models[checked["model"]].check(
            checked["script"] or "",
            int(checked["max_tokens"]),
            (checked["voice_transcript"] or "") if checked["voice_prompt"] else "",
            checked["normalise"] is True,
            listed,
            bool(checked[form.IN_PARTS]),
        )
        return self._report_for_parts(report, checked, listed) if checked[form.IN_PARTS] else report

    def _report_for_parts(
        self, report: ScriptReport, checked: dict, listed: Pronunciations
    ) -> ScriptReport:
        """The report on a script that may be made in parts: it is never too long for a take."""
        request = form.draft_of(self.synthesis.models[checked["model"]], checked, listed)
        kept = tuple(one for one in report.findings if one.code not in TOO_LONG)
        if any(one.code == BAD_PAUSE for one in kept):
            return replace(report, findings=kept)
        if not report.turns or not needs_chunks(request):
            return report
        seconds = report.expected_seconds
        sizes = f"{SHORTEST_SECONDS:.0f} to {LONGEST_SECONDS:.0f} s"
        message = f"About {duration(seconds)} of speech: made in parts of {sizes}, then joined."
        if find_pauses(request.script) and not request.model.family.makes_pauses:
            message = "The script has pauses: what is between them is made in parts, then joined."
        return replace(report, findings=(Finding(IN_PARTS, Level.TIP, message), *kept))

    def live_rate(self, model: str) -> dict:
        """The sample rate of a model, which the page's player has to know before a run starts."""
        return {"rate": self.synthesis.models[model].sample_rate}

    def change_model(self, model: str):
        """The defaults of a model: sliders in the order of `form.SAMPLING`, then whether the choice
        to normalise is shown."""
        info = self.synthesis.models[model]
        defaults = form.defaults_of(info)
        sliders = [
            gr.update(value=defaults[name], **slider) for name, slider in sliders_of(info).items()
        ]
        return [*sliders, gr.update(visible=not info.profile.normalises)]

    def choose_preset(self, preset: object, model: str) -> list:
        """The sliders in the order of `form.SAMPLING` as a preset has them."""
        values = form.presets_of(self.synthesis.models[model]).get(str(preset), {})
        return [values.get(name, gr.skip()) for name in form.SAMPLING]

    def show_preset(self, model: str, *sampling):
        """The menu of presets for the sliders in the order of `form.SAMPLING`, as typed."""
        if model not in self.synthesis.models:
            return gr.skip()
        info = self.synthesis.models[model]
        return gr.update(**form.preset_menu(info, dict(zip(form.SAMPLING, sampling, strict=True))))

    def restore(self, saved: object) -> list:
        """The form from saved values: fields in the order of `form.REMEMBERED`."""
        models = self.synthesis.models
        if not isinstance(saved, dict) or saved.get("model") not in models:
            return [gr.skip()] * len(form.REMEMBERED)
        info = models[saved["model"]]
        values = form.restored_values(saved, form.slider_ends(info))
        changes: dict[str, dict[str, Any]] = {name: {} for name in form.REMEMBERED}
        changes |= sliders_of(info) | {"normalise": {"visible": not info.profile.normalises}}
        for name, value in values.items():
            changes[name]["value"] = value
        return [gr.update(**changes[name]) for name in form.REMEMBERED]

    def reload(self, saved):
        """The form after a reload: what `restore` gives, then sound and words of the voice prompt,
        and a remark where the sound is gone and the words with it."""
        updates = self.restore(saved)
        saved = saved if isinstance(saved, dict) else {}
        path, words = (saved.get(name) for name in form.VOICE)
        words = words if isinstance(words, str) else ""
        if not isinstance(path, str) or not path:
            return [*updates, gr.skip(), words, gr.skip()]
        if not self._is_upload(Path(path)):
            return [*updates, gr.skip(), gr.skip(), LOST_PROMPT]
        return [*updates, path, words, gr.skip()]

    def _is_upload(self, path: Path) -> bool:
        """Whether a path that a browser names is a file that was uploaded to this server."""
        return path.resolve().is_relative_to(upload_folder()) and path.is_file()

    def hear(self, path: str | None, model: str, tokens: float):
        """What was done to a voice prompt, or why it cannot be used; nothing without one."""
        if not path:
            return ""
        info = self.synthesis.models[model]
        voice, longest = VoicePrompt(audio=Path(path)), self.synthesis.settings.prompt_seconds
        try:
            notes = voice.read(info, int(tokens), longest).notes
        except DiaDemoError as error:
            return _prompt_report("lost-prompt", [str(error)])
        return _prompt_report("prompt-notes", notes)

    def words(self, path: str | None):
        """The words of a voice prompt where its file contains them, as that of a take does."""
        return (read_words(Path(path)) if path else "") or gr.skip()

    def use_voice(self, path: str | None):
        """Sound and words of the voice prompt from the take on show."""
        if not path:
            return gr.skip(), gr.skip()
        words = read_words(Path(path))
        if not words:
            gr.Info("This take was cut off: enter the words that it says.", title="Voice prompt")
        return path, words

    def release(self, event: gr.EventData):
        """Seed, and sound and words of the voice prompt, after a press on one of the chips."""
        if event_value(event, "name") == "seed":
            return "", gr.skip(), gr.skip()
        return gr.skip(), None, ""


def sliders_of(info: ModelInfo) -> dict[str, dict[str, Any]]:
    """The ends of each slider and its help for a model."""
    return {
        name: {
            "minimum": low,
            "maximum": high,
            "info": slider_info(info, name),
            "visible": name in info.config.params,
        }
        for name, (low, high) in form.slider_ends(info).items()
    }
