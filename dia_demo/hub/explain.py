"""Errors of a download as one sentence: what happened, and what to do."""

from __future__ import annotations

import errno

from dia_demo.errors import InputError
from dia_demo.hub.transfer import ChecksumDiffers, retry_after

TOKEN = "set HF_TOKEN to your token"


def explain(name: str, file: str, error: Exception) -> InputError:
    """The error for a person, of any that fetching `file` of the repository `name` raises."""
    import httpx2
    from huggingface_hub import errors, is_offline_mode

    if isinstance(error, InputError):
        return error
    if isinstance(error, ChecksumDiffers):
        return InputError(
            f"{file} of {name} arrived corrupted and was removed (its checksum differs from the "
            "hub's): try again. If that does not help, a proxy or a virus scanner may be changing "
            "it."
        )
    if isinstance(error, errors.GatedRepoError):
        return InputError(f"{name} asks you to accept its terms on the hub and to set HF_TOKEN.")
    if isinstance(error, errors.RepositoryNotFoundError):
        return InputError(f"The hub has no model {name}: check the spelling, or set HF_TOKEN.")
    if isinstance(error, errors.RemoteEntryNotFoundError):
        return InputError(f"{name} on the hub has no file {file}: it is not a Dia checkpoint.")
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status is not None and (refusal := _explain_status(name, file, status, error)):
        return refusal
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return InputError(
            f"The disk is full: {file} of {name} could not be stored. Remove files and try again; "
            "what was downloaded is kept."
        )
    if isinstance(error, PermissionError):
        return InputError(
            f"{error.filename} cannot be written, so {file} of {name} could not be stored: set "
            "HF_HOME to a folder of your own."
        )
    if isinstance(error, httpx2.ProxyError):
        return InputError(
            f"{name} could not be downloaded: the proxy refuses the connection to the hub. Check "
            "HTTPS_PROXY and HTTP_PROXY."
        )
    if isinstance(error, httpx2.TransportError) and not isinstance(error, httpx2.ConnectError):
        return InputError(
            f"The connection to the hub was lost while {file} of {name} was downloaded. Try again: "
            "the download continues where it stopped."
        )
    why, remedy = "the hub cannot be reached from this machine", "Check the internet connection"
    if is_offline_mode():
        why, remedy = "offline mode is on (HF_HUB_OFFLINE)", "Turn it off"
    return InputError(
        f"{name} could not be downloaded: {why}. {remedy} and try again, or use the nano voice, "
        "which works offline."
    )


def _explain_status(name: str, file: str, status: int, error: Exception) -> InputError | None:
    """The error for an answer of the hub with this status; None if the status says nothing."""
    if status in (401, 403):
        return InputError(f"Access to {name} was denied: {TOKEN}.")
    if status == 429:
        seconds = retry_after(error)
        when = f"in {seconds:,} s" if seconds else "later"
        return InputError(
            f"{file} of {name} could not be downloaded: the hub is rate-limiting this machine "
            f"(429). Try again {when}; {TOKEN} for a higher limit."
        )
    if status >= 500:
        return InputError(
            f"{file} of {name} could not be downloaded: the hub returned a server error "
            f"({status}). Try again later; what was downloaded is kept."
        )
    return None
