"""Checks on a script: findings in plain words, each with a one-click repair where one is safe.

Checks advise only: a repair happens when a person asks for it, and without one the script reaches
Dia byte for byte. How a script becomes turns and bytes is in `dia_demo.text.script`, what is
checked in `dia_demo.text.checks.checks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from dia_demo.errors import printable
from dia_demo.text.checks.checks import NATURAL_SECONDS, remarks_on
from dia_demo.text.formats.check import CHOICES, remarks_on_reading
from dia_demo.text.formats.table import write_turns
from dia_demo.text.near_tags import fix_near_tags
from dia_demo.text.normaliser import Reading, normalise, plain_characters
from dia_demo.text.remark import Draft, Level, Remark
from dia_demo.text.repairs import shorten_script
from dia_demo.text.script import (
    MAX_SCRIPT_CHARACTERS,
    SECONDS_PER_CHARACTER,
    Turn,
    has_words,
    join_transcript,
    parse_turns,
    to_bytes,
)

# Text far longer than a model reads is not written out in words.
_MOST_BYTES_IN_WORDS = 4096
# Repairs that remove words, or that a person has to choose, are only made by their own button.
_CUTS = ("too_many_bytes", "over_max_tokens")
_BY_HAND = (*_CUTS, *CHOICES)
_MOST_FIXES = 20


@dataclass(frozen=True)
class Finding:
    """One remark on a script.

    repaired, where a safe repair exists, is the whole script after it; repair_label names it on a
    button.
    """

    code: str
    level: Level
    message: str
    line: int | None = None
    repaired: str | None = None
    repair_label: str | None = None


@dataclass(frozen=True)
class ScriptReport:
    """What a script contains. num_bytes counts what the model reads, transcript included.

    reading: the script as the model reads it, where it was normalised and that changed it.
    """

    turns: tuple[Turn, ...]
    num_speakers: int
    num_bytes: int
    expected_seconds: float
    findings: tuple[Finding, ...]
    reading: Reading | None = None

    @property
    def can_be_made(self) -> bool:
        """Whether a take of it can begin: the script is not refused as it is."""
        return all(finding.level != Level.ERROR for finding in self.findings)

    @property
    def fixes(self) -> tuple[Finding, ...]:
        """The findings whose repairs take no words away."""
        return tuple(
            finding
            for finding in self.findings
            if finding.repaired is not None and finding.code not in _BY_HAND
        )


def check_script(
    script: str,
    *,
    byte_limit: int = 1024,
    seconds_per_character: float = SECONDS_PER_CHARACTER,
    max_seconds: float | None = None,
    transcript: str = "",
    natural_seconds: tuple[float, float] | None = NATURAL_SECONDS,
    is_normalised: bool = False,
    most_seconds: float | None = None,
    keeps_pauses: bool = False,
    needs_last_tag: bool = True,
) -> ScriptReport:
    """Count turns, bytes and seconds, and list what is worth knowing before a run.

    byte_limit is the encoder's longest text; max_seconds the audio that max_tokens leaves room
    for; natural_seconds the shortest and longest audio that the model was made for, None where
    that is not known; is_normalised: the model gets it in words in any case; most_seconds: the
    audio that the highest max_tokens leaves room for; keeps_pauses and needs_last_tag as in Draft.
    A repair is offered
    only where it removes its finding and adds no error. Never raises: whatever `encode_script`
    would reject is a finding of level "error". A text longer than MAX_SCRIPT_CHARACTERS is not
    checked any further.
    """
    if (characters := len(join_transcript(script, transcript))) > MAX_SCRIPT_CHARACTERS:
        return _report_too_long(characters, len(to_bytes(join_transcript(script, transcript))))
    draft = Draft(
        script,
        transcript,
        byte_limit,
        seconds_per_character,
        max_seconds,
        natural_seconds,
        most_seconds,
        keeps_pauses,
        needs_last_tag,
    )
    remarks = remarks_on(draft)
    findings = list(_drop_unsafe_repairs(draft, remarks))
    if not is_normalised:
        findings += _check_words(draft, remarks)
    turns = parse_turns(script)
    return ScriptReport(
        turns=turns,
        num_speakers=len({turn.speaker for turn in turns} - {0}),
        num_bytes=len(to_bytes(join_transcript(script, transcript))),
        expected_seconds=draft.seconds_of(script),
        findings=tuple(findings),
    )


def fix_all(script: str, check: Callable[[str], ScriptReport]) -> str:
    """The script after all repairs that take no words away; `check` reports on a script."""
    for _ in range(_MOST_FIXES):
        fixes = check(script).fixes
        if not fixes or fixes[0].repaired is None:
            break
        script = fixes[0].repaired
    return script


def add_reading(
    report: ScriptReport,
    reading: Reading,
    check: Callable[[str], ScriptReport],
    read: Callable[[str], str],
    in_words: Callable[[str], str],
) -> ScriptReport:
    """The report on what is read, with what the script was read as, and with repairs of what was
    written where it has the same findings.

    Where it has not, as with a tag after names that are no tags yet, the repair is one of the
    turns, or of the script in plain words. What the reading leaves out or may misunderstand is a
    finding too. read: a script as the model reads it. in_words: a script in plain words.
    """
    missing = {_key(finding) for finding in report.findings if finding.repaired is not None}
    repairs: dict[tuple[str, str], Finding] = {}
    written = reading.original
    for script in (lambda: written, lambda: write_turns(written), lambda: in_words(written)):
        if missing:
            same = {_key(finding): finding for finding in check(script()).findings}
            repairs |= {key: same[key] for key in missing & same.keys() if same[key].repaired}
            missing -= repairs.keys()
    findings = [repairs.get(_key(finding), finding) for finding in report.findings]
    findings = [_fit_repair(finding, lambda script: check(read(script))) for finding in findings]
    findings = [finding for finding in findings if finding.code not in CHOICES]
    for remark in remarks_on_reading(written):
        findings.append(_finding(remark, remark.repair() if remark.repair else None))
    findings += [Finding("reading", Level.TIP, words) for words in reading.remarks]
    return replace(report, reading=reading if reading.changes else None, findings=tuple(findings))


def _fit_repair(finding: Finding, check: Callable[[str], ScriptReport]) -> Finding:
    """A finding whose cut also fits as it is read: numbers are longer in words."""
    if finding.code not in _CUTS or finding.repaired is None:
        return finding
    script = finding.repaired
    for _ in range(_MOST_FIXES):
        if not any(left.code in _CUTS for left in check(script).findings):
            return replace(finding, repaired=script)
        script = shorten_script(script, len(script) * 9 // 10)
    return replace(finding, repaired=None, repair_label=None)


def _key(finding: Finding) -> tuple[str, str]:
    return finding.code, finding.message


def _report_too_long(characters: int, num_bytes: int) -> ScriptReport:
    message = (
        f"The script has {characters:,} characters, and 1 to {MAX_SCRIPT_CHARACTERS:,} are allowed "
        "(a voice prompt's transcript included): shorten it, or split it into several takes."
    )
    finding = Finding("too_many_characters", Level.ERROR, message)
    return ScriptReport((), 0, num_bytes, 0.0, (finding,))


def _drop_unsafe_repairs(draft: Draft, remarks: list[Remark]) -> Iterator[Finding]:
    """The findings, without the repairs that leave their finding or bring a new error."""
    errors = _error_codes(remarks)
    for remark in remarks:
        repaired = remark.repair() if remark.repair else None
        if repaired is not None:
            after = remarks_on(replace(draft, script=repaired))
            stays = (remark.code, remark.message) in {
                (new_remark.code, new_remark.message) for new_remark in after
            }
            if stays or not _error_codes(after) <= errors:
                repaired = None
        yield _finding(remark, repaired)


def _finding(remark: Remark, repaired: str | None) -> Finding:
    label = None if repaired is None else remark.label
    message = printable(remark.message)
    return Finding(remark.code, remark.level, message, remark.line, repaired, label)


def _check_words(draft: Draft, remarks: list[Remark]) -> Iterator[Finding]:
    """Numbers, abbreviations, signs and markup; who speaks and plain quotes are other findings."""
    if len(to_bytes(draft.script)) > _MOST_BYTES_IN_WORDS or not has_words(draft.script):
        return
    in_words = partial(normalise, keeps_pauses=draft.keeps_pauses)
    reading = in_words(draft.script)
    if not reading.changes:
        return
    apart = in_words(fix_near_tags(plain_characters(write_turns(draft.script))))
    odd = [change for change in apart.changes if change.written.strip()]
    after = remarks_on(replace(draft, script=reading.text))
    if not odd or not _error_codes(after) <= _error_codes(remarks):
        return
    example = f"“{odd[0].written.strip()}” as “{odd[0].read.strip()}”"
    if not odd[0].read.strip():
        example = f"“{odd[0].written.strip()}” is left out"
    message = f"Numbers, abbreviations and signs are read best as words: {example}."
    yield Finding("not_in_words", Level.TIP, message, None, reading.text, "Write them out")


def _error_codes(remarks: list[Remark]) -> set[str]:
    return {remark.code for remark in remarks if remark.level == Level.ERROR}
