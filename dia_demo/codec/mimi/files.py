"""Finds or fetches the files of a Mimi."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

from dia_demo.codec.files import (
    HUB_FILES,
    CodecSource,
    cached_source,
    fetch_source,
    folder_source,
)
from dia_demo.errors import InputError

MIMI_NAME = "kyutai/mimi"


def find_mimi(
    folder: Path | None = None, *, allow_download: bool = True
) -> Generator[float, None, CodecSource]:
    """The Mimi of a checkpoint folder (`<folder>/codec`), else kyutai/mimi from the hub's cache or
    the hub. Yields the fraction fetched. Raises InputError that says how to provide it."""
    if folder is not None and (folder / "codec").is_dir():
        return folder_source(folder / "codec")
    from huggingface_hub import is_offline_mode

    try:
        return cached_source(MIMI_NAME)
    except Exception as error:  # The hub's errors share no base class.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        if not allow_download or is_offline_mode():
            raise _missing_error(reason) from error
    try:
        return (yield from fetch_source(MIMI_NAME))
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise _missing_error(reason) from error


def _missing_error(reason: str) -> InputError:
    return InputError(
        f"The audio codec Mimi ({MIMI_NAME}) is not on this machine ({reason[:200]}). Connect to "
        f"the internet once, or put its {' and '.join(HUB_FILES)} into the folder codec of the "
        "checkpoint."
    )
