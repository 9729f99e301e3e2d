"""What a person reads on the page: no names of the program in messages, and one set of figures."""

from __future__ import annotations

import errno
import re
from dataclasses import replace

import httpx2
import pytest
from huggingface_hub import errors

from dia_demo.accelerator.guard import explain_failure
from dia_demo.config import PARAMS
from dia_demo.errors import DiaDemoError, InputError
from dia_demo.families.resolve import local_folder, resolve
from dia_demo.hub.explain import explain
from dia_demo.hub.transfer import ChecksumDiffers
from dia_demo.services.listening.plan.names import LABELS
from dia_demo.services.listening.plan.plan import make_plan
from dia_demo.services.listening.plan.setting import Setting
from dia_demo.ui import status
from dia_demo.ui.about import TEXT
from tests.helpers.models.known import DIA_DOWNLOAD, DIA_MEMORY

NANO = resolve("nano")
MODEL = "nari-labs/Dia-1.6B-0626"
# Classes of errors, options of the command line, identifiers.
INTERNAL = re.compile(r"\w(?:Error|Exception)\b|(?<![\w-])--[a-z]|\b[a-z]+_[a-z_]+\b")
# A whole command that a person can copy is no such name.
COMMAND = re.compile(r"python -m dia_demo [\w -]+")


def internal_names(message: str) -> list[str]:
    return INTERNAL.findall(COMMAND.sub("", message))


def response(status: int) -> httpx2.Response:
    return httpx2.Response(status, request=httpx2.Request("GET", "http://hub/model"))


def test_internal_names_are_found():
    assert internal_names("(LocalEntryNotFoundError)") and internal_names("Use --device cpu.")
    assert internal_names("give one side another seed (seed_shift 1)")
    assert not internal_names("Run python -m dia_demo doctor --device xpu")


@pytest.mark.parametrize(
    "error",
    [
        errors.LocalEntryNotFoundError("not in the cache"),
        errors.OfflineModeIsEnabled("offline"),
        errors.GatedRepoError("gated", response=response(403)),
        errors.RepositoryNotFoundError("missing", response=response(404)),
        errors.RemoteEntryNotFoundError("missing", response=response(404)),
        *(errors.HfHubHTTPError("refused", response=response(n)) for n in (401, 403, 429, 500)),
        httpx2.ConnectError("no route"),
        httpx2.ReadTimeout("slow"),
        httpx2.ProxyError("refused"),
        OSError(errno.ENOSPC, "No space left on device"),
        PermissionError(errno.EACCES, "Permission denied", "/cache"),
        ChecksumDiffers("differs"),
    ],
    ids=lambda error: f"{type(error).__name__}-{getattr(error, 'errno', '')}",
)
def test_an_error_of_the_hub_names_no_class(error):
    message = str(explain(MODEL, "config.json", error))
    assert MODEL in message and internal_names(message) == []


@pytest.mark.parametrize("name", PARAMS)
def test_a_setting_out_of_range_is_called_as_on_the_page(name):
    params = replace(NANO.config.defaults, **{name: -1})
    with pytest.raises(InputError) as caught:
        params.check(NANO.config)
    message = status.explain(caught.value)
    assert message.startswith(f"{PARAMS[name].label} must be") and internal_names(message) == []


def test_equal_sides_are_refused_in_words_of_the_page():
    setting = Setting(NANO.config.defaults)
    with pytest.raises(InputError) as caught:
        make_plan("preference", [setting, setting], ["[S1] Hello."], (1,))
    message = str(caught.value)
    assert LABELS["seed_shift"].lower() in message and internal_names(message) == []


def test_a_failure_of_the_xpu_names_the_switch_of_the_page():
    message = explain_failure("xpu:0", "the driver was reset")
    assert "Turn the XPU off" in message and internal_names(message) == []


def test_an_unknown_model_is_explained_with_an_example():
    with pytest.raises(DiaDemoError) as caught:
        local_folder("no such model")
    assert MODEL in str(caught.value) and internal_names(str(caught.value)) == []


def test_the_about_tab_has_the_figures_of_the_model_menu():
    sizes = set(re.findall(r"[\d.]+ GB", TEXT))
    assert sizes == {DIA_DOWNLOAD, *(DIA_MEMORY[name] for name in ("int8", "bfloat16", "float32"))}


def test_the_about_tab_says_how_the_nano_voice_reads_numbers():
    """As it does: in the words that the app writes."""
    assert NANO.profile.normalises and "reads numbers as the app writes them out" in TEXT.replace(
        "\n", " "
    )
