"""Export and import of a comparison as a zip. Every name and size of an imported zip is checked."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from dia_demo.audio import STORED_SUFFIX
from dia_demo.errors import InputError, RunError
from dia_demo.files import write_atomic
from dia_demo.prompt.voice_file import SUFFIX
from dia_demo.services.listening.plan import plan_file
from dia_demo.services.listening.plan.plan import ComparisonPlan, TakeState
from dia_demo.services.listening.render import CLIPS, TAKES
from dia_demo.services.listening.voice import VOICES, voice_names
from dia_demo.services.listening.votes import votes
from dia_demo.services.voices.kept import file_name

# The prefix of a folder that is being unpacked.
IMPORTING = ".import-"
MAX_FILES = 2000
MAX_TOTAL_BYTES = 600_000_000
MAX_FILE_BYTES = 60_000_000
# Unpacked over packed size. Audio is hardly compressed, plan and votes to about a tenth.
MAX_RATIO = 20
SAVED_HERE = "choose one saved by this program"
_ALLOWED = re.compile(
    rf"plan\.json|votes\.csv|(clips|takes)/[0-9a-f]{{24}}{re.escape(STORED_SUFFIX)}"
    rf"|{plan_file.VOICE_NAME.pattern}|{VOICES}/[\w-]{{1,200}}{re.escape(SUFFIX)}"
)
_TOP = re.compile(r"[\w .()-]{1,100}/")


def export_zip(
    folder: Path, path: Path, listener: Path | None = None, plan: ComparisonPlan | None = None
) -> Path:
    """Write the folder's plan, votes, voice and audio to a zip, completely or not at all.

    listener: the folder of the listener whose votes are included, if there are several; plan: as
    this listener hears it.
    """
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    own = {votes.NAME} if listener is not None else set()
    own |= {plan_file.NAME} if plan is not None else set()
    files = [file for file in files if file.name not in own]
    try:
        with (
            write_atomic(path) as part,
            zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive,
        ):
            for file in files:
                name = file.relative_to(folder).as_posix()
                if _ALLOWED.fullmatch(name):
                    # Audio is not compressed: silence would exceed MAX_RATIO.
                    stored = zipfile.ZIP_STORED if file.suffix == STORED_SUFFIX else None
                    archive.write(file, name, compress_type=stored)
            if listener is not None and (listener / votes.NAME).is_file():
                archive.write(listener / votes.NAME, votes.NAME)
            if plan is not None:
                archive.writestr(plan_file.NAME, plan_file.plan_bytes(plan))
    except OSError as error:
        reason = error.strerror or error
        raise RunError(f"{path.name} could not be written: {reason}. Free some space.") from error
    return path


def unpacked_bytes(path: Path) -> int:
    """The unpacked size that a comparison's zip declares. Raises InputError like `import_zip`."""
    with open_zip(path) as archive:
        return sum(member.file_size for member in _needed_members(archive).values())


def import_zip(path: Path, folder: Path) -> ComparisonPlan:
    """Unpack a comparison into the new `folder`, which is only created if all of it is valid.

    Raises InputError if the file is not the zip of a comparison, and for unexpected names, links,
    encryption, sizes above the limits, and other versions.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=IMPORTING, dir=folder.parent))
    try:
        _unpack(path, scratch)
        plan = check_folder(scratch)
        os.replace(scratch, folder)
        return plan
    except OSError as error:
        reason = error.strerror or error
        raise RunError(f"The zip could not be unpacked: {reason}. Free some space.") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def check_folder(folder: Path) -> ComparisonPlan:
    """The plan of a folder, made consistent with its clips. Checks that the votes are readable."""
    plan = plan_file.read_plan(folder / plan_file.NAME)
    votes.read_votes(folder, plan)
    fixed = _mark_missing_clips(folder, plan)
    if fixed != plan:
        plan_file.write_plan(folder, fixed)
    return fixed


def _mark_missing_clips(folder: Path, plan: ComparisonPlan) -> ComparisonPlan:
    """The plan with trials whose clips are missing, and their takes, marked as not generated."""
    for trial in plan.trials:
        if trial.made and all((folder / CLIPS / clip).is_file() for clip in trial.clips):
            continue
        secret = replace(plan.secrets[trial.id], gains_db=())
        plan = plan.with_trial(replace(trial, made=False), secret)
        lost = [
            replace(slot, state=TakeState.WAITING)
            for slot in plan.slots_of(trial)
            if slot.state == TakeState.MADE
            and not (folder / TAKES / plan.take_file(slot)).is_file()
        ]
        plan = plan.with_slots(lost)
    return plan


def _unpack(path: Path, into: Path) -> None:
    with open_zip(path) as archive:
        left = MAX_TOTAL_BYTES
        for name, member in _needed_members(archive).items():
            target = into / name
            target.parent.mkdir(exist_ok=True)
            left -= copy_member(archive, member, target, min(left, MAX_FILE_BYTES))


@contextmanager
def open_zip(path: Path, remedy: str = SAVED_HERE) -> Iterator[zipfile.ZipFile]:
    """The open zip. Raises InputError, which ends with the remedy, if it cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except FileNotFoundError as error:
        raise InputError("The zip is no longer on the server: choose it again.") from error
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError) as error:
        raise InputError(f"This is not a readable zip: {remedy}.") from error
    except (RuntimeError, ValueError, zlib.error) as error:
        raise InputError(f"The zip is damaged or encrypted: {remedy}.") from error


