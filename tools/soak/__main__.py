"""Let many clients use the app for minutes, and check every answer.

    python -m tools.soak                              50 clients, 10 minutes
    python -m tools.soak --clients 8 --seconds 20

Starts the app, asks for every kind of answer once, and then lets the clients ask for them in random
order, by all routes, each at an address of its own; a third of the requests are left in the middle,
and some of them continued. An answer must have the bytes that it had alone. Prints what became of
the requests, and what the app uses afterwards; the exit code is 1 if anything is missed. On Linux.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tools.soak.app import running_app
from tools.soak.clients import Soak
from tools.soak.report import bars, table

# When the memory is compared with that at the end, at most this share of the time.
SETTLED_SECONDS, SETTLED_SHARE = 120.0, 0.25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        with running_app(Path(folder)) as app:
            soak = asyncio.run(Soak.prepare(app))
            before = app.usage()
            asyncio.run(soak.run(options.clients, options.seconds, options.seed))
            after = app.wait_until_quiet(before)
        left, log = len(app.left_files()), app.log.read_text()
    tally = soak.tally
    if "Traceback" in log:
        tally.note_problem("lost", f"a traceback in the app's log:\n{log}")
    settled = min(SETTLED_SECONDS, SETTLED_SHARE * options.seconds)
    found = bars(tally, tally.growth(settled, options.seconds), before, after, left)
    print(table(tally, options.seconds, found, after))
    sys.exit(not all(found.values()))


if __name__ == "__main__":
    main()
