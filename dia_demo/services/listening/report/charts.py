"""Charts of intervals as inline SVG: for the page, and for a report that is one file.

Colours and lines are the style sheet's, by class: tick, tick-text, reach, found, margin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

# A row: its label, its value, the ends of its interval. A tick: where, and what stands there.
Row = tuple[str, float, float, float]
Tick = tuple[float, str]

WIDTH, ROW_HEIGHT, RIGHT = 480, 30, 24
# Of a label: about the width of a character, and the most room that labels get.
CHARACTER_WIDTH, MOST_LEFT = 8.5, 260
_TICKS = 5


def interval_chart(
    title: str,
    rows: Sequence[Row],
    ticks: Sequence[Tick],
    low: float,
    high: float,
    margins: Sequence[float] = (),
) -> str:
    """Values with their intervals, one below the other. low, high: the ends of the axis. margins:
    lines that the intervals are compared with."""
    widest = max(len(label) for label, *_ in rows)
    start = min(MOST_LEFT, CHARACTER_WIDTH * widest + 16)

    def x(value: float) -> float:
        inside = min(max(value, low), high)
        return start + (WIDTH - start - RIGHT) * (inside - low) / (high - low)

    height = ROW_HEIGHT * len(rows) + 30
    parts = [
        f'<line class="tick" x1="{x(at):.1f}" x2="{x(at):.1f}" y1="4" y2="{height - 24}"/>'
        f'<text class="tick-text" x="{x(at):.1f}" y="{height - 8}" text-anchor="middle">'
        f"{escape(text)}</text>"
        for at, text in ticks
    ]
    parts += [
        f'<line class="margin" x1="{x(at):.1f}" x2="{x(at):.1f}" y1="4" y2="{height - 24}"/>'
        for at in margins
    ]
    described = []
    for number, (label, value, left, right) in enumerate(rows):
        y = ROW_HEIGHT * number + 20
        parts.append(
            f'<text x="0" y="{y + 4}">{escape(label)}</text>'
            f'<line class="reach" x1="{x(left):.1f}" x2="{x(right):.1f}" y1="{y}" y2="{y}"/>'
            f'<circle class="found" cx="{x(value):.1f}" cy="{y}" r="6"/>'
        )
        described.append(f"{label}: {value:.2f}, from {left:.2f} to {right:.2f}")
    return (
        f'<figure class="lab-chart"><figcaption>{escape(title)}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape("; ".join(described))}">{"".join(parts)}</svg></figure>'
    )


def chart_of(
    title: str, rows: Sequence[Row], margins: Sequence[float] = (), null: float | None = None
) -> str:
    """The same with an axis that fits its rows, its margins and the value of no difference."""
    ends = [end for _, value, low, high in rows for end in (value, low, high)]
    ends = [end for end in (*ends, *margins) if math.isfinite(end)]
    ends += [] if null is None else [null]
    low, high = min(ends), max(ends)
    step = nice_step((high - low) or 1.0)
    low, high = step * math.floor(low / step), step * math.ceil(high / step)
    high = high if high > low else low + step
    count = round((high - low) / step)
    ticks = [(at, f"{at:.6g}") for at in (round(low + step * n, 9) for n in range(count + 1))]
    return interval_chart(title, rows, ticks, low, high, margins)


def nice_step(span: float) -> float:
    """1, 2 or 5 times a power of ten, so that an axis of this length has about five steps."""
    rough = span / _TICKS
    power = 10 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
