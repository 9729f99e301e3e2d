"""The HTML of the Compare tab: the note on a plan, the result with its chart, the reveal.

Every text is escaped here. While a comparison is blind, only the note on its plan is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from dia_demo.services.listening.comparison import Comparison, Revealed
from dia_demo.services.listening.plan import NAMES, ComparisonKind, differences
from dia_demo.services.listening.result import ComparisonResult, Count, Strength
from dia_demo.services.wording import ENDINGS, plural
from dia_demo.text.normaliser import Reading
from dia_demo.ui import html
from dia_demo.ui.compare.form import SIDE_FIELDS

CHART_WIDTH, ROW_HEIGHT, LEFT, RIGHT = 640, 30, 150, 20
_FACTS = {
    "seconds": ("Length", "{:.1f} s"),
    "words_per_minute": ("Words per minute", "{:.0f}"),
    "loudness_lufs": ("Loudness before matching", "{:.1f} LUFS"),
    "true_peak_db": ("True peak before matching", "{:.1f} dB"),
    "realtime_factor": ("Realtime factor", "{:.2f}x"),
    "finish_reason": ("Ended", "{}"),
    "precision": ("Precision", "{}"),
}


def label_of(name: str) -> str:
    """The label of a field."""
    return SIDE_FIELDS.get(name, (name, None))[0]


def plan_note(
    kind: str,
    differing: Mapping[str, Sequence],
    cost: str,
    shows: str,
    warning: str | None = None,
    read_as: Sequence[Reading] = (),
) -> str:
    """What differs, what it costs and what it can show; highlights the fields that differ.

    read_as: scripts as the nano voice reads them, where they are normalised.
    """
    named = " · ".join(
        f"<strong>{escape(label_of(name))}</strong> {escape(' vs. '.join(map(str, values)))}"
        for name, values in differing.items()
    )
    rules = ", ".join(f"#compare .field-{escape(name)}" for name in differing)
    soft = "{ background: var(--color-accent-soft); }"
    highlight = f"<style>{rules} {soft}</style>" if rules else ""
    several = ""
    if len(differing) > 1 and kind != "round":
        several = " More than one setting differs, so a result cannot show which one caused it."
    read = "".join(map(html.read_as, read_as))
    caution = f'<p class="caution">{escape(warning)}</p>' if warning else ""
    return (
        f'<div class="plan-note">{highlight}<p>Differs: {named or "nothing yet"}.{several}</p>'
        f"<p>{escape(cost)}</p><p>{escape(shows)}</p>{caution}{read}</div>"
    )


def problem_note(message: str) -> str:
    """Why the values are not a valid plan."""
    return f'<div class="plan-note problem"><p>{escape(message)}</p></div>'


def result(comparison: Comparison) -> str:
    """The result of a comparison after the reveal."""
    if comparison.plan.kind == ComparisonKind.SIGHTED:
        return _sides(comparison) + _reveal(comparison, with_votes=False)
    outcome = comparison.result()
    notes = "".join(f"<li>{escape(note)}</li>" for note in outcome.notes)
    return (
        f'<p class="verdict">{escape(outcome.sentence)}</p><ul class="notes">{notes}</ul>'
        f"{_sides(comparison)}{_chart(outcome)}{_counts(outcome)}"
        f'<p class="small">{outcome.voted} of {outcome.pairs} pairs judged, '
        f"{outcome.listening_seconds:.0f} s of listening{_clearness(outcome)}. "
        f"{_how_computed(outcome)}</p>"
        f"{_reveal(comparison, with_votes=True)}"
    )


def _how_computed(outcome: ComparisonResult) -> str:
    if outcome.kind == ComparisonKind.ABX:
        return (
            "p is the probability of at least this many right answers by guessing (binomial); "
            "the interval is exact (Clopper-Pearson)."
        )
    interval = "Bradley-Terry" if outcome.ranking else "Clopper-Pearson"
    return (
        "p is from a sign test over scripts, each of which counts once. The 95% intervals "
        f"({interval}) apply to these scripts only."
    )


def _clearness(outcome: ComparisonResult) -> str:
    if outcome.mean_strength is None:
        return ""
    return f", mean strength {outcome.mean_strength:.1f} of 3"


def _sides(comparison: Comparison) -> str:
    settings = comparison.plan.settings
    differing = differences(settings)
    rows = "".join(
        f'<tr><th scope="row">{escape(label_of(name))}</th>'
        + "".join(f"<td>{escape(str(value))}</td>" for value in values)
        + "</tr>"
        for name, values in differing.items()
    )
    head = "".join(f'<th scope="col">Settings {name}</th>' for name in NAMES[: len(settings)])
    if not rows:
        rows = f'<tr><td colspan="{len(settings) + 1}">Nothing differs.</td></tr>'
    return _table("Settings", f"<th></th>{head}", rows)


def _counts(outcome: ComparisonResult) -> str:
    words = ("Right", "Wrong") if outcome.kind == ComparisonKind.ABX else ("First", "Second")
    if outcome.overall and outcome.kind != ComparisonKind.ABX:
        words = ("A", "B")
    counts = [outcome.overall] if outcome.overall else []
    # A single script or seed would repeat the overall row.
    parts = [part for part in (outcome.by_script, outcome.by_seed) if len(part) > 1]
    counts = [*counts, *outcome.by_pair, *(count for part in parts for count in part)]
    rows = "".join(map(_count_row, counts))
    head = "".join(f'<th scope="col">{word}</th>' for word in ("", *words, "No difference", "Rate"))
    return _table("Votes", head, rows)


def _count_row(count: Count) -> str:
    low, high = count.interval
    rate = "–" if count.rate is None else f"{count.rate:.0%} ({low:.0%} to {high:.0%})"
    cells = (count.first, count.second, count.ties, rate)
    return (
        f'<tr><th scope="row">{escape(count.label)}</th>'
        + "".join(f"<td>{cell}</td>" for cell in cells)
        + "</tr>"
    )


def _table(caption: str, head: str, rows: str) -> str:
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{caption}">'
        f'<table class="lab-table"><caption>{caption}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


# Chart


def _chart(outcome: ComparisonResult) -> str:
    if outcome.ranking:
        return _strength_chart(outcome.ranking)
    by_script = outcome.by_script if len(outcome.by_script) > 1 else ()
    rows = [] if outcome.overall is None else [outcome.overall, *by_script]
    rows = [row for row in rows if row.rate is not None]
    if not rows:
        return ""
    lines = [(row.label, row.rate, *row.interval) for row in rows]
    side = "right" if outcome.kind == ComparisonKind.ABX else "votes for A"
    ticks = [(0.0, "0%"), (0.5, "chance"), (1.0, "100%")]
    return _interval_chart(f"Share {side}, with its 95% interval", lines, ticks, 0.0, 1.0)


def _strength_chart(ranking: Sequence[Strength]) -> str:
    low = min(entry.low for entry in ranking)
    high = max(entry.high for entry in ranking)
    lines = [
        (f"Settings {entry.setting}", entry.strength, entry.low, entry.high) for entry in ranking
    ]
    title = "Strength (log odds, Bradley-Terry), with its 95% interval"
    return _interval_chart(title, lines, [(0.0, "average")], min(low, -0.1), max(high, 0.1))


def _interval_chart(title: str, lines, ticks, low: float, high: float) -> str:
    def x(value: float) -> float:
        return LEFT + (CHART_WIDTH - LEFT - RIGHT) * (value - low) / (high - low)

    height = ROW_HEIGHT * len(lines) + 30
    parts = [
        f'<line class="tick" x1="{x(at):.1f}" x2="{x(at):.1f}" y1="4" y2="{height - 24}"/>'
        f'<text class="tick-text" x="{x(at):.1f}" y="{height - 8}" text-anchor="middle">{text}'
        "</text>"
        for at, text in ticks
    ]
    descriptions = []
    for row, (label, value, left, right) in enumerate(lines):
        y = ROW_HEIGHT * row + 20
        parts.append(
            f'<text x="0" y="{y + 4}">{escape(label)}</text>'
            f'<line class="reach" x1="{x(left):.1f}" x2="{x(right):.1f}" y1="{y}" y2="{y}"/>'
            f'<circle class="found" cx="{x(value):.1f}" cy="{y}" r="6"/>'
        )
        descriptions.append(f"{label}: {value:.2f}, from {left:.2f} to {right:.2f}")
    return (
        f'<figure class="lab-chart"><figcaption>{escape(title)}</figcaption>'
        f'<svg viewBox="0 0 {CHART_WIDTH} {height}" role="img" '
        f'aria-label="{escape("; ".join(descriptions))}">{"".join(parts)}</svg></figure>'
    )


# Reveal


def _reveal(comparison: Comparison, with_votes: bool) -> str:
    several = len(comparison.plan.scripts) > 1
    pairs = comparison.revealed()
    cards = "".join(_pair(comparison, pair, with_votes, several) for pair in pairs)
    missing = len(comparison.plan.trials) - len(pairs)
    note = f"{plural(missing, 'pair')} without audio."
    if not comparison.running:
        note += " Press Resume to generate it."
    return (
        f'<h3>All pairs</h3>{f"<p>{note}</p>" if missing else ""}<div class="pairs">{cards}</div>'
    )


def _pair(comparison: Comparison, pair: Revealed, with_votes: bool, several: bool) -> str:
    trial = pair.trial
    label = f"seed {trial.seed}" + (f", script {trial.script + 1}" if several else "")
    vote = ""
    if with_votes:
        vote = f'<p class="small">{escape(_vote_words(pair))}</p>'
    sides = "".join(
        _side(trial.id, letter, pair.heard[at], pair.facts[at], pair.gains_db[at : at + 1])
        for at, letter in enumerate("AB")
    )
    if comparison.aligned(trial):
        vote += '<p class="small">Both sides have exactly the same codes.</p>'
    pictures = f'<div class="pictures" data-pictures="{trial.id}"></div>' if not with_votes else ""
    return (
        f'<section class="pair" aria-label="Pair {pair.order}"><h4>Pair {pair.order} '
        f'<span>{escape(label)}</span></h4>{vote}<div class="pair-sides">{sides}</div>'
        f"{pictures}</section>"
    )


def _vote_words(pair: Revealed) -> str:
    if pair.vote is None:
        return "Not judged."
    vote = pair.vote
    if pair.x is not None:
        text = f"Your answer: X is {vote.vote}. X was {pair.x}."
    elif vote.vote == "none":
        text = "You heard no difference."
    else:
        text = f"You preferred {vote.vote}, which was settings {vote.winner}."
    strength = f" Strength {vote.strength} of 3." if vote.strength else ""
    note = f" “{vote.note}”" if vote.note else ""
    heard = f" Listened {vote.seconds_a:.0f} s and {vote.seconds_b:.0f} s."
    return text + strength + heard + note


def _side(trial: str, letter: str, setting: str, facts: dict, gain: Sequence[float]) -> str:
    shown = [
        (label, _fact(name, facts[name], pattern))
        for name, (label, pattern) in _FACTS.items()
        if name in facts
    ]
    shown += [("Turned down by", f"{abs(gain[0]):.1f} dB")] if gain else []
    rows = "".join(f"<div><dt>{label}</dt><dd>{escape(text)}</dd></div>" for label, text in shown)
    return (
        f'<div class="pair-side"><button type="button" class="hear" data-trial="{trial}" '
        f'data-letter="{letter}">Play settings {setting}</button>'
        f'<input type="range" class="place" min="0" max="1" step="any" value="0" disabled '
        f'aria-label="Position in the clip of settings {setting}"><dl>{rows}</dl></div>'
    )


def _fact(name: str, value: object, pattern: str) -> str:
    if name == "finish_reason":
        return ENDINGS.get(str(value), str(value))
    try:
        return pattern.format(value)
    except (TypeError, ValueError):
        return str(value)
