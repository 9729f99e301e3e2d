"""Send requests by chance to the routes for programs, most of them malformed.

    python -m tools.fuzz_api                          # starts an app with the embedded voice
    python -m tools.fuzz_api --examples 60            # fewer: a minute or two

schemathesis makes the requests from the server's own OpenAPI description; bodies that are no JSON
and sessions of the WebSocket come beside them. Prints a table. The exit code is 1 if there were a
status of 500 or above, a traceback (in an answer or in the app's log), or an answer that did not
begin in time, or fewer than 1,000 malformed requests. Needs requirements-dev.txt.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tools.chaos.program import run_program
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
    examples = parser.parse_args().examples
    with tempfile.TemporaryDirectory() as folder, run_program(Path(folder)) as app:
        began = time.monotonic()
        tally = Tally(app.log)
        fuzz_http(app.url, tally, examples)
        fuzz_speech(app.url, tally, examples // 2)
        fuzz_engine(app.url, tally, examples // 2)
        seconds = time.monotonic() - began
    print("\n".join(tally.lines()))
    passed = not tally.faults and tally.malformed >= LEAST_MALFORMED
    print(f"\n{tally.malformed} malformed requests, {len(tally.faults)} faults, {seconds:.0f} s")
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
