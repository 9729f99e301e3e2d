"""Simulate listening tests of many raters: false alarms, coverage and power of every design.

    nice python -m tools.simulate_raters --experiments 10000 --workers 2 --log FILE

Each experiment has 12 raters and 16 trials, with effects of raters and scripts. Finished blocks of
experiments are appended to the log, and a run with the same log continues it. Prints a table and
exits with 1 if a share is outside its bounds.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.simulate_raters.cases import all_cases
from tools.simulate_raters.run import Log, run_blocks, table_of


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--experiments", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--log", type=Path, default=Path("simulate_raters.jsonl"))
    parser.add_argument("--only", choices=list(all_cases()), action="append")
    given = parser.parse_args()
    names = given.only or list(all_cases())
    log = Log(given.log)
    run_blocks(names, given.experiments, given.workers, log)
    table, is_good = table_of(names, given.experiments, log)
    print(table)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
