"""The time beside Generate and the line about the speaker, on a machine whose speed is known."""

from __future__ import annotations

import re

import pytest

from tests.helpers.models.checkpoints import NANO_DEFAULTS
from tests.helpers.page.browser import (
    DESKTOP,
    PHONE,
    choose,
    press,
    running_app,
    wait_state,
    write_script,
)

pytestmark = pytest.mark.long

SHORT = "[S1] Good morning. Did you sleep well? [S2] Yes, thank you. And you? [S1]"
# The lower end of the time.
DIA_SECONDS = re.compile(r"(?i)about (\d+)(?: to \d+)? s for this script on this machine")
# The voice is ready and fast: its takes have no loading before them.
READY = "document.querySelector('#wait .wait').innerText === 'under 1 s'"


def line(page) -> str:
    return page.locator("#speaker").inner_text()


def dia_seconds(page) -> int:
    return int(DIA_SECONDS.search(line(page))[1])


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """An app of its own: takes of other tests would replace the known speed."""
    with running_app(tmp_path_factory.mktemp("expectation")) as url:
        yield url


@pytest.fixture(scope="module")
def visit(shared_page):
    """A function that gives the page a size."""

    def of(size):
        shared_page.set_viewport_size(size)
        return shared_page

    return of


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_who_speaks_is_above_the_fold(visit, size):
    page = visit(size)
    assert "Nano: a small synthetic voice for trying." in line(page)
    for place in ("#generate", "#wait .wait", ".switch-model"):
        box = page.locator(place).bounding_box()
        assert box["y"] + box["height"] <= size["height"], place
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_times_are_there_before_the_first_press(visit, size):
    page = visit(size)
    page.wait_for_function(READY)
    assert dia_seconds(page) > 5


# Pixels between the last line of words about the speaker and the button for candidates below.
GAP = """() => {
  const words = document.createRange();
  words.selectNodeContents(document.querySelector(".speaker"));
  const candidates = document.querySelector("#candidates-row");
  return candidates.getBoundingClientRect().top - words.getBoundingClientRect().bottom;
}"""


def test_the_candidates_follow_the_line_at_every_width(visit):
    page = visit(DESKTOP)
    page.locator(".switch-model").wait_for()
    gaps = {}
    for width in (320, 390, 480, 820, 900, 1100, 1440, 1600):
        page.set_viewport_size({"width": width, "height": 900})
        gaps[width] = page.evaluate(GAP)
    assert all(0 <= gap < 30 for gap in gaps.values()), gaps


# The same of the page now.
SECONDS = "Number(/about (\\d+)/.exec(document.querySelector('#speaker').innerText)[1])"


def test_the_times_follow_the_form(visit):
    page = visit(DESKTOP)
    first = dia_seconds(page)
    write_script(page, SHORT)
    page.wait_for_function(f"(first) => {SECONDS} < first", arg=first)
    short = dia_seconds(page)
    choose(page, "Precision", "bfloat16")
    page.wait_for_function(f"(short) => {SECONDS} > short", arg=short)
    choose(page, "Precision", "auto")
    page.wait_for_function(f"(short) => {SECONDS} === short", arg=short)


def test_the_button_in_the_line_chooses_the_model(visit):
    page = visit(DESKTOP)
    press(page, "Use Dia-1.6B")
    page.get_by_role("button", name="Back to Nano").wait_for()
    assert page.get_by_label("Model", exact=True).input_value() == "Dia-1.6B (0626)"
    # Its own settings, as the model choice brings them.
    assert page.get_by_label("number input for Temperature").input_value() == "1.8"
    page.get_by_text("At most 3,072 tokens").wait_for()
    # It is not on this machine, so that the button has no time: the download is in the line.
    page.wait_for_function("document.querySelector('#wait .wait').innerText === ''")
    assert dia_seconds(page) > 1 and "6.4 GB to download once" in line(page)
    press(page, "Back to Nano")
    page.wait_for_function(READY)
    page.get_by_role("button", name="Use Dia-1.6B").wait_for()
    own = page.get_by_label("number input for Temperature").input_value()
    assert float(own) == NANO_DEFAULTS.temperature


def test_a_take_leaves_the_line_in_its_place(visit):
    page = visit(DESKTOP)
    write_script(page, SHORT, max_tokens=200)
    press(page, "Generate")
    wait_state(page, "done", "cut")
    page.wait_for_function(
        "/^(under|about|less than) \\d/.test(document.querySelector('#wait .wait').innerText)"
    )
    assert "Use Dia-1.6B" in line(page)
