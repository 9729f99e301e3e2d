"""The experimental toggle in a real chromium, over a stand-in for a card: proved, used, failed."""

from __future__ import annotations

import json
import re

import pytest

from tests.helpers.models.checkpoints import write_small
from tests.helpers.page.browser import (
    DESKTOP,
    PHONE,
    Watch,
    figure,
    open_tab,
    press,
    running_app,
    unfold,
    wait_state,
    write_script,
)
from tests.helpers.page.lab_page import WAIT

pytestmark = pytest.mark.long

sync_api = pytest.importorskip("playwright.sync_api")

SCRIPT = "[S1] Hello there. [S2] Hi. [S1]"
OVER = ("done", "cut")
LABEL = "Intel XPU (experimental)"


@pytest.fixture
def bench(chromium, tmp_path):
    """An app of its own over the stand-in: (its windows' maker, the file that names the fault)."""
    fault = tmp_path / "fault"
    fault.write_text("healthy@1000000000")
    model = write_small(tmp_path / "small", codec=True)
    given = {"STAND_IN": str(fault), "DIA_MODEL": str(model)}
    watches = []
    with running_app(tmp_path, module="tests.browser.apps.xpu_app", **given) as url:

        def open_page(size=DESKTOP, scheme="light"):
            context = chromium.new_context(viewport=size, color_scheme=scheme)
            watches.append(Watch(context, url))
            page = watches[-1].open()
            page.set_default_timeout(WAIT)
            write_script(page, SCRIPT, max_tokens=60)
            return page

        yield open_page, fault
        for watch in watches:
            watch.context.close()
            assert watch.errors == [] and watch.outside == []


def proved(page) -> None:
    """Run the self-check until the toggle may be turned on."""
    press(page, "Run the self-check")
    page.locator("#xpu-report", has_text="Checking").wait_for()
    page.wait_for_function("!document.querySelector('#xpu input').disabled")


def test_the_toggle_opens_for_a_verified_card(bench, tmp_path):
    open_page, fault = bench
    page = open_page()
    toggle = page.get_by_label(LABEL)
    assert toggle.is_disabled() and "Run it below" in page.locator("#xpu-area").inner_text()
    page.get_by_role("link", name="About this").click()
    page.locator("#xpu-document").get_by_text("produced distorted speech").wait_for()
    open_tab(page, "Generate")
    fault.write_text("one head's values wrong by 1%@1000000000")
    press(page, "Run the self-check")
    page.locator("#xpu-report tr.fail", has_text="worst at head 3 of 4").wait_for()
    # The row comes while later stages still run, the reason beside the toggle once all have.
    page.locator("#xpu-area", has_text=re.compile("Off: .*stage 3")).wait_for()
    assert toggle.is_disabled()
    fault.write_text("healthy@1000000000")
    proved(page)
    assert page.locator("#xpu-report tr.pass").count() == 9 and not toggle.is_checked()
    with page.expect_download() as waiting:
        press(page, "Save the report")
    waiting.value.save_as(tmp_path / "report.json")
    told = json.loads((tmp_path / "report.json").read_text())
    assert told["passed"] and len(told["stages"]) == 9 and told["race"]
    toggle.check()
    press(page, "Generate")
    wait_state(page, *OVER)
    assert figure(page, "Precision") == "float32 on xpu"


def test_the_cpu_takes_over_from_a_device_that_hangs(bench):
    """The page shows the failure, the queue moves on, and one press makes the take on the CPU."""
    open_page, fault = bench
    page, other = open_page(), open_page(PHONE, "dark")
    proved(page)
    page.get_by_label(LABEL).check()
    fault.write_text("hang@20")
    press(page, "Generate")
    # From the loading to the end of the device's patience there are seconds enough.
    wait_state(page, "loading", "running")
    press(other, "Generate")
    wait_state(other, "waiting")
    said = wait_state(page, "failed")
    for words in ("The XPU failed", "the device hangs", "whole take was dropped"):
        assert words in said
    wait_state(other, *OVER)
    assert figure(other, "Precision") == "float32 on cpu"
    toggle = page.get_by_label(LABEL)
    assert toggle.is_disabled() and not toggle.is_checked()
    page.locator("#xpu-report", has_text="its result is no longer valid").wait_for()
    assert "must pass before the next one" in page.locator("#xpu-area").inner_text()
    assert page.get_by_role("button", name="Download take").is_disabled(), "nothing is handed over"
    unfold(page, "More")
    seed = page.get_by_label("Seed", exact=True).input_value()
    press(page, "Make this take on the CPU")
    wait_state(page, *OVER)
    assert figure(page, "Precision") == "float32 on cpu" and figure(page, "Seed") == seed
    assert page.get_by_role("button", name="Make this take on the CPU").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= DESKTOP["width"]
    assert other.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
