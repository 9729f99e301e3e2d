"""The plan of a panel test: design, systems, items, and every rule that is fixed before the first
vote. `sessions` derives what each rater hears from it, `plan_file` is its file.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from itertools import combinations

from dia_demo.config import Range
from dia_demo.errors import InputError
from dia_demo.services.listening.panel.designs import ATTRIBUTES, SPECS, Design

MAX_RATERS, MAX_ITEMS, MAX_TRIALS_EACH = 1000, 200, 200
MAX_TEXT = 4000
# The bandwidth of the low anchor of ITU-R BS.1534, in Hz.
ANCHOR_HZ = 3500
_URL = re.compile(r"https?://[^\s\"'<>]{1,1000}")


class GoalKind(StrEnum):
    """What the test is to show of two systems: that they differ, that the first is not worse than
    the second by more than a margin, or that they differ by less than a margin."""

    SUPERIORITY = "superiority"
    NONINFERIORITY = "noninferiority"
    EQUIVALENCE = "equivalence"


@dataclass(frozen=True)
class Goal:
    """margin: in the unit of the design, 0 for superiority. first, second: the systems."""

    kind: GoalKind = GoalKind.SUPERIORITY
    margin: float = 0.0
    first: int = 0
    second: int = 1


class LookKind(StrEnum):
    """When the result may be seen: at the planned number alone, at planned looks with the levels
    of O'Brien and Fleming, or after every rater, as an e-value."""

    NONE = "none"
    OBRIEN_FLEMING = "obrien-fleming"
    E_VALUE = "e-value"


@dataclass(frozen=True)
class Looks:
    """number: of looks, the last one included, equally spaced in raters."""

    kind: LookKind = LookKind.NONE
    number: int = 1


@dataclass(frozen=True)
class ExclusionRules:
    """Who does not count, decided by the answers alone.

    catch: the largest share of failed catch trials. repeats: the smallest share of hidden repeats
    with a consistent answer, 0 for no rule. headphones: whether the headphone check must have been
    passed. complete: whether raters who did not finish are left out. reference: for MUSHRA with a
    reference, the largest share of screens with the hidden reference under 90 (BS.1534).
    """

    catch: float = 0.5
    repeats: float = 0.0
    headphones: bool = False
    complete: bool = True
    reference: float = 0.15


@dataclass(frozen=True)
class SessionRules:
    """What a session has beside its trials. catch_share: of the trials, rounded up. repeats,
    null_pairs: the number of each. break_every: screens between two breaks, 0 for none."""

    training: int = 2
    catch_share: float = 0.1
    repeats: int = 1
    null_pairs: int = 1
    break_every: int = 20
    headphone_check: bool = False


@dataclass(frozen=True)
class Item:
    """What every system speaks. script: items with the same number are seeds of one script, which
    the statistics count as one."""

    text: str
    script: int
    label: str


@dataclass(frozen=True)
class Invitation:
    """What raters are shown before and after the test, and the token of their link."""

    token: str
    consent: str = ""
    completion_code: str = ""
    completion_url: str = ""


@dataclass(frozen=True)
class PanelPlan:
    """A panel test. systems: their names, hidden from raters. raters: the planned number. trials:
    of each rater, without catch trials and the like. reference: the system that is the reference
    of MUSHRA. attributes: offered on every screen.

    key: what sessions are drawn with; it stays with the owner, as does `clips`: the file of each
    stimulus by its name (see `stimuli`), `gains_db`, and `settings`: of each system as JSON, empty
    for uploaded clips.
    """

    id: str
    created: str
    title: str
    design: Design
    systems: tuple[str, ...]
    items: tuple[Item, ...]
    raters: int
    trials: int
    invitation: Invitation
    key: str
    reference: int | None = None
    attributes: tuple[str, ...] = ()
    goal: Goal = field(default_factory=Goal)
    looks: Looks = field(default_factory=Looks)
    rules: ExclusionRules = field(default_factory=ExclusionRules)
    session: SessionRules = field(default_factory=SessionRules)
    clips: dict[str, str] = field(default_factory=dict)
    gains_db: dict[str, float] = field(default_factory=dict)
    settings: tuple[str, ...] = ()

    def draw(self, *what: object) -> str:
        """64 hexadecimal digits that only the key gives, always the same for the same words."""
        words = "\x1f".join(map(str, what)).encode()
        return hmac.new(bytes.fromhex(self.key), words, hashlib.sha256).hexdigest()

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        return tuple(combinations(range(len(self.systems)), 2))

    @property
    def link(self) -> str:
        """The last part of the address that raters open."""
        return f"{self.id}{self.invitation.token}"

    @property
    def distinct_trials(self) -> int:
        """The number of different trials; a rater has some of them, or all."""
        if self.design is Design.MOS:
            return len(self.items) * len(self.systems)
        return len(self.items) * (len(self.pairs) if SPECS[self.design].pairs else 1)


