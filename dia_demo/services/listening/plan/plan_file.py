"""plan.json: reading and writing a plan. Files are written completely or not at all, and every
value is checked when they are read.

The blind mapping is obfuscated in the file, so that it cannot be read by accident. It is not
encrypted: this module can decode it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import asdict, fields, replace
from pathlib import Path

from dia_demo.audio import PROMPT_SUFFIXES, STORED_SUFFIX
from dia_demo.config import GenerationParams, RuntimeConfig
from dia_demo.errors import InputError, RunError
from dia_demo.files import sync_folder, write_atomic
from dia_demo.machine.processor import numerics_from
from dia_demo.services.listening.plan.plan import (
    MAX_TRIALS,
    ComparisonKind,
    ComparisonPlan,
    Secret,
    TakeSlot,
    Trial,
)
from dia_demo.services.listening.plan.setting import SYSTEM, Setting
from dia_demo.text.pronunciations import Pronunciations
from dia_demo.untrusted import parse_as
from dia_demo.voices import VOICE_FIELDS

NAME = "plan.json"
FORMAT, VERSION = "dia-comparison", 1
MAX_BYTES = 8_000_000

_ID = re.compile(r"[0-9a-f]{24}")
_CLIP = re.compile(rf"[0-9a-f]{{24}}{re.escape(STORED_SUFFIX)}")
VOICE_NAME = re.compile("|".join(re.escape(f"voice{s}") for s in (".npy", *PROMPT_SUFFIXES)))
_RUNTIME = ("model", "precision", "device")


def write_plan(folder: Path, plan: ComparisonPlan) -> None:
    """Write plan.json into `folder`. Raises RunError if that fails."""
    write_whole(folder / NAME, plan_bytes(plan))


def plan_bytes(plan: ComparisonPlan) -> bytes:
    """The contents of plan.json."""
    return json.dumps(_to_dict(plan), indent=1).encode("utf-8")


def write_whole(path: Path, data: bytes) -> None:
    """Write a file completely and wait until it is on the disk. Raises RunError if that fails."""
    try:
        with write_atomic(path, sync=True) as part:
            part.write_bytes(data)
        sync_folder(path.parent)
    except OSError as error:
        raise RunError(
            f"{path.name} could not be written: {error.strerror}. Free some space."
        ) from error


def read_plan(path: Path) -> ComparisonPlan:
    """Read plan.json. Raises InputError if it is missing or invalid."""
    try:
        with open(path, "rb") as file:
            return plan_from_bytes(file.read(MAX_BYTES + 1))
    except FileNotFoundError:
        raise InputError(
            f"{path.name} is missing, so this is not the folder of a comparison."
        ) from None
    except OSError as error:
        raise InputError(f"{path.name} cannot be read: {error.strerror or error}.") from error


def plan_from_bytes(data: bytes) -> ComparisonPlan:
    """A plan from the bytes of its file. Raises InputError if they are invalid."""
    if len(data) > MAX_BYTES:
        raise InputError(f"{NAME} is too large to be a plan ({MAX_BYTES:,} bytes at most).")
    try:
        raw = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{NAME} is damaged and cannot be read.") from error
    return plan_from(raw)


def plan_from(raw: object) -> ComparisonPlan:
    """A plan from parsed JSON, every value checked."""
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise InputError(f"{NAME} does not describe a comparison of this program.")
    if raw.get("version") != VERSION:
        raise InputError(
            f"This comparison has version {raw.get('version')!r}, but this program reads version "
            f"{VERSION}: open it with the program that made it."
        )
    try:
        plan = _parse(raw)
        _check(plan)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise InputError(f"{NAME} is damaged: {type(error).__name__} in its contents.") from error
    return plan


def _to_dict(plan: ComparisonPlan) -> dict:
    hidden = {
        "secrets": {name: asdict(secret) for name, secret in plan.secrets.items()},
        "facts": plan.facts,
        "salt": plan.salt,
    }
    return {
        "format": FORMAT,
        "version": VERSION,
        "id": plan.id,
        "created": plan.created,
        "kind": plan.kind,
        "revealed": plan.revealed,
        "sound_removed": plan.sound_removed,
        "settings": [_setting_dict(setting) for setting in plan.settings],
        "scripts": list(plan.scripts),
        "seeds": list(plan.seeds),
        "voice_file": plan.voice_file,
        "voice_transcript": plan.voice_transcript,
        "numerics": plan.numerics,
        "takes": [asdict(slot) for slot in plan.slots],
        "trials": [asdict(trial) for trial in plan.trials],
        "sealed": seal(plan.id, hidden),
    }


def _setting_dict(setting: Setting) -> dict:
    runtime = {name: getattr(setting.runtime, name) for name in _RUNTIME}
    return asdict(setting) | {"runtime": runtime, "pronunciations": setting.pronunciations.text}


def _parse(raw: dict) -> ComparisonPlan:
    identity = _match(raw["id"], _ID)
    hidden = unseal(identity, raw["sealed"])
    trials = parse_as(tuple[Trial, ...], raw["trials"])
    return ComparisonPlan(
        id=identity,
        created=str(raw["created"])[:40],
        kind=ComparisonKind(raw["kind"]),
        settings=tuple(_setting(setting) for setting in raw["settings"]),
        scripts=tuple(_text(script) for script in raw["scripts"]),
        seeds=parse_as(tuple[int, ...], raw["seeds"]),
        slots=parse_as(tuple[TakeSlot, ...], raw["takes"]),
        trials=trials,
        secrets=parse_as(dict[str, Secret], hidden["secrets"]),
        facts={_match(name, _ID): _facts(facts) for name, facts in hidden["facts"].items()},
        voice_file=None if raw["voice_file"] is None else _match(raw["voice_file"], VOICE_NAME),
        voice_transcript=_text(raw["voice_transcript"]),
        revealed=raw["revealed"] is True,
        sound_removed=raw.get("sound_removed") is True,
        salt=_text(hidden.get("salt", "")),
        numerics=numerics_from(raw.get("numerics")),
    )


def _setting(raw: dict) -> Setting:
    params = GenerationParams(**raw["params"])
    # Threads and the like belong to a machine and are not part of the file.
    runtime = RuntimeConfig(**{name: raw["runtime"][name] for name in _RUNTIME})
    if not isinstance(runtime.model, str) or not runtime.model:
        raise ValueError("model")
    for field in fields(GenerationParams):
        _number(getattr(params, field.name))
    # Plans of earlier versions have none of these.
    normalise = raw.get("normalise") is True
    listed = Pronunciations.parse(_text(raw.get("pronunciations", "")))
    voices = (_text(raw.get(name, "")) for name in VOICE_FIELDS)
    beside = _number(raw["speed"]), _integer(raw["seed_shift"]), normalise, listed
    setting = Setting(params, runtime, *beside, *voices)
    return replace(setting, system=_text(raw.get(SYSTEM, "")))


def _facts(raw: dict) -> dict:
    """Flat figures of a take; anything deeper is dropped."""
    return {
        str(name): value
        for name, value in raw.items()
        if value is None or isinstance(value, int | float | str)
    }


def _check(plan: ComparisonPlan) -> None:
    """Raise ValueError if the parts of the plan are inconsistent."""
    settings, scripts, seeds = len(plan.settings), len(plan.scripts), set(plan.seeds)
    slots = {(slot.setting, slot.script, slot.seed) for slot in plan.slots}
    clips = 3 if plan.kind == ComparisonKind.ABX else 2
    fits = (
        2 <= settings <= 6
        and 0 < len(plan.trials) <= MAX_TRIALS
        and len(plan.slots) == len(slots) == settings * scripts * len(seeds)
        and len({trial.id for trial in plan.trials}) == len(plan.trials)
        and all(0 <= n < settings and 0 <= m < scripts and s in seeds for n, m, s in slots)
        and all(len(trial.clips) == clips for trial in plan.trials)
        and all(secret.x in (0, 1) for secret in plan.secrets.values())
        and all(_ID.fullmatch(slot.id) for slot in plan.slots)
        and all(_ID.fullmatch(trial.id) for trial in plan.trials)
        and all(_CLIP.fullmatch(clip) for trial in plan.trials for clip in trial.clips)
        and plan.secrets.keys() >= {trial.id for trial in plan.trials}
        and len({clip for trial in plan.trials for clip in trial.clips}) == clips * len(plan.trials)
    )
    if not fits:
        raise ValueError("its parts are inconsistent")
    for trial in plan.trials:
        plan.slots_of(trial)
        if trial.settings[0] >= trial.settings[1]:
            raise ValueError("a trial's settings")


def _match(value: object, pattern: re.Pattern) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError("an invalid name")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > 100_000:
        raise ValueError("a text")
    return value


def _integer(value: object) -> int:
    if type(value) is not int:
        raise ValueError("a whole number")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a number")
    return value


def seal(identity: str, hidden: dict) -> str:
    """What must not be read by accident, as text that `unseal` can read."""
    return base64.b64encode(_veil(identity, json.dumps(hidden).encode("utf-8"))).decode("ascii")


def unseal(identity: str, sealed: object) -> dict:
    """What `seal` hid. Raises ValueError for other texts."""
    data = base64.b64decode(_text_of_seal(sealed), validate=True)
    return json.loads(_veil(identity, data))


def _text_of_seal(sealed: object) -> str:
    if not isinstance(sealed, str):
        raise ValueError("sealed")
    return sealed


def _veil(identity: str, data: bytes) -> bytes:
    """XOR the bytes with a mask derived from the plan's id. Applying it twice restores them."""
    mask = hashlib.shake_256(identity.encode("ascii")).digest(len(data))
    return bytes(byte ^ mask_byte for byte, mask_byte in zip(data, mask, strict=True))
