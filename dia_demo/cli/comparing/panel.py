"""A test with many listeners on the command line: its takes, its plan, its link."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from dia_demo.cli.comparing.pairs import changes_of, comparison_of, print_warnings, render
from dia_demo.errors import InputError, RunError
from dia_demo.services.listening.owner.options import PanelOptions
from dia_demo.services.listening.owner.tests import items_of, source_of_clips
from dia_demo.services.listening.panel.analysis.planning import panel_power
from dia_demo.services.listening.panel.panel import Panel
from dia_demo.services.listening.panel.stimuli import Source, from_comparison
from dia_demo.services.listening.panel.store import PANEL, panel_folder
from dia_demo.services.listening.plan.names import setting_names
from dia_demo.services.listening.plan.plan_file import write_whole
from dia_demo.services.listening.uploads.make import opened_clips, remarks_on
from dia_demo.services.synthesis import Synthesis
from dia_demo.untrusted import read_json

# Of a test's folder: its takes until they are all there, and its options.
PAIRS, OPTIONS = "pairs", "test.json"
OPTION_NAMES = tuple(field.name for field in fields(PanelOptions) if field.name != "raters")
_YES, _NO = ("yes", "true", "on", "1"), ("no", "false", "off", "0")


def is_for_many(options: argparse.Namespace) -> bool:
    """Whether a test with many listeners is asked for, or continued."""
    asked = options.listeners is not None or options.test is not None
    return asked or (options.output / OPTIONS).is_file()


def make_test(options: argparse.Namespace, synthesis: Synthesis) -> int:
    """Make a test in the folder of the options, or continue one, and print how to invite."""
    folder = options.output
    if panel_folder(folder) is not None:
        raise InputError(f"{folder} already holds a test: use another folder for a new one.")
    chosen = _chosen_options(options)
    if options.clips is not None:
        with opened_clips(options.clips) as clips:
            for remark in remarks_on(clips):
                print(remark, file=sys.stderr)
            panel = _create(folder, chosen, source_of_clips(clips))
    else:
        panel = _create(folder, chosen, _takes(options, chosen, synthesis))
    _print_made(panel, folder, options.json)
    return 0


def _chosen_options(options: argparse.Namespace) -> PanelOptions:
    """The options of the command line, or those of a test that was interrupted."""
    path = options.output / OPTIONS
    if options.listeners is None and options.test is None:
        return PanelOptions.from_mapping(read_json(path))
    named = {name: _read(name, value) for name, value in changes_of(options.test or ()).items()}
    chosen = PanelOptions.from_mapping(named)
    return chosen if options.listeners is None else replace(chosen, raters=options.listeners)


def _read(name: str, value: str) -> Any:
    """The value of an option from its text; a name that is unknown is refused later."""
    kind = next((str(field.type) for field in fields(PanelOptions) if field.name == name), "str")
    if kind.startswith("bool"):
        if value.lower() not in (*_YES, *_NO):
            raise InputError(f"{name} must be yes or no, not {value!r}.")
        return value.lower() in _YES
    if kind.startswith(("int", "float")):
        try:
            return int(value) if kind.startswith("int") else float(value)
        except ValueError:
            raise InputError(f"{name} must be a number, not {value!r}.") from None
    return value


def _takes(options: argparse.Namespace, chosen: PanelOptions, synthesis: Synthesis) -> Source:
    """The takes of the settings, all of them. Raises RunError if some are missing."""
    folder = options.output
    inner = argparse.Namespace(**(vars(options) | {"output": folder / PAIRS}))
    is_new = not inner.output.exists()
    comparison = comparison_of(inner, synthesis)
    plan = comparison.plan
    try:  # Before minutes of generating.
        chosen.plan(setting_names(plan.settings), items_of(plan))
    except InputError:
        if is_new:
            shutil.rmtree(inner.output)
        raise
    write_whole(folder / OPTIONS, json.dumps(asdict(chosen), indent=1).encode())
    print_warnings(plan, synthesis)
    ended = render(comparison, synthesis)
    if ended.pairs_made < ended.pairs:
        raise RunError(
            f"{ended.pairs_made} of {ended.pairs} pairs are there. The same command with -o alone "
            f"makes the others. {' '.join(ended.failures[:1])}"
        )
    return from_comparison(comparison)


def _create(folder: Path, chosen: PanelOptions, source: Source) -> Panel:
    plan = chosen.plan(source.systems, source.items)
    return Panel.create(folder / PANEL, plan, source)


def _print_made(panel: Panel, folder: Path, as_json: bool) -> None:
    plan = panel.plan
    shows = panel_power(plan).sentence
    path = f"/listen/{plan.link}"
    if as_json:
        made = {
            "folder": str(folder),
            "design": plan.design,
            "systems": list(plan.systems),
            "goal": asdict(plan.goal),
            "listeners": plan.raters,
            "screens": plan.trials,
            "link": path,
            "can_show": shows,
        }
        print(json.dumps(made))
        return
    lines = [
        shows,
        f"{folder}: a {plan.design} test of {' and '.join(plan.systems)} for {plan.raters} "
        f"listeners, {plan.trials} screens each.",
        f"To invite: DIA_COMPARE={folder} python app.py, then send its address with {path}",
        f"Without a server: compare --score {folder} --offline FILE.zip",
    ]
    print("\n".join(lines))
