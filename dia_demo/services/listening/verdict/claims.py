"""What a comparison can and cannot show, before any take is made. Its result is in `result`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dia_demo.engine.family import ModelInfo
from dia_demo.services.listening.plan.plan import ComparisonKind
from dia_demo.services.listening.plan.setting import Setting, differences
from dia_demo.services.listening.verdict import stats
from dia_demo.services.listening.verdict.planning import FEWEST_SCRIPTS, TIES, chances
from dia_demo.services.wording import plural
from dia_demo.voices import VOICE_FIELDS

# Settings that do not change the codes of a take, but perhaps where it ends.
SAME_CODES = {"speed", "max_tokens"}
# From this temperature on, a model with voices by name says so many turns in others that some pairs
# sound like different speakers: of 64 dialogues of six turns, 5 had one at 0.1, 10 at 0.6 and 13 at
# 1.0 (docs/dialogues.md, "Measured").
STRAYING_TEMPERATURE = 0.6
# With fewer answers, guessing gets all of them right too often.
FEWEST_ANSWERS = 5
# A test that finds less is called small, and one that so often ends without a result is warned of.
ENOUGH_POWER, OFTEN = 0.8, 0.1


def abx_warning(kind: str, settings: Sequence[Setting]) -> str | None:
    """A warning for an ABX test whose takes differ by chance; None if they do not.

    They do not if the settings differ only in speed, which does not change the codes, or if no side
    samples.
    """
    unsampled = all(setting.params.temperature == 0 for setting in settings)
    if kind != ComparisonKind.ABX or unsampled or not differences(settings).keys() - {"speed"}:
        return None
    return (
        "Takes with these settings differ by chance, just as two seeds of one setting do, so right "
        "answers do not show that the setting is audible. ABX shows that at temperature 0, for the "
        "speed, and wherever both sides have the same codes."
    )


def holds_voices(settings: Sequence[Setting], models: Mapping[str, ModelInfo]) -> bool:
    """Whether both sides of every pair have the same voices without a voice prompt. models: those
    of the settings, by name.

    They do where the seed alone chooses among voices that the model was taught by name and keeps,
    where the voices of both speakers are chosen, or where the codes are the same on both sides.
    """
    differing = differences(settings).keys()
    if _strays(settings, models):
        return False
    if not differing & {"model", *VOICE_FIELDS} and all(settings[0].voice_names):
        return True
    if differing & {"model", "seed_shift", *VOICE_FIELDS}:
        return False
    info = models[settings[0].runtime.model]
    return info.config.voices is not None or not differing - SAME_CODES


def _strays(settings: Sequence[Setting], models: Mapping[str, ModelInfo]) -> bool:
    """Whether a side says turns in other voices by name than it should, now and then."""
    if not differences(settings).keys() - SAME_CODES:
        return False
    return any(
        models[setting.runtime.model].config.voices is not None
        and setting.params.temperature >= STRAYING_TEMPERATURE
        for setting in settings
    )


def voices_warning(settings: Sequence[Setting], models: Mapping[str, ModelInfo]) -> str | None:
    """A warning for a comparison without a voice prompt whose sides have different voices; None if
    they are the same, and where voices are chosen, or what is compared."""
    differing = differences(settings)
    if _strays(settings, models) and not differing.keys() & {"model", "seed_shift", *VOICE_FIELDS}:
        name = models[settings[0].runtime.model].title
        return (
            f"In some pairs one side will sound like another speaker: at a temperature of "
            f"{STRAYING_TEMPERATURE:g} or more, {name} now and then says a turn in another of its "
            "voices. You would judge the speaker as much as the setting. Lower temperatures keep "
            "the voices better."
        )
    if holds_voices(settings, models) or any(any(each.voice_names) for each in settings):
        return None
    if "model" in differing:
        why = "each model has voices of its own"
    elif "seed_shift" in differing:
        why = "the seed chooses the voices, and the sides have different seeds"
    else:
        name = models[settings[0].runtime.model].title
        why = f"{name} draws new voices with every setting, even with the same seed"
    return (
        f"The two sides of a pair will be different speakers: {why}. You would judge the speakers "
        "as much as the setting. A voice prompt keeps the voices the same on both sides."
    )


def rates_warning(settings: Sequence[Setting], models: Mapping[str, ModelInfo]) -> str | None:
    """A warning for sides whose models have different sample rates; None if they are the same."""
    rates = sorted({models[setting.runtime.model].sample_rate for setting in settings})
    if len(rates) == 1:
        return None
    listed = " and ".join(f"{rate:,}" for rate in rates)
    return (
        f"The models have different sample rates ({listed} Hz). Both sides of a pair are played at "
        "the higher one, but the other's sound has no treble above its own, which may be heard."
    )


def design_warnings(
    kind: str,
    settings: Sequence[Setting],
    models: Mapping[str, ModelInfo],
    has_voice_prompt: bool,
) -> list[str]:
    """What a result will not show because of how the comparison is designed, in sentences. models:
    those of the settings, by name."""
    voices = None if has_voice_prompt else voices_warning(settings, models)
    warnings = voices, rates_warning(settings, models), abx_warning(kind, settings)
    return [warning for warning in warnings if warning]


def what_it_can_show(
    kind: str, scripts: int, seeds: int, settings: int = 2, ties: float = TIES
) -> str:
    """What a comparison can and cannot show, before any take is made. ties: the share of answers
    that are "no difference"."""
    if kind == ComparisonKind.SIGHTED:
        return "Not blind: useful for tuning, but expectations bias answers, so it proves nothing."
    if kind == ComparisonKind.ABX:
        return _what_abx_can_show(scripts * seeds)
    pairs = scripts * seeds * settings * (settings - 1) // 2
    of_scripts = plural(scripts, "script")
    needed = stats.fewest_significant(scripts)
    if needed is None:
        return (
            f"{plural(pairs, 'pair')} of {of_scripts} can show nothing, however you vote: "
            "preferences differ between scripts, so all seeds of one script count once. Use "
            f"{FEWEST_SCRIPTS} scripts or more."
        )
    p = stats.binomial_two_sided(needed, scripts)
    wins = f"all {of_scripts}" if needed == scripts else f"{needed} of {of_scripts}"
    # Of several votes on a script the margin counts as well.
    margin = " by equal margins" if seeds > 1 else ""
    beyond = (
        f"One side must be ahead on {wins}{margin} to be preferred beyond chance (p = {p:.3f})."
        if settings == 2
        else f"The first must be ahead of the second on {wins}{margin} to be called first."
    )
    return f"{beyond} {_how_often_it_finds(scripts, seeds, settings, ties)}"


def _how_often_it_finds(scripts: int, seeds: int, settings: int, ties: float) -> str:
    chance = chances(scripts, seeds, settings, ties)
    side = "one side" if settings == 2 else "one setting"
    pairs = plural(scripts * seeds * settings * (settings - 1) // 2, "pair")
    equal = f", and {ties:.0%} of the answers are “no difference”" if ties else ""
    even, only, more = "If", "", ""
    if chance.found < ENOUGH_POWER:
        even, only, more = "Even if", "only ", ": take more scripts"
        more += ", which show more than more seeds" if seeds > 1 else ""
    text = (
        f"{even} {side} really is better three times in four{equal}, a test of {pairs} notices it "
        f"{only}{chance.found:.0%} of the time{more}."
    )
    if chance.too_few >= OFTEN:
        odd = ", or an odd number of seeds" if seeds % 2 == 0 else ""
        text += (
            f" If no side is better, fewer than {FEWEST_SCRIPTS} scripts have a majority "
            f"{chance.too_few:.0%} of the time, and nothing can be concluded: take more "
            f"scripts{odd}."
        )
    return text


def _what_abx_can_show(pairs: int) -> str:
    needed = stats.fewest_above_chance(pairs)
    if needed is None:
        return (
            f"{plural(pairs, 'pair')} can show nothing: guessing all of them right is too likely. "
            f"Use {FEWEST_ANSWERS} or more."
        )
    p = stats.binomial_at_least(needed, pairs)
    return (
        f"With {plural(pairs, 'pair')}, {needed} right answers are better than guessing "
        f"(p = {p:.3f})."
    )
