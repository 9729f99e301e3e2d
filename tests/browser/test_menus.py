"""Choices that set other fields, in a real chromium: only they do, not a visit to a menu."""

from __future__ import annotations

import pytest

from tests.helpers.page.browser import DESKTOP, Interceptor, tab_to
from tests.helpers.page.lab_page import compare_tab, fill, open_more

pytestmark = pytest.mark.long

sync_api = pytest.importorskip("playwright.sync_api")


def leave(page, menu: str) -> None:
    """Come to a menu with the Tab key, and leave it without a choice."""
    tab_to(page, menu)
    page.keyboard.press("Tab")


def choose_next(page, menu: str) -> None:
    """Choose the next entry of a menu with the keyboard."""
    page.locator(menu).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")


def test_a_visit_to_the_model_menu_keeps_the_settings(open_window):
    page = open_window().open()
    temperature = page.get_by_label("number input for Temperature")
    temperature.fill("0.7")
    temperature.press("Tab")
    page.evaluate("document.activeElement.blur()")
    leave(page, "#model input")
    # Its answer would come after the one to a visit.
    number = page.get_by_label("number input for Max tokens")
    number.fill("333")
    number.press("Tab")
    page.get_by_text("333 tokens ≈").wait_for()
    assert temperature.input_value() == "0.7"
    choose_next(page, "#model input")
    sync_api.expect(temperature).to_have_value("1.8")


def test_a_visit_to_the_question_keeps_its_values(open_window):
    page = compare_tab(open_window(DESKTOP))
    open_more(page)
    second = page.locator("#lab-second input")
    fill(page, "second", "0.9")
    fill(page, "a-cfg-scale", "2.2")
    page.locator("#lab-differs input").focus()
    leave(page, "#lab-differs input")
    page.locator("#lab-a-model input").focus()
    leave(page, "#lab-a-model input")
    # Its answer would come after those to the visits.
    fill(page, "seeds", 2)
    page.get_by_text("24 pairs to listen to").wait_for()
    assert second.input_value() == "0.9"
    assert page.locator("#lab-a-cfg-scale input").first.input_value() == "2.2"
    choose_next(page, "#lab-differs input")
    page.get_by_text("24 pairs to listen to").wait_for()
    sync_api.expect(page.locator("#lab-differs input")).to_have_value("CFG scale")
    sync_api.expect(second).to_have_value("1.5")


def test_the_last_of_quick_choices_counts(open_window):
    """The kind of comparison, changed again before the page has followed."""
    window = open_window(DESKTOP)
    requests = Interceptor(window.context, "**/gradio_api/run/**")
    page = compare_tab(window)
    open_more(page)
    page.get_by_text("12 pairs to listen to").wait_for()
    held = []
    requests.handle = held.append
    kinds = page.locator("#lab-kind input[type=radio]")
    with page.expect_request("**/gradio_api/run/**"):
        kinds.nth(1).check()
    kinds.nth(2).check()
    requests.handle = None
    for route in held:
        route.continue_()
    page.locator("#lab-values").wait_for()
