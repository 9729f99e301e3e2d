"""The HTML of the Compare tab: the note on a plan, the result with its chart, the reveal.

Every text is escaped here. While a comparison is blind, only the note on its plan is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from dia_demo.services.listening.comparison import Comparison, Revealed
from dia_demo.services.listening.plan.names import LABELS, capitalize, setting_names, value_texts
from dia_demo.services.listening.plan.plan import NAMES, ComparisonKind
from dia_demo.services.listening.plan.setting import differences
from dia_demo.services.listening.report.charts import interval_chart
from dia_demo.services.listening.verdict.result import ComparisonResult, Count, Strength
from dia_demo.services.listening.votes.table import CLIP_NUMBERS
from dia_demo.services.wording import ENDINGS, plural

_FACTS = {
    "seconds": ("Length", "{:.1f} s"),
    "words_per_minute": ("Words per minute", "{:.0f}"),
    "loudness_lufs": ("Loudness before matching", "{:.1f} LUFS"),
    "true_peak_db": ("True peak before matching", "{:.1f} dB"),
    "finish_reason": ("Ended", "{}"),
    "precision": ("Precision", "{}"),
}


def plan_note(cost: str, shows: str, cautions: Sequence[str] = ()) -> str:
    """What a planned comparison costs and what it can show."""
    warnings = "".join(f'<p class="caution">{escape(caution)}</p>' for caution in cautions)
    return f'<div class="plan-note"><p>{escape(cost)}</p><p>{escape(shows)}</p>{warnings}</div>'


def problem_note(message: str) -> str:
    """Why the values are not a valid plan."""
    return f'<div class="plan-note problem"><p>{escape(message)}</p></div>'


def press_problem(message: str) -> str:
    """Why a button did not do its work, to be shown beside it."""
    return f'<div role="alert">{problem_note(message)}</div>'


def result(comparison: Comparison) -> str:
    """The result of a comparison after the reveal: one sentence, then the figures."""
    if comparison.plan.kind == ComparisonKind.SIGHTED:
        return _settings(comparison) + _reveal(comparison, with_votes=False)
    outcome = comparison.result()
    notes = "".join(f"<li>{escape(note)}</li>" for note in outcome.notes)
    return (
        f'<p class="verdict">{escape(outcome.sentence)}</p><ul class="notes">{notes}</ul>'
        f"{_settings(comparison)}{_chart(outcome)}{_counts(outcome)}"
        f'<p class="small">{outcome.voted} of {plural(outcome.pairs, "pair")} judged, '
        f"{outcome.listening_seconds:.0f} s of listening{_clearness(outcome)}. "
        f"{_how_computed(outcome)}</p>"
        f"{_reveal(comparison, with_votes=True)}"
    )


def _how_computed(outcome: ComparisonResult) -> str:
    """The p-value in words, and the one method that the intervals come from."""
    if outcome.ranking:
        return "The 95% intervals (Bradley-Terry) apply to these scripts only."
    if outcome.overall is None or outcome.overall.p is None:
        return ""
    p = f"p = {outcome.overall.p:.3f} is the probability"
    interval = "The 95% interval (Clopper-Pearson) applies to these scripts only."
    if outcome.kind == ComparisonKind.ABX:
        return f"{p} of at least this many right answers by guessing (binomial). {interval}"
    return (
        f"{p} of a result at least as one-sided by chance (signs of the leads on all scripts "
        f"flipped in every way). {interval}"
    )


def _clearness(outcome: ComparisonResult) -> str:
    if outcome.mean_strength is None:
        return ""
    return f", mean strength {outcome.mean_strength:.1f} of 3"


def _settings(comparison: Comparison) -> str:
    """The values of each setting where they differ in more than their names say."""
    settings = comparison.plan.settings
    differing = differences(settings)
    if not differing:
        return "<p>Both sides have the same settings.</p>"
    if len(differing) == 1:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(LABELS[name])}</th>'
        + "".join(f"<td>{escape(text)}</td>" for text in value_texts(name, values))
        + "</tr>"
        for name, values in differing.items()
    )
    heads = (f'<th scope="col">{escape(capitalize(name))}</th>' for name in setting_names(settings))
    return _table("What differs", f"<td></td>{''.join(heads)}", rows)


def _counts(outcome: ComparisonResult) -> str:
    """The votes as tables: overall with its parts, or every two settings of a round."""
    if outcome.overall is None:
        rows = "".join(
            _count_row(capitalize(" against ".join(count.settings)), count, 0, with_ties=True)
            for count in outcome.by_pair
        )
        return _table(
            "Votes", _head("First", "Second", "No difference", "Share of the first"), rows
        )
    is_abx = outcome.kind == ComparisonKind.ABX
    side = _leading_side(outcome)
    rows = "".join(
        _count_row(capitalize(count.label), count, side, with_ties=not is_abx)
        for count in (outcome.overall, *outcome.parts)
    )
    if is_abx:
        return _table("Answers", _head("Right", "Wrong", "Share right"), rows)
    names = outcome.overall.settings
    share = f"Share of {names[side]}"
    return _table("Votes", _head(*map(capitalize, names), "No difference", share), rows)


def _leading_side(outcome: ComparisonResult) -> int:
    """The side whose share is shown: the one with more votes; of ABX the right answers."""
    count = outcome.overall
    is_abx = outcome.kind == ComparisonKind.ABX
    return int(count is not None and not is_abx and count.second > count.first)


def _head(*words: str) -> str:
    return "<td></td>" + "".join(f'<th scope="col">{escape(word)}</th>' for word in words)


def _count_row(label: str, count: Count, side: int, with_ties: bool) -> str:
    rate, low, high = _share(count, side)
    share = "–" if rate is None else f"{rate:.0%} ({low:.0%} to {high:.0%})"
    cells = (count.first, count.second, *([count.ties] if with_ties else []), share)
    return (
        f'<tr><th scope="row">{escape(label)}</th>'
        + "".join(f"<td>{cell}</td>" for cell in cells)
        + "</tr>"
    )


def _share(count: Count, side: int) -> tuple[float | None, float, float]:
    """The share of one side's votes with its interval."""
    low, high = count.interval
    if side == 0 or count.rate is None:
        return count.rate, low, high
    return 1 - count.rate, 1 - high, 1 - low


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
    if outcome.overall is None or outcome.overall.rate is None:
        return ""
    is_abx = outcome.kind == ComparisonKind.ABX
    side = _leading_side(outcome)
    rows = [(capitalize(row.label), _share(row, side)) for row in (outcome.overall, *outcome.parts)]
    lines = [(label, rate, low, high) for label, (rate, low, high) in rows if rate is not None]
    what = "right answers" if is_abx else f"votes for {outcome.overall.settings[side]}"
    ticks = [(0.0, "0%"), (0.5, "chance"), (1.0, "100%")]
    return interval_chart(f"Share of {what}, with its 95% interval", lines, ticks, 0.0, 1.0)


