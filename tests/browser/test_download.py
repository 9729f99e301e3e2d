"""A model that is not on this machine: what it needs, its download, and a take with it."""

from __future__ import annotations

import re
import shutil

import pytest

from dia_demo.checkpoint_files import MANIFEST
from tests.helpers.models.checkpoints import write_small
from tests.helpers.models.exports import export_of
from tests.helpers.page.browser import (
    DESKTOP,
    PHONE,
    Watch,
    choose,
    press,
    running_app,
    wait_state,
    write_script,
)
from tests.helpers.stand_ins.stand_in_hub import NAME, Hub, running_hub

pytestmark = pytest.mark.long

CODEC, WEIGHTS = "codec/model.safetensors", "prepared-int8.safetensors"


def card(page):
    return page.locator("#download .download")


def wait_card(page, state: str) -> str:
    """Wait until the card is in a state; its text."""
    page.locator(f'#download [data-state="{state}"]').wait_for()
    return card(page).inner_text()


def size_of(stand_in) -> int:
    return sum(len(stand_in.files[file]) for file in (CODEC, WEIGHTS))


def begin_download(page, stand_in) -> None:
    """Press Download; returns when the codec and a part of the weights are here.

    The rest would take minutes: whatever is pressed next comes in the midst of a file.
    """
    stand_in.rate = size_of(stand_in) // 6
    press(page, "Download")
    wait_card(page, "running")
    page.wait_for_function("Number(document.querySelector('#download .bar')?.ariaValueNow) > 30")
    stand_in.rate = size_of(stand_in) // 200


@pytest.fixture
def stand_in(tmp_path):
    """A hub with an export in int8, whose codec is part of it."""
    original = write_small(tmp_path / "small", codec=True)
    hub = Hub()
    hub.upload(export_of(original, tmp_path / "export").folder)
    with running_hub(hub):
        yield hub


def environment(stand_in, folder) -> dict[str, str]:
    return {
        "HF_ENDPOINT": stand_in.url,
        "HF_HOME": str(folder / "hub"),
        "HF_HUB_OFFLINE": "0",
        "DIA_MODELS": f"nano {NAME}",
    }


def test_a_model_is_downloaded_on_the_page(chromium, stand_in, tmp_path):
    with running_app(tmp_path, **environment(stand_in, tmp_path)) as url:
        watch = Watch(chromium.new_context(viewport=DESKTOP), url)
        page = watch.open()
        assert not card(page).is_visible()
        choose(page, "Model", NAME)
        needs = wait_card(page, "needed")
        size = size_of(stand_in)
        for words in (
            f"{NAME}, prepared in int8 is not on this machine",
            f"{size / 1e3:.0f} kB",
            "Disk",
            "Memory",
            "free",
        ):
            assert words in needs, needs
        assert WEIGHTS not in stand_in.fetched_files()

        press(page, "Generate")
        assert "press Download (the card shows its size)" in wait_state(page, "failed")

        begin_download(page, stand_in)
        page.get_by_text(re.compile(r"kB of .* kB, .*kB/s, .* left")).wait_for()
        press(page, "Cancel")
        assert "is partially downloaded" in wait_card(page, "needed")

        page.reload()
        page.wait_for_function("window.diaRestored === true")
        stand_in.rate = None
        wait_card(page, "needed")
        press(page, "Resume")
        assert "is downloaded. Press Generate." in wait_card(page, "here")
        resumed = [start for file, start in stand_in.ranges if start]
        assert len(resumed) == 1, stand_in.ranges

        write_script(page, "[S1] Hello there. [S2] Hi.", max_tokens=60)
        press(page, "Generate")
        wait_state(page, "done", "cut")
        watch.context.close()
        assert watch.errors == [] and watch.outside == []


def test_a_partial_download_is_deleted_on_the_page(chromium, stand_in, tmp_path):
    with running_app(tmp_path, **environment(stand_in, tmp_path)) as url:
        watch = Watch(chromium.new_context(viewport=PHONE), url)
        page = watch.open()
        choose(page, "Model", NAME)
        wait_card(page, "needed")
        begin_download(page, stand_in)
        press(page, "Cancel")
        wait_card(page, "needed")
        page.set_viewport_size({"width": 320, "height": 640})
        delete = page.get_by_role("button", name="Delete the partial download", exact=True)
        assert delete.bounding_box()["height"] < 40, "its label has one line"
        delete.click()
        assert parts_in(tmp_path), "the first press asks for confirmation"
        press(page, "Really delete?")
        page.get_by_text("is not on this machine.", exact=False).wait_for()
        page.get_by_role("button", name="Download", exact=True).wait_for()
        assert parts_in(tmp_path) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
        watch.context.close()
        assert watch.errors == [] and watch.outside == []


def parts_in(folder) -> list:
    return list((folder / "hub").rglob("*.incomplete"))


def test_a_download_is_shared_and_goes_on_without_its_page(chromium, stand_in, tmp_path):
    with running_app(tmp_path, **environment(stand_in, tmp_path)) as url:
        anna, berta = (Watch(chromium.new_context(viewport=DESKTOP), url) for _ in range(2))
        pages = [anna.open(), berta.open()]
        for page in pages:
            choose(page, "Model", NAME)
            wait_card(page, "needed")
        stand_in.rate = size_of(stand_in) // 60
        for page in pages:
            press(page, "Download")
            wait_card(page, "running")
        pages[0].get_by_text("1 other visitor asked for it as well").wait_for()
        press(pages[0], "Cancel")
        pages[0].get_by_role("button", name="Cancel", exact=True).wait_for(state="hidden")
        wait_card(pages[0], "running")
        anna.context.close()
        pages[1].close()
        stand_in.rate = None
        page = berta.open()
        assert "is downloaded" in wait_card(page, "here")
        berta.context.close()
        fetched = [file for file, _ in stand_in.ranges if file.endswith(".safetensors")]
        assert len(fetched) == len(set(fetched)) == 2


def test_a_damaged_repository_is_explained(chromium, stand_in, tmp_path):
    """One message, on a phone's page that stays usable."""
    stand_in.files[MANIFEST] = b"{}"
    shutil.rmtree(tmp_path / "hub", ignore_errors=True)
    with running_app(tmp_path, **environment(stand_in, tmp_path)) as url:
        watch = Watch(chromium.new_context(viewport=PHONE), url)
        page = watch.open()
        choose(page, "Model", NAME)
        assert "is corrupted" in wait_card(page, "failed")
        page.get_by_role("button", name="Try again").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        choose(page, "Model", "Nano voice")
        press(page, "Generate")
        wait_state(page, "done")
        watch.context.close()