def make_panel_plan(
    design: str,
    systems: Sequence[str],
    items: Sequence[Item],
    *,
    raters: int,
    trials: int | None = None,
    title: str = "",
    reference: int | None = None,
    attributes: Sequence[str] = (),
    goal: Goal | None = None,
    looks: Looks | None = None,
    rules: ExclusionRules | None = None,
    session: SessionRules | None = None,
    consent: str = "",
    completion_code: str = "",
    completion_url: str = "",
) -> PanelPlan:
    """The plan of a panel test with a new key and link. trials: None for all of them.

    Raises InputError with what is allowed.
    """
    if design not in list(Design):
        raise InputError(f"A panel test is one of {', '.join(Design)}, not {design!r}.")
    invitation = Invitation(secrets.token_hex(16), consent, completion_code, completion_url)
    plan = PanelPlan(
        id=secrets.token_hex(12),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        title=title,
        design=Design(design),
        systems=tuple(systems),
        items=tuple(items),
        raters=raters,
        trials=0,
        invitation=invitation,
        key=secrets.token_hex(32),
        reference=reference,
        attributes=tuple(attributes),
        goal=goal or Goal(),
        looks=looks or Looks(),
        rules=rules or ExclusionRules(),
        session=session or SessionRules(),
    )
    all_of_them = min(plan.distinct_trials, MAX_TRIALS_EACH)
    plan = replace(plan, trials=all_of_them if trials is None else trials)
    check_panel_plan(plan)
    return plan


def check_panel_plan(plan: PanelPlan) -> None:
    """Raise InputError if the parts of the plan are out of range or do not fit together."""
    _check_parts(plan)
    _check_goal(plan)
    _check_rules(plan)
    _check_invitation(plan)


def _check_parts(plan: PanelPlan) -> None:
    fewest, most = SPECS[plan.design].systems
    Range(fewest, most, whole=True).check("The number of systems", len(plan.systems))
    if len(set(plan.systems)) != len(plan.systems) or not all(plan.systems):
        raise InputError("Each system needs a name of its own.")
    Range(1, MAX_ITEMS, whole=True).check("The number of sentences", len(plan.items))
    Range(1, MAX_RATERS, whole=True).check("The number of raters", plan.raters)
    most_trials = min(MAX_TRIALS_EACH, plan.distinct_trials)
    Range(1, most_trials, whole=True).check("The number of trials", plan.trials)
    texts = (plan.title, *plan.systems, *(item.label for item in plan.items))
    if max(map(len, texts)) > 200:
        raise InputError("A title, the name of a system or of a sentence has at most 200 letters.")
    if plan.reference is not None:
        if plan.design is not Design.MUSHRA:
            raise InputError("Only MUSHRA has a reference.")
        Range(0, len(plan.systems) - 1, whole=True).check("reference", plan.reference)
    if surplus := set(plan.attributes) - set(ATTRIBUTES):
        raise InputError(f"Attributes are {', '.join(ATTRIBUTES)}, not {sorted(surplus)[0]!r}.")


def _check_goal(plan: PanelPlan) -> None:
    goal, spec = plan.goal, SPECS[plan.design]
    count = len(plan.systems)
    if not (0 <= goal.first < count and 0 <= goal.second < count and goal.first != goal.second):
        raise InputError("The goal names two different systems of the test.")
    if goal.kind is GoalKind.SUPERIORITY:
        if goal.margin != 0:
            raise InputError("A test of a difference has no margin: choose another goal, or 0.")
    elif not (math.isfinite(goal.margin) and 0 < goal.margin < spec.span):
        raise InputError(
            f"The margin must be above 0 and below {spec.span:g} {spec.unit}, not {goal.margin}."
        )
    if plan.design is Design.ABX and goal.kind is GoalKind.NONINFERIORITY:
        raise InputError(
            "ABX cannot show which of two is worse: choose equivalence, where the margin is the "
            "share of right answers above guessing."
        )
    Range(1, 10, whole=True).check("The number of looks", plan.looks.number)
    if (plan.looks.kind is LookKind.OBRIEN_FLEMING) != (plan.looks.number > 1):
        raise InputError("Looks with O'Brien-Fleming levels are 2 to 10; otherwise there is 1.")
    if plan.looks.kind is not LookKind.NONE and goal.kind is not GoalKind.SUPERIORITY:
        raise InputError("Looks before the end are possible only in a test of a difference.")
    if plan.looks.kind is not LookKind.NONE and count > 2:
        raise InputError("Looks before the end are possible only in a test of two systems.")


def _check_rules(plan: PanelPlan) -> None:
    rules, session = plan.rules, plan.session
    for name, share in (
        ("The share of failed catch trials", rules.catch),
        ("The share of consistent repeats", rules.repeats),
        ("The share of screens with a low reference", rules.reference),
        ("The share of catch trials", session.catch_share),
    ):
        Range(0.0, 1.0).check(name, share)
    for name, number, most in (
        ("The number of training trials", session.training, 10),
        ("The number of repeats", session.repeats, 20),
        ("The number of null pairs", session.null_pairs, 10),
        ("The trials between two breaks", session.break_every, 200),
    ):
        Range(0, most, whole=True).check(name, number)
    if rules.headphones and not session.headphone_check:
        raise InputError("To exclude by the headphone check, the session must contain it.")


def _check_invitation(plan: PanelPlan) -> None:
    invitation = plan.invitation
    if max(len(invitation.consent), len(invitation.completion_code)) > MAX_TEXT:
        raise InputError(f"The consent text has at most {MAX_TEXT:,} letters.")
    if invitation.completion_url and not _URL.fullmatch(invitation.completion_url):
        raise InputError("The address after the test must start with http:// or https://.")