def check_size(
    members: Sequence[zipfile.ZipInfo],
    most_files: int = MAX_FILES,
    most_bytes: int = MAX_TOTAL_BYTES,
) -> None:
    """Raise InputError for more files or bytes than a comparison may have."""
    if len(members) > most_files:
        raise InputError(f"The zip contains {len(members):,} files; {most_files:,} are allowed.")
    total = sum(member.file_size for member in members)
    if total > most_bytes or any(member.file_size > MAX_FILE_BYTES for member in members):
        raise InputError(
            f"The zip would unpack to {total / 1e6:,.0f} MB: a comparison has at most "
            f"{most_bytes / 1e6:.0f} MB, and {MAX_FILE_BYTES / 1e6:.0f} MB in one file."
        )


def check_ratio(path: Path, members: Iterable[zipfile.ZipInfo], remedy: str = SAVED_HERE) -> None:
    """Raise InputError if members unpack to much more than the zip's own size."""
    if sum(member.file_size for member in members) > MAX_RATIO * path.stat().st_size:
        raise InputError(
            f"The zip would unpack to more than {MAX_RATIO} times its size, which no comparison "
            f"does: {remedy}."
        )


def is_plain(member: zipfile.ZipInfo) -> bool:
    """Whether a member is neither a link nor encrypted."""
    return not stat.S_ISLNK(member.external_attr >> 16) and not member.flag_bits & 1


def _checked_members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    members = [member for member in archive.infolist() if not member.is_dir()]
    check_size(members)
    top = _common_top([member.filename for member in members])
    by_name: dict[str, zipfile.ZipInfo] = {}
    for member in members:
        name = member.filename[len(top) :]
        if not _ALLOWED.fullmatch(name) or not is_plain(member) or name in by_name:
            raise InputError(
                f"The zip contains {member.filename[:80]!r}, which is not part of a comparison. "
                "Nothing was unpacked."
            )
        by_name[name] = member
    if plan_file.NAME not in by_name:
        raise InputError(f"The zip contains no {plan_file.NAME}, so it is not a comparison.")
    return by_name


def _needed_members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The members that the zip's plan names, by their names in the folder; others are ignored."""
    members = _checked_members(archive)
    with archive.open(members[plan_file.NAME]) as file:
        needed = _files_of(plan_file.plan_from_bytes(file.read(plan_file.MAX_BYTES + 1)))
    by_name = {name: member for name, member in members.items() if name in needed}
    assert archive.filename is not None, "opened by its path"
    check_ratio(Path(archive.filename), by_name.values())
    return by_name


def _files_of(plan: ComparisonPlan) -> set[str]:
    clips = {f"{CLIPS}/{clip}" for trial in plan.trials for clip in trial.clips}
    takes = {f"{TAKES}/{plan.take_file(slot)}" for slot in plan.slots}
    voice = {plan.voice_file} if plan.voice_file else set()
    voice |= {f"{VOICES}/{file_name(name)}" for name in voice_names(plan)}
    return {plan_file.NAME, votes.NAME} | clips | takes | voice


def _common_top(names: list[str]) -> str:
    """The folder that contains all members, if the folder itself was zipped; otherwise ""."""
    tops = {match[0] if (match := _TOP.match(name)) else "" for name in names}
    top = tops.pop() if len(tops) == 1 else ""
    return "" if top in (f"{CLIPS}/", f"{TAKES}/", f"{VOICES}/") or ".." in top else top


def copy_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, limit: int) -> int:
    """Unpack one member without trusting its declared size; returns the bytes written."""
    written = 0
    with archive.open(member) as source, open(target, "xb") as file:
        while block := source.read(1 << 20):
            written += len(block)
            if written > limit:
                raise InputError("The zip unpacks to more than its index says. Nothing was saved.")
            file.write(block)
    return written
