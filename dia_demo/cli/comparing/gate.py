"""`compare --gate`: whether a test showed what it was planned to show, as an exit code."""

from __future__ import annotations

import json
from pathlib import Path

from dia_demo.errors import InputError
from dia_demo.services.listening.panel.analysis.ending import panel_result, reveal_panel
from dia_demo.services.listening.panel.analysis.result import GoalVerdict
from dia_demo.services.listening.panel.panel import Panel
from dia_demo.services.listening.panel.store import panel_folder
from dia_demo.services.listening.report.files import test_json


def gate(folder: Path, as_json: bool) -> int:
    """0 if the goal of the plan was reached, 1 if not. A test that its plan calls decided is
    revealed.

    Raises InputError, exit code 2, while the plan does not let the result be seen, and for a folder
    without a test.
    """
    place = panel_folder(folder)
    if place is None:
        raise InputError(
            f"{folder} has no test with many listeners: make one with compare --listeners."
        )
    panel = Panel.open(place)
    reveal_panel(panel)
    result = panel_result(panel)
    print(json.dumps(test_json(panel)) if as_json else result.sentence)
    return 0 if result.verdict is GoalVerdict.PASSED else 1
