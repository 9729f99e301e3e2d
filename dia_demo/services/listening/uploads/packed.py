"""A zip of clips, unpacked into a folder of its own after every name and size was checked."""

from __future__ import annotations

import zipfile
from pathlib import Path

from dia_demo.errors import InputError
from dia_demo.services.listening import archive
from dia_demo.services.listening.uploads.folder import clip_names

ZIP_AGAIN = "zip the folders of the systems again"
# Clips of every pair, the words of each sentence, and what systems leave in zips.
MAX_FILES = 2000


def packed_bytes(path: Path) -> int:
    """The unpacked size of a zip of clips. Raises InputError like `unpack_clips`."""
    with archive.open_zip(path, ZIP_AGAIN) as packed:
        return sum(member.file_size for member in _members(packed, path).values())


def unpack_clips(path: Path, into: Path) -> None:
    """Unpack the clips of a zip into the folder `into`, as system/file.

    Raises InputError for a file that is no zip, for other names, links and encryption, and for
    sizes above the limits, also where the zip's index does not name them.
    """
    with archive.open_zip(path, ZIP_AGAIN) as packed:
        left = archive.MAX_TOTAL_BYTES
        for name, member in _members(packed, path).items():
            target = into / name
            target.parent.mkdir(exist_ok=True)
            limit = min(left, archive.MAX_FILE_BYTES)
            left -= archive.copy_member(packed, member, target, limit)


def _members(packed: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    """The members that are clips or words, by system/file."""
    members = [member for member in packed.infolist() if not member.is_dir()]
    archive.check_size(members, MAX_FILES)
    names = clip_names(member.filename for member in members)
    wanted: dict[str, zipfile.ZipInfo] = {}
    for member in members:
        if member.filename not in names:
            continue
        name = names[member.filename].as_posix()
        if not archive.is_plain(member) or name in wanted:
            raise InputError(
                f"The zip contains {member.filename[:80]!r} twice, encrypted or as a link: "
                f"{ZIP_AGAIN}."
            )
        wanted[name] = member
    archive.check_ratio(path, wanted.values(), ZIP_AGAIN)
    return wanted
