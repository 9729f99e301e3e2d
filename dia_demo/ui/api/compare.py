"""The endpoint "/compare": the takes of a comparison of settings, in an archive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import gradio as gr

from dia_demo.audio import suffix_of
from dia_demo.config import RuntimeConfig
from dia_demo.engine.family import ModelInfo
from dia_demo.errors import InputError
from dia_demo.services.listening.archive import export_zip
from dia_demo.services.listening.clips import write_takes
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan.plan import (
    ComparisonKind,
    ComparisonPlan,
    make_plan,
    split_scripts,
)
from dia_demo.services.listening.render import CLIPS
from dia_demo.services.listening.sides import seeds_of, settings_of
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.services.listening.summary import summary_of, takes_by_setting, warnings_of
from dia_demo.services.programs.comparison import made_comparison
from dia_demo.services.take import VoicePrompt
from dia_demo.text.pronunciations import Pronunciations
from dia_demo.ui.api.argument import checked_values, with_signature
from dia_demo.ui.api.arguments import Arguments
from dia_demo.ui.form import chosen_seed
from dia_demo.ui.generate.handlers import GenerateHandlers


def make_compare(
    handlers: GenerateHandlers, comparisons: ComparisonStore, arguments: Arguments
) -> Callable[..., Iterator[tuple[str, dict]]]:
    """The function behind "/compare"."""

    def compare(request: gr.Request, *values: Any) -> Iterator[tuple[str, dict]]:
        """Generate the same scripts with the same seeds in 2 to 6 settings: a zip of the takes, and
        the measurements of each setting's; or a zip for a blind test, which the Compare tab of the
        page opens and which hides them."""
        named = checked_values(arguments, values)
        with handlers.calls.run(request) as cancel, handlers.files.scratch() as folder:
            plan = _plan_of(handlers, named)
            voice = None
            if named["voice_prompt"]:
                prompt = Path(named["voice_prompt"])
                voice = VoicePrompt.from_file(prompt, named["voice_transcript"])
            with made_comparison(comparisons, plan, voice, cancel) as (comparison, ended):
                warnings = warnings_of(plan, comparisons.synthesis.models)
                problems = list(dict.fromkeys(ended.failures))
                path, settings = _archive(comparison, folder, suffix_of(named["format"]))
                summary = summary_of(plan, ended, warnings)
                # Yielded while the folder exists: gradio copies the file first.
                yield str(path), summary | {"problems": problems, "settings": settings}

    return with_signature(compare, arguments)


def _plan_of(handlers: GenerateHandlers, named: dict[str, Any]) -> ComparisonPlan:
    """The plan of the values. Raises InputError for what cannot be compared."""
    synthesis = handlers.synthesis

    def model_of(name: object) -> ModelInfo:
        if name not in synthesis.models:
            known = ", ".join(synthesis.models)
            raise InputError(f"settings: model must be one of {known}, not {name!r}.")
        return synthesis.models[str(name)]

    scripts = split_scripts(named["script"])
    if not scripts:
        raise InputError("script is empty: write what all takes should say.")
    for script in scripts:
        synthesis.check_length(script)
    settings = settings_of(
        named["settings"],
        RuntimeConfig(model=named["model"], precision=named["precision"]),
        model_of,
        named["normalise"],
        Pronunciations.parse(named["pronunciations"]),
    )
    seed = None if named["seed"] in (None, -1) else chosen_seed(named["seed"])
    seeds = seeds_of(_whole("pairs", named["pairs"]), len(scripts), seed)
    return make_plan(named["kind"], settings, scripts, seeds)


def _whole(name: str, value: Any) -> int | None:
    if value is None or type(value) is int:
        return value
    raise InputError(f"{name} must be a whole number or null, not {str(value)[:60]!r}.")


def _archive(comparison: Comparison, folder: Path, suffix: str) -> tuple[Path, list[dict] | None]:
    """The zip of a comparison, and its takes by setting.

    Of a sighted one its takes in the format of a suffix; of a blind one what the page opens, and
    nothing of its takes.
    """
    plan = comparison.plan
    if plan.kind != ComparisonKind.SIGHTED:
        return export_zip(comparison.folder, folder / f"comparison-{plan.id}.zip"), None
    pairs = comparison.revealed_pairs()
    path = folder / f"comparison-{plan.id}-{suffix.removeprefix('.')}.zip"
    write_takes(comparison.folder / CLIPS, plan, pairs, path, suffix)
    with ZipFile(path) as archive:
        return path, takes_by_setting(plan, pairs, archive.namelist())
