"""panel.json: the plan of a panel test in a file, every value checked when it is read.

The names of the systems, the key and the files of the stimuli are sealed, as in the plan of a
comparison: they cannot be read by accident, but this program's code can read them.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path

from dia_demo.audio import STORED_SUFFIX
from dia_demo.errors import InputError
from dia_demo.services.listening.panel.plan import PanelPlan, check_panel_plan
from dia_demo.services.listening.panel.stimuli import needed_stimuli
from dia_demo.services.listening.plan.plan_file import MAX_BYTES, seal, unseal, write_whole
from dia_demo.untrusted import parse_as

NAME = "panel.json"
FORMAT, VERSION = "dia-panel", 1
# What the file has sealed.
_HIDDEN = ("systems", "key", "clips", "gains_db", "settings", "invitation")
_HEX = {"id": re.compile(r"[0-9a-f]{24}"), "key": re.compile(r"[0-9a-f]{64}")}
_TOKEN = re.compile(r"[0-9a-f]{32}")
_CLIP = re.compile(rf"[0-9a-f]{{24}}{re.escape(STORED_SUFFIX)}")


def write_panel_plan(folder: Path, plan: PanelPlan) -> None:
    """Write panel.json into `folder`. Raises RunError if that fails."""
    values = asdict(plan)
    hidden = {name: values.pop(name) for name in _HIDDEN}
    open_part = {"format": FORMAT, "version": VERSION, **values, "sealed": seal(plan.id, hidden)}
    write_whole(folder / NAME, json.dumps(open_part, indent=1).encode())


def read_panel_plan(folder: Path, has_clips: bool = True) -> PanelPlan:
    """The plan of a folder. has_clips: whether it lists its clips, as it does once they are made.

    Raises InputError if it is missing, invalid, or of another version.
    """
    try:
        with open(folder / NAME, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError:
        raise InputError("This listening test no longer exists here.") from None
    try:
        raw = json.loads(data.decode())
        if len(data) > MAX_BYTES or raw["format"] != FORMAT:
            raise ValueError("format")
        version = raw["version"]
        if version == VERSION:
            raw |= unseal(str(raw["id"]), raw["sealed"])
            plan = parse_as(PanelPlan, raw)
            _check(plan, has_clips)
            return plan
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{NAME} is damaged and cannot be read.") from error
    raise InputError(
        f"This listening test has version {version!r:.20}, but this program reads version "
        f"{VERSION}: open it with the program that made it."
    )


def _check(plan: PanelPlan, has_clips: bool) -> None:
    """Raise ValueError or InputError if the parts of a plan are inconsistent."""
    names = all(pattern.fullmatch(getattr(plan, name)) for name, pattern in _HEX.items())
    files = all(_CLIP.fullmatch(file) for file in plan.clips.values())
    if not names or not files or not _TOKEN.fullmatch(plan.invitation.token):
        raise ValueError("a name")
    if has_clips and needed_stimuli(plan) - plan.clips.keys():
        raise ValueError("a stimulus is missing")
    check_panel_plan(plan)
