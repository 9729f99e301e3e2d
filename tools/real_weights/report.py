"""The table of what was measured, for docs/performance.md."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from dia_demo.families.resolve import local_folder
from dia_demo.files import write_atomic
from dia_demo.hub.cache import cached_config, cached_source
from dia_demo.services.measurements import words
from dia_demo.services.system_info import describe_machine
from tools.real_weights.check import Check, Outcome


def write_report(check: Check, outcome: Outcome) -> None:
    with write_atomic(check.work / "report.md") as part:
        part.write_text("\n".join(report(check, outcome)) + "\n", encoding="utf-8")


def report(check: Check, outcome: Outcome) -> Iterator[str]:
    machine = describe_machine()
    folder = local_folder(check.model) or cached_config(check.model) or Path(check.model)
    source = cached_source(folder)
    revision = f" at revision {source[1]}" if source else ""
    yield f"### {check.model}{revision}"
    yield ""
    yield (
        f"{machine.cpu}, {machine.cores} cores, {machine.simd}, torch {torch.__version__}, Python "
        f"{platform.python_version()}, {datetime.now(UTC):%Y-%m-%d}. Fixed dialogues with seeds 0, "
        f"1, 2, ... and the checkpoint's own settings; medians. Words by pocketsphinx, which knows "
        "nothing of the voices."
    )
    yield ""
    yield (
        "| | takes | wrong words | ended by themselves | length / expected | with remarks | whole "
        "| first sound | peak memory |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for precision, takes in outcome.takes.items():
        if takes:
            yield row(precision, takes)
    yield ""
    yield outcome.codes
    if outcome.failures:
        yield ""
        yield "Failed:"
        yield ""
        yield from (f"- {failure}" for failure in outcome.failures)


def row(precision: str, takes: Sequence[dict[str, Any]]) -> str:
    """A precision's line of the table."""

    def median(key: str) -> float:
        return statistics.median(take[key] for take in takes)

    heard = [take for take in takes if take["heard"] is not None]
    scripts, transcripts = ([take[key] for take in heard] for key in ("script", "heard"))
    wrong = f"{words.word_error(scripts, transcripts):.1%}" if heard else "not measured"
    ended = sum(take["finish_reason"] == "end" for take in takes)
    lengths = [take["audio_seconds"] / take["expected_seconds"] for take in takes]
    cells = [
        precision,
        str(len(takes)),
        wrong,
        f"{ended} of {len(takes)}",
        f"{statistics.median(lengths):.2f} ({min(lengths):.2f} to {max(lengths):.2f})",
        str(sum(bool(take["remarks"]) for take in takes)),
        f"{median('realtime_factor'):.2f}x",
        f"{median('first_audio_seconds'):.1f} s",
        f"{max(take['peak_rss_bytes'] for take in takes) / 1e9:.1f} GB",
    ]
    return f"| {' | '.join(cells)} |"
