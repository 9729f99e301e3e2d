"""The rehearsal's table: what each step expects, what was found, whether it held."""

from __future__ import annotations

import subprocess
import traceback
from collections.abc import Callable


class Mismatch(Exception):
    """A step found something else than it expects; the message says what."""


class Table:
    """Prints a line for each step as it comes. failed: how many did not hold."""

    def __init__(self) -> None:
        self.failed = 0
        print(f"{'':2} {'step':22} {'expected':48} found")

    def step(self, name: str, expected: str, attempt: Callable[[], str]) -> bool:
        """One line. `attempt` returns what it found, and raises Mismatch where that is wrong."""
        held = False
        try:
            result, held = attempt(), True
        except Mismatch as error:
            result = str(error)
        except subprocess.CalledProcessError as error:
            result = f"{error}: {(error.stderr or error.output or '').strip()[-300:]}"
        except Exception as error:  # What no step foresees fails it, and the others go on.
            traceback.print_exc()
            result = f"{type(error).__name__}: {error}"[:300]
        self.failed += not held
        print(f"{'ok' if held else '!!'} {name:22} {expected:48} {result}", flush=True)
        return held
