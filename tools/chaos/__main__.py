"""Break things while they are in use, and print what became of them.

    python -m tools.chaos                  # all, about five minutes
    python -m tools.chaos --short          # what CI runs
    python -m tools.chaos --only gateway   # those whose line contains a word

kill -9 of the app, a replica or the gateway; a full disk; a cache that cannot be written; a clock
that jumps. Exit code 1 where something is lost. Needs requirements-serve.txt for the cluster, and
the right to mount a file system for the full disk; the rest runs anywhere.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tools.chaos import app_faults, cluster_faults, write_faults
from tools.chaos.scenario import NotHere, Scenario

SCENARIOS = [*app_faults.SCENARIOS, *write_faults.SCENARIOS, *cluster_faults.SCENARIOS]


def run(scenario: Scenario, short: bool) -> tuple[str, str]:
    """A verdict, and what was seen."""
    with tempfile.TemporaryDirectory(prefix="dia-chaos-", ignore_cleanup_errors=True) as folder:
        try:
            return "held", scenario.run(Path(folder), short)
        except NotHere as error:
            return "not run", str(error)
        except Exception as error:
            return "LOST", f"{type(error).__name__}: {error}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="fewer kills and streams, for CI")
    parser.add_argument("--only", default="", metavar="WORD", help="those whose line contains it")
    options = parser.parse_args()
    print("| fault | during | expected | verdict | seen | s |\n|---|---|---|---|---|---|")
    verdicts = []
    for scenario in SCENARIOS:
        line = f"| {scenario.fault} | {scenario.during} | {scenario.expected} |"
        if options.only not in line:
            continue
        began = time.monotonic()
        verdict, seen = run(scenario, options.short)
        verdicts.append(verdict)
        print(f"{line} {verdict} | {' '.join(seen.split())} | {time.monotonic() - began:.0f} |")
        sys.stdout.flush()
    return 1 if "LOST" in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
