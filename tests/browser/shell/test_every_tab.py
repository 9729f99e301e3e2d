"""Every tab as it looks in every width, light and dark: axe-core, overflow, places, headings.

The states are visited once for each group of widths; the tests read what was seen there.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from PIL import Image

from dia_demo.services.bench.plan import BenchPlan
from dia_demo.services.bench.report import BenchReport, FailedRun
from dia_demo.services.measurements.types import CodecResult
from dia_demo.ui.machine.html import report_html
from tests.helpers.page.accessibility import small_controls, violations
from tests.helpers.page.browser import (
    DESKTOP,
    Watch,
    open_tab,
    press,
    unfold,
    wait_state,
    write_script,
)
from tests.helpers.page.lab_page import WAIT, hear, open_zip, vote, zip_comparison
from tests.helpers.stand_ins.bench_stubs import CODEC, hardware_result, run_result

pytestmark = pytest.mark.long

pytest.importorskip("playwright.sync_api")

BENCH_REPORT = BenchReport(
    BenchPlan(random="dia-1.6b", threads=1),
    1,
    hardware=hardware_result(),
    codec=CodecResult(**CODEC),
    runs=(
        run_result(rows=1),
        run_result(precision="int8"),
        FailedRun("int4", 1, "It was stopped."),
    ),
)
# Places do not depend on the colours: dark, the narrowest and the widest are enough.
VISITS = [
    pytest.param(("light", (320, 1440)), id="light"),
    pytest.param(("light", (390, 820, 1600)), id="other widths"),
    pytest.param(("dark", (320, 1600)), id="dark"),
]
SHORT = "[S1] Hello there. How are you? [S2] I am fine, thank you. [S1]"
WITH_FINDINGS = "[S1] Hello [S2] Hi. (lauhgs) [S2] What? [S3]"
UNFOLD = "for (const fold of document.querySelectorAll('details')) fold.open = true"
HEADINGS = """() => Object.fromEntries([...document.querySelectorAll("h2")]
  .filter((heading) => heading.checkVisibility())
  .map((heading) => heading.querySelector("span") || heading)
  .map((text) => [text, getComputedStyle(text)])
  .map(([text, { fontSize, fontWeight }]) => [text.textContent, `${fontSize} ${fontWeight}`]))"""
# Fixed parts of the page: the header and the tabs.
PLACES = """() => [".masthead", ...["generate", "compare", "machine-tab", "about"].map(
  (id) => `#tabs [role=tab][data-tab-id=${id}]`)].map((selector) => {
    const { x, y, width } = document.querySelector(selector).getBoundingClientRect();
    return [x + scrollX, y + scrollY, width].map(Math.round);
  })"""


@dataclass
class View:
    """A state of the page at one width."""

    state: str
    width: int
    overflow: int
    places: list
    small: list[str]
    violations: list[str]


@dataclass
class Visit:
    """What was seen in one colour scheme. slider: pixels through its handle. headings: the h2 of
    each state, with their size and weight."""

    slider: Image.Image
    views: list[View] = field(default_factory=list)
    headings: dict[str, dict[str, str]] = field(default_factory=dict)


@pytest.fixture(scope="module", params=VISITS)
def visit(request, chromium, home, finished_pairs, tmp_path_factory) -> Iterator[Visit]:
    """All states of the page in one colour scheme and some widths."""
    scheme, widths = request.param
    context = chromium.new_context(viewport=DESKTOP, color_scheme=scheme)
    watch = Watch(context, home)
    page = watch.open()
    page.set_default_timeout(WAIT)
    seen = Visit(above_the_track(page))
    packed = zip_comparison(finished_pairs, tmp_path_factory.mktemp("zip"))
    for state in states(page, packed):
        seen.headings[state] = page.evaluate(HEADINGS)
        for width in widths:
            page.set_viewport_size({"width": width, "height": 900})
            overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            places, small = page.evaluate(PLACES), small_controls(page)
            seen.views.append(View(state, width, overflow, places, small, violations(page)))
        page.set_viewport_size(DESKTOP)
    context.close()
    assert watch.errors == [] and watch.outside == []
    yield seen


def above_the_track(page) -> Image.Image:
    """A row of pixels through the handle of a slider, 6 px above the middle of its track."""
    slider = page.get_by_label("range slider for Max tokens")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    row = box | {"y": box["y"] + box["height"] / 2 - 6, "height": 1}
    return Image.open(io.BytesIO(page.screenshot(clip=row))).convert("RGB")


def states(page, packed) -> Iterator[str]:
    """Bring the page into one state after the other; yields their names."""
    write_script(page, SHORT, max_tokens=60)
    press(page, "Generate")
    wait_state(page, "done", "cut")
    page.locator("#take").get_by_label("Play", exact=True).wait_for()
    for name in ("More", "Voice prompt", "Earlier takes"):
        unfold(page, name)
    page.get_by_role("button", name="Compare with this").wait_for()
    write_script(page, WITH_FINDINGS)
    yield "generate"
    open_tab(page, "Compare")
    page.get_by_role("button", name="Generate pairs").wait_for()
    unfold(page, "Scripts, seeds and other settings")
    yield "compare form"
    open_zip(page, packed)
    yield "blind room"
    hear(page, "A")
    hear(page, "B")
    vote(page, "A")
    page.get_by_text("Pair 2 of 2").wait_for()
    page.locator(".lab-end").click()
    page.locator(".lab-end").click()
    page.locator('.lab-room[data-state="open"]').wait_for()
    page.evaluate(UNFOLD)
    yield "result"
    open_tab(page, "Machine")
    page.get_by_role("button", name="Measure", exact=True).wait_for()
    yield "machine"
    # A measurement takes a minute; its HTML is the same for every report.
    shown = report_html(BENCH_REPORT, True, "Dia-1.6B takes about 30 s.")
    area = page.locator("#machine-report-area .prose")
    area.evaluate("(area, html) => { area.innerHTML = html; }", shown)
    page.evaluate(UNFOLD)
    yield "machine report"
    page.get_by_role("tab", name="About").click()
    page.get_by_text("How it sounds says nothing about").wait_for()
    yield "about"


def test_axe_finds_no_serious_violation(visit):
    found = {(view.state, view.width): view.violations for view in visit.views if view.violations}
    assert found == {}


def test_targets_have_24_pixels(visit):
    assert {(v.state, v.width): v.small for v in visit.views if v.small} == {}


def test_a_sliders_handle_stands_out(visit):
    row = [visit.slider.getpixel((x, 0)) for x in range(visit.slider.width)]
    assert max(contrast(pixel, row[-1]) for pixel in row) >= 3


def luminance(pixel: tuple[int, ...]) -> float:
    parts = [value / 255 for value in pixel]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    dark, bright = sorted((luminance(one), luminance(other)))
    return (bright + 0.05) / (dark + 0.05)


def test_nothing_overflows_at_any_width(visit):
    assert {(v.state, v.width): v.overflow for v in visit.views if v.overflow > 0} == {}


def test_header_tabs_stay_in_place(visit):
    """A second click at the same place must not open another tab."""
    for width in {view.width for view in visit.views}:
        places = {view.state: view.places for view in visit.views if view.width == width}
        assert all(seen == places["generate"] for seen in places.values()), places


def test_sections_have_headings(visit):
    expected = {
        "generate": {"Script", "Take", "Settings", "Earlier takes"},
        "compare form": {"1 · Set up", "2 · Listen", "Saved comparisons"},
        "result": {"3 · Result"},
        "machine": {"What this machine can do"},
        "about": {"What this is", "For programs", "Intel XPU (experimental)"},
    }
    for state, headings in expected.items():
        assert headings <= visit.headings[state].keys(), state


def test_headings_look_alike(visit):
    assert {look for headings in visit.headings.values() for look in headings.values()} == {
        "17px 650"
    }
