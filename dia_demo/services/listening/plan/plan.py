"""The plan of a comparison, fixed before anything is generated: settings, scripts, seeds, trials.

A plan is data: `render` generates its takes, `plan_file` is its file, `votes` has the votes.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from itertools import combinations

from dia_demo.audio import STORED_SUFFIX
from dia_demo.config import SEED_LIMIT, Range
from dia_demo.errors import InputError
from dia_demo.machine.processor import numerics_here
from dia_demo.services.listening.plan.setting import Setting
from dia_demo.text.script import MAX_SCRIPT_CHARACTERS

NAMES = "ABCDEF"
MAX_TRIALS = 200


class ComparisonKind(StrEnum):
    """Which side is better, whether two can be told apart (ABX), or a comparison that is not
    blind."""

    PREFERENCE = "preference"
    ABX = "abx"
    SIGHTED = "sighted"


class TakeState(StrEnum):
    """The state of a take that a comparison needs."""

    WAITING = "waiting"
    MADE = "made"
    FAILED = "failed"


@dataclass(frozen=True)
class TakeSlot:
    """A take to generate. message: why it failed."""

    id: str
    setting: int
    script: int
    seed: int
    state: TakeState = TakeState.WAITING
    message: str = ""


@dataclass(frozen=True)
class Trial:
    """A pair to listen to. clips: file names in the order of the page: A, B and, for ABX, X."""

    id: str
    script: int
    seed: int
    settings: tuple[int, int]
    clips: tuple[str, ...]
    made: bool = False


@dataclass(frozen=True)
class Secret:
    """What is hidden until the vote. flip: clip A is from the second setting. x: the clip (0 or 1)
    that X repeats. gains_db: of clips A and B."""

    flip: bool
    x: int
    gains_db: tuple[float, ...] = ()

    def setting_of(self, trial: Trial, clip: int) -> int:
        """The setting that clip 0 (A) or 1 (B) was made with."""
        return trial.settings[clip ^ self.flip]


@dataclass(frozen=True)
class ComparisonPlan:
    """A whole comparison. facts (by slot) and secrets (by trial) stay hidden until the vote.
    revealed: no more votes are accepted. sound_removed: by the quota, not by the owner. salt:
    hidden as well; what is derived from it cannot be derived from the open part of the file. Plans
    of earlier versions have none. numerics: of the machine that the plan was made on
    (dia_demo/machine/processor.py).
    """

    id: str
    created: str
    kind: ComparisonKind
    settings: tuple[Setting, ...]
    scripts: tuple[str, ...]
    seeds: tuple[int, ...]
    slots: tuple[TakeSlot, ...]
    trials: tuple[Trial, ...]
    secrets: dict[str, Secret]
    facts: dict[str, dict] = field(default_factory=dict)
    voice_file: str | None = None
    voice_transcript: str = ""
    revealed: bool = False
    sound_removed: bool = False
    salt: str = ""
    numerics: dict[str, str] = field(default_factory=dict)

    def take_file(self, slot: TakeSlot) -> str:
        """The name of a take's file. It does not contain the id of the slot, which stands beside
        its setting in the plan."""
        return f"{self.draw(slot.id)[:24] if self.salt else slot.id}{STORED_SUFFIX}"

    def draw(self, *what: str) -> str:
        """64 random hexadecimal digits, always the same for the same plan and words."""
        return hashlib.sha256(" ".join((self.salt, *what)).encode()).hexdigest()

    def slots_of(self, trial: Trial) -> tuple[TakeSlot, TakeSlot]:
        """The takes of a trial, in the order of its settings."""
        keys = [(setting, trial.script, trial.seed) for setting in trial.settings]
        by_place = {(slot.setting, slot.script, slot.seed): slot for slot in self.slots}
        return by_place[keys[0]], by_place[keys[1]]

    @property
    def is_uploaded(self) -> bool:
        """Whether its clips were uploaded, so that they cannot be generated."""
        return any(setting.system for setting in self.settings)

    def failed_takes(self) -> tuple[TakeSlot, ...]:
        return tuple(slot for slot in self.slots if slot.state == TakeState.FAILED)

    def same_codes(self, trial: Trial) -> bool:
        """Whether both takes of a completed trial have the same codes."""
        first, second = (self.facts.get(slot.id, {}) for slot in self.slots_of(trial))
        codes = first.get("codes_sha256")
        return codes is not None and codes == second.get("codes_sha256")

    def with_slots(self, changed: Sequence[TakeSlot]) -> ComparisonPlan:
        by_id = {slot.id: slot for slot in changed}
        return replace(self, slots=tuple(by_id.get(slot.id, slot) for slot in self.slots))

    def with_trial(self, trial: Trial, secret: Secret) -> ComparisonPlan:
        trials = tuple(trial if old.id == trial.id else old for old in self.trials)
        return replace(self, trials=trials, secrets=self.secrets | {trial.id: secret})

    def clear_takes(self) -> ComparisonPlan:
        """The same plan with nothing generated; its takes will be the same as before."""
        plan = self
        for trial in self.trials:
            secret = replace(self.secrets[trial.id], gains_db=())
            plan = plan.with_trial(replace(trial, made=False), secret)
        slots = [replace(slot, state=TakeState.WAITING, message="") for slot in self.slots]
        return replace(plan.with_slots(slots), facts={}, numerics=numerics_here())


def make_plan(
    kind: str, settings: Sequence[Setting], scripts: Sequence[str], seeds: Sequence[int]
) -> ComparisonPlan:
    """Every script with every seed for every pair of settings, in random order.

    The side that is A is drawn with the system's random generator, balanced over the trials. Raises
    InputError if there is nothing to compare, or too much.
    """
    _check_plan(kind, settings, scripts, seeds)
    groups = [(script, seed) for script in range(len(scripts)) for seed in seeds]
    slots = [
        TakeSlot(_name(), setting, script, seed)
        for script, seed in groups
        for setting in range(len(settings))
    ]
    count = 3 if kind == ComparisonKind.ABX else 2
    trials = [
        Trial(_name(), script, seed, pair, tuple(f"{_name()}{STORED_SUFFIX}" for _ in range(count)))
        for script, seed in groups
        for pair in combinations(range(len(settings)), 2)
    ]
    if kind != ComparisonKind.SIGHTED:
        secrets.SystemRandom().shuffle(trials)
    return ComparisonPlan(
        id=_name(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        kind=ComparisonKind(kind),
        settings=tuple(settings),
        scripts=tuple(scripts),
        seeds=tuple(seeds),
        slots=tuple(slots),
        trials=tuple(trials),
        secrets=_draw_secrets(kind, trials),
        salt=_name(),
        numerics=numerics_here(),
    )


def _draw_secrets(kind: str, trials: Sequence[Trial]) -> dict[str, Secret]:
    """Which setting is A: random, but each setting equally often.

    Independent draws would sometimes put one setting first in 8 of 10 trials, which favours it with
    listeners who prefer the first clip. In a round, each pair of settings is balanced. X is drawn
    independently: if it were balanced, the last answers could be inferred.
    """
    random = secrets.SystemRandom()
    flips: dict[str, int] = {}
    for pair in {trial.settings for trial in trials}:
        group = [trial.id for trial in trials if trial.settings == pair]
        order = [0, 1] * (len(group) // 2) + [random.randrange(2)] * (len(group) % 2)
        random.shuffle(order)
        flips |= zip(group, order, strict=True)
    blind = kind != ComparisonKind.SIGHTED
    return {
        trial.id: Secret(blind and bool(flips[trial.id]), random.randrange(2)) for trial in trials
    }


def _name() -> str:
    return secrets.token_hex(12)


def _check_plan(kind, settings, scripts, seeds) -> None:
    if kind not in list(ComparisonKind):
        raise InputError(f"A comparison is one of {', '.join(ComparisonKind)}, not {kind!r}.")
    most = 2 if kind == ComparisonKind.ABX else len(NAMES)
    if not 2 <= len(settings) <= most:
        raise InputError(f"Compare from 2 to {most} settings, not {len(settings)}.")
    if not scripts or not all(script.strip() for script in scripts):
        raise InputError("A script is empty: write what both sides should say.")
    if len(set(scripts)) != len(scripts):
        raise InputError("The same script is listed twice: remove one, and use more seeds instead.")
    if max(map(len, scripts)) > MAX_SCRIPT_CHARACTERS:
        raise InputError(f"A script may have {MAX_SCRIPT_CHARACTERS:,} characters at most.")
    if not seeds or len(set(seeds)) != len(seeds):
        raise InputError("Every pair needs its own seed: use at least one, and none twice.")
    for seed in seeds:
        Range(0, SEED_LIMIT, whole=True).check("seed", seed)
    for setting in settings:
        Range(-SEED_LIMIT, SEED_LIMIT, whole=True).check("seed_shift", setting.seed_shift)
    pairs = len(settings) * (len(settings) - 1) // 2
    trials = len(scripts) * len(seeds) * pairs
    if trials > MAX_TRIALS:
        raise InputError(f"{trials} pairs are more than the {MAX_TRIALS} allowed: use fewer seeds.")
    # ABX with identical sides is allowed: it shows what guessing looks like.
    if kind != ComparisonKind.ABX:
        _refuse_equal(settings)


def _refuse_equal(settings: Sequence[Setting]) -> None:
    which = "Both sides" if len(settings) == 2 else "Two of the settings"
    for first, second in combinations(range(len(settings)), 2):
        if settings[first] == settings[second]:
            raise InputError(
                f"{which} are identical, so every pair would be the same audio twice: choose "
                "two different values, or set the seed shift of one side to 1. ABX allows "
                "identical settings, to see what guessing looks like."
            )


def draw_seeds(count: int, first: int | None = None) -> tuple[int, ...]:
    """`count` seeds: consecutive ones from `first`, or random ones."""
    Range(1, MAX_TRIALS, whole=True).check("The number of seeds", count)
    if first is not None:
        Range(0, SEED_LIMIT - count, whole=True).check("seed", first)
        return tuple(range(first, first + count))
    return tuple(secrets.SystemRandom().sample(range(SEED_LIMIT + 1), count))


def split_scripts(text: str) -> tuple[str, ...]:
    """The scripts of a text, which are separated by lines of three or more dashes."""
    parts = [part.strip() for part in re.split(r"(?m)^[ \t]*-{3,}[ \t]*$", text)]
    return tuple(part for part in parts if part)