def _strength_chart(ranking: Sequence[Strength]) -> str:
    low = min(entry.low for entry in ranking)
    high = max(entry.high for entry in ranking)
    lines = [(capitalize(entry.name), entry.strength, entry.low, entry.high) for entry in ranking]
    title = "Strength (log odds, Bradley-Terry), with its 95% interval"
    return interval_chart(title, lines, [(0.0, "average")], min(low, -0.1), max(high, 0.1))


# Reveal


def _reveal(comparison: Comparison, with_votes: bool) -> str:
    several = len(comparison.plan.scripts) > 1
    pairs = comparison.revealed_pairs()
    cards = "".join(_pair(comparison, pair, with_votes, several) for pair in pairs)
    missing = len(comparison.plan.trials) - len(pairs)
    note = f"{plural(missing, 'pair')} without audio."
    if not comparison.running:
        note += f" Press Resume to generate {'it' if missing == 1 else 'them'}."
    listed = f'{f"<p>{note}</p>" if missing else ""}<div class="pairs">{cards}</div>'
    if not with_votes:
        return listed
    heard = f"All pairs ({len(pairs)}), to listen to again"
    return f'<details class="all-pairs"><summary>{heard}</summary>{listed}</details>'


def _pair(comparison: Comparison, pair: Revealed, with_votes: bool, several: bool) -> str:
    trial = pair.trial
    names = dict(zip(NAMES, setting_names(comparison.plan.settings), strict=False))
    label = f"seed {trial.seed}"
    if several:
        label = f"script {trial.script + 1}, {label}"
    vote = f'<p class="small">{escape(_vote_words(pair, names))}</p>' if with_votes else ""
    sides = "".join(
        _side(trial.id, letter, names[pair.heard[at]], pair.facts[at], pair.gains_db[at : at + 1])
        for at, letter in enumerate("AB")
    )
    if comparison.is_aligned(trial):
        vote += '<p class="small">Both sides have exactly the same codes.</p>'
    pictures = f'<div class="pictures" data-pictures="{trial.id}"></div>' if not with_votes else ""
    return (
        f'<section class="pair" aria-label="Pair {pair.order}"><h4>Pair {pair.order} '
        f'<span>{escape(label)}</span></h4>{vote}<div class="pair-sides">{sides}</div>'
        f"{pictures}</section>"
    )


def _vote_words(pair: Revealed, names: Mapping[str, str]) -> str:
    if pair.vote is None:
        return "Not judged."
    vote = pair.vote
    if pair.x is not None:
        right = "right" if vote.correct == "yes" else "wrong"
        answer, x = CLIP_NUMBERS[vote.vote], CLIP_NUMBERS[pair.x]
        text = (
            f"Your answer: X is {answer}, which is {right}. X was {x}, {names[_heard_as_x(pair)]}."
        )
    elif vote.vote == "none":
        text = "You heard no difference."
    else:
        text = f"You chose {names[vote.winner]}, heard as clip {CLIP_NUMBERS[vote.vote]}."
    strength = f" Strength {vote.strength} of 3." if vote.strength else ""
    note = f" “{vote.note}”" if vote.note else ""
    heard = f" Listened {vote.seconds_a:.0f} s and {vote.seconds_b:.0f} s."
    return text + strength + heard + note


def _heard_as_x(pair: Revealed) -> str:
    """The letter of the setting that X was."""
    assert pair.x is not None, "only ABX has an X"
    return pair.heard["AB".index(pair.x)]


def _side(trial: str, letter: str, name: str, facts: dict, gain: Sequence[float]) -> str:
    shown = [
        (label, _fact(fact, facts[fact], pattern))
        for fact, (label, pattern) in _FACTS.items()
        if fact in facts
    ]
    shown += [("Turned down by", f"{abs(gain[0]):.1f} dB")] if gain else []
    rows = "".join(f"<div><dt>{label}</dt><dd>{escape(text)}</dd></div>" for label, text in shown)
    return (
        f'<div class="pair-side"><button type="button" class="hear" data-trial="{trial}" '
        f'data-letter="{letter}">Play {escape(name)}</button>'
        f'<input type="range" class="place" min="0" max="1" step="any" value="0" disabled '
        f'aria-label="Position in {escape(name)}"><dl>{rows}</dl></div>'
    )


def _fact(name: str, value: object, pattern: str) -> str:
    if name == "finish_reason":
        return ENDINGS.get(str(value), str(value))
    try:
        return pattern.format(value)
    except (TypeError, ValueError):
        return str(value)
