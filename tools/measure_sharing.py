"""Measure how long eight people wait who generate at once, beside one of them alone.

For the embedded voice without arguments; at Dia-1.6B's size with random weights after
`python -m tools.make_random_dia /tmp/dia --codec`: /tmp/dia --precision int8 --max-tokens 300.

Prints the seconds of one take alone, of eight takes as one batch, and of eight takes that eight
threads ask for at once, each also as a ratio to the first; last, one line of JSON. Measure on an
idle machine: the three take turns, and their medians are compared.
"""

from __future__ import annotations

import argparse
import json
import statistics
import threading
from collections.abc import Callable
from time import perf_counter

import dia_demo
from dia_demo.engine.scheduler import PLACES

SCRIPT = "[S1] The river was high that year, and the bridge was closed until the end of spring."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", default="nano")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--max-tokens", type=int, help="default: the model's own")
    parser.add_argument("--people", type=int, default=PLACES)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    limits = {} if options.max_tokens is None else {"max_tokens": options.max_tokens}
    loading = dia_demo.load(options.model, precision=options.precision, threads=options.threads)
    with loading as model:

        def alone() -> None:
            model.generate(SCRIPT, seed=1, **limits)

        def batch() -> None:
            model.batch([SCRIPT] * options.people, seeds=range(options.people), **limits)

        def together() -> None:
            people = [
                threading.Thread(
                    target=model.generate, args=[SCRIPT], kwargs={"seed": seed, **limits}
                )
                for seed in range(options.people)
            ]
            for person in people:
                person.start()
            for person in people:
                person.join()

        measured: dict[str, list[float]] = {"alone": [], "batch": [], "together": []}
        alone()  # Whatever is built at the first take.
        for _ in range(options.repeats):
            for run in (alone, batch, together):
                measured[run.__name__].append(seconds_of(run))
    medians = {name: statistics.median(seconds) for name, seconds in measured.items()}
    for name, seconds in medians.items():
        print(f"{name:9} {seconds:7.2f} s   {seconds / medians['alone']:5.2f} x alone")
    ratios = {
        "together_over_alone": medians["together"] / medians["alone"],
        "together_over_batch": medians["together"] / medians["batch"],
    }
    print(json.dumps({"model": options.model, "people": options.people} | medians | ratios))


def seconds_of(run: Callable[[], None]) -> float:
    """How long a call takes."""
    began = perf_counter()
    run()
    return perf_counter() - began


if __name__ == "__main__":
    main()
