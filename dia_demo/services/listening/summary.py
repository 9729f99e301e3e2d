"""What programs are told of a comparison that was made: its size, its limits, its measurements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from dia_demo.engine.family import ModelInfo
from dia_demo.services.listening.plan.names import setting_names
from dia_demo.services.listening.plan.plan import NAMES, ComparisonPlan
from dia_demo.services.listening.plan.setting import differences
from dia_demo.services.listening.render import RenderEnded
from dia_demo.services.listening.verdict.claims import (
    abx_warning,
    design_warnings,
    what_it_can_show,
)
from dia_demo.services.listening.verdict.planning import TIES
from dia_demo.services.listening.votes.reveal import Revealed


def warnings_of(plan: ComparisonPlan, models: Mapping[str, ModelInfo]) -> list[str]:
    """What a result will not show. models: those of the settings, by name."""
    if plan.is_uploaded:
        return []
    return design_warnings(plan.kind, plan.settings, models, plan.voice_file is not None)


def power_of(plan: ComparisonPlan, ties: float = TIES) -> str:
    """What the answers to its pairs can show, in words. ties: the expected share of ties."""
    design = len(plan.scripts), len(plan.seeds), len(plan.settings)
    return what_it_can_show(plan.kind, *design, ties=ties)


def summary_of(
    plan: ComparisonPlan, ended: RenderEnded, warnings: Sequence[str], ties: float = TIES
) -> dict[str, Any]:
    """A comparison as JSON, without anything that a blind test hides. warnings: `warnings_of`."""
    wall = ended.wall_seconds
    return {
        "kind": plan.kind,
        "differences": differences(plan.settings),
        "scripts": len(plan.scripts),
        "seeds": list(plan.seeds),
        "pairs": ended.pairs,
        "pairs_made": ended.pairs_made,
        "takes_failed": len(ended.failures),
        "stopped": ended.stopped,
        "audio_seconds": ended.audio_seconds,
        "wall_seconds": wall,
        "realtime_factor": ended.audio_seconds / wall if wall else None,
        "can_show": power_of(plan, ties),
        "warning": abx_warning(plan.kind, plan.settings),
        "warnings": list(warnings),
    }


def takes_by_setting(
    plan: ComparisonPlan, pairs: Sequence[Revealed], files: Sequence[str]
) -> list[dict[str, Any]]:
    """The takes of each setting as JSON, with their measurements: what a blind test hides.

    files: the names that `write_takes` gave both sides of each pair. A take is in several pairs of
    a round.
    """
    sides = [(pair, heard) for pair in pairs for heard in pair.heard]
    files_of: dict[tuple, list[str]] = defaultdict(list)
    for (pair, heard), file in zip(sides, files, strict=True):
        files_of[NAMES.index(heard), pair.trial.script, pair.trial.seed].append(file)
    made = [slot for slot in plan.slots if slot.id in plan.facts]
    return [
        {
            "setting": NAMES[index],
            "name": name,
            "takes": [
                {
                    "script": slot.script,
                    "seed": slot.seed,
                    "files": files_of[index, slot.script, slot.seed],
                    **plan.facts[slot.id],
                }
                for slot in made
                if slot.setting == index
            ],
        }
        for index, name in enumerate(setting_names(plan.settings))
    ]
