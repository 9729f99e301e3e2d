"""Send requests by chance to the routes for programs, most of them malformed.

    python -m tools.fuzz_api                          # starts an app with the embedded voice
    python -m tools.fuzz_api --examples 60            # fewer: a minute or two
    python -m tools.fuzz_api --cluster                # a gateway with a replica (Ray Serve)

schemathesis makes the requests from the server's own OpenAPI description; bodies that are no JSON
and sessions of the WebSocket come beside them. Prints a table. The exit code is 1 if there were a
status of 500 or above, a traceback (in an answer or in the app's log), or an answer that did not
begin in time, or fewer than 1,000 malformed requests. Needs requirements-dev.txt, and --cluster
requirements-serve.txt.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tools.chaos.cluster_faults import with_cluster
from tools.chaos.program import run_program
from tools.chaos.scenario import NotHere
from tools.fuzz_api.requests import fuzz_http
from tools.fuzz_api.sockets import fuzz_engine, fuzz_speech
from tools.fuzz_api.tally import Tally

LEAST_MALFORMED = 1000


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.fuzz_api",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--examples", type=int, default=400, help="of each route (default: 400)")
    parser.add_argument("--cluster", action="store_true", help="instead of the app")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        fuzz = _fuzz_cluster if options.cluster else _fuzz_app
        try:
            tally = fuzz(Path(name), options.examples)
        except NotHere as error:
            sys.exit(str(error))
    print("\n".join(tally.lines()))
    passed = not tally.faults and tally.malformed >= LEAST_MALFORMED
    seconds = time.monotonic() - began
    print(f"\n{tally.malformed} malformed requests, {len(tally.faults)} faults, {seconds:.0f} s")
    sys.exit(0 if passed else 1)


def _fuzz_app(folder: Path, examples: int) -> Tally:
    with run_program(folder) as app:
        return _fuzz(app.url, app.log, examples)


def _fuzz_cluster(folder: Path, examples: int) -> Tally:
    """Ray writes the log of each of its processes below the system's temporary folder."""
    tempfile.tempdir = str(folder)

    def log() -> str:
        files = folder.glob("dia-ray-*/session_2*/logs/**/*.*")
        return "".join(path.read_text(errors="replace") for path in files if path.is_file())

    found: list[Tally] = []

    def use(url: str) -> str:
        found.append(_fuzz(url, log, examples))
        return ""

    with_cluster(folder, 1, use)
    return found[0]


def _fuzz(url: str, log: Callable[[], str], examples: int) -> Tally:
    tally = Tally(log)
    fuzz_http(url, tally, examples)
    fuzz_speech(url, tally, examples // 2)
    fuzz_engine(url, tally, examples // 2)
    return tally


if __name__ == "__main__":
    main()
