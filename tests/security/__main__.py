"""Attack the app on this machine, and say which attacks succeed.

    python -m tests.security             # all of them, and the hostile checkpoints: some minutes
    python -m tests.security --short     # those that one running app answers: under a minute

Starts `python app.py` on 127.0.0.1 with folders of its own, and speaks to nothing else.
docs/security.md says what is promised.
Ends with exit code 1 where an attack succeeds.
"""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.security import access, files, hostile_checkpoints, listening, load, programs
from tests.security.client import App, Attack


@dataclass(frozen=True)
class Row:
    """A line of the table. found: what happened; withstood: whether that is harmless."""

    what: str
    expected: str
    found: str
    withstood: bool


def row_of(attack: Attack, target: App | Path) -> Row:
    """Carry out one attack."""
    try:
        withstood, found = attack.carry_out(target)
    except Exception as error:  # The app answered in a way that no attack foresees.
        traceback.print_exc()
        withstood, found = False, f"{type(error).__name__}: {error}"[:100]
    return Row(attack.what, attack.expected, found, withstood)


@contextmanager
def run_app(home: Path, **given: str) -> Iterator[App]:
    """The app with what earlier runs may have left, a shared comparison, and a file of its owner's
    in the folder of takes."""
    files.leave_behind(home)
    shared = files.make_comparison(home / "shared")
    app = App(home, DIA_COMPARE=str(shared), **given)
    try:
        app.wait_until_up()
        app.wait(app.call("[S1] Hello there. [S2]"))  # The model is loaded from here on.
        yield app
    finally:
        app.end()


def rows(short: bool) -> Iterator[Row]:
    """Every attack's line, as it comes."""
    if not short:  # First: what a new process has as its peak is at least what this one has now.
        yield from checkpoints()
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        home = Path(folder)
        with run_app(home / "app") as app:
            quick = (load, files, access, programs, listening)
            for attack in (one for module in quick for one in module.QUICK):
                yield row_of(attack, app)
            if not short:
                for attack in load.SLOW:
                    yield row_of(attack, app)
            yield row_of(files.temporary_files, app)
        if short:
            return
        for attack in (*files.ALONE, *access.ALONE, *load.ALONE, *programs.ALONE):
            yield row_of(attack, home / attack.carry_out.__name__)


def checkpoints() -> Iterator[Row]:
    """The hostile checkpoints, each in a process of its own."""
    for name, answer in hostile_checkpoints.ask_all():
        problems = "; ".join(answer.problems())
        yield Row(name, "one sentence", problems or "one sentence", not problems)


def main() -> int:
    """Print the table; 1 where an attack succeeds."""
    succeeded = 0
    print(f"{'':2} {'attack':56} {'expected':40} found")
    for row in rows(short="--short" in sys.argv[1:]):
        succeeded += not row.withstood
        mark = "  " if row.withstood else "!!"
        print(f"{mark} {row.what:56} {row.expected:40} {row.found}", flush=True)
    print(f"{succeeded} attacks succeed." if succeeded else "No attack succeeds.")
    return 1 if succeeded else 0


if __name__ == "__main__":
    sys.exit(main())
