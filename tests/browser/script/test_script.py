"""The script on the page, in a real chromium: remarks, repairs, undo, and what Generate shows."""

from __future__ import annotations

import re

import pytest

from tests.helpers.page.browser import (
    PHONE,
    choose,
    press,
    script_of,
    unfold,
    wait_state,
    write_script,
)

sync_api = pytest.importorskip("playwright.sync_api")

CURLY = "[S1] I’m sure you’ll like it — “really”… [S2] Don’t be late, please, my friend."
PLAIN = "[S1] I'm sure you'll like it, \"really\"... [S2] Don't be late, please, my friend."
OVER = ("done", "cut")


@pytest.fixture
def page(shared_page):
    return shared_page


@pytest.fixture
def dia_page(shared_page):
    """With Dia-1.6B chosen: the nano voice reads such sounds without a repair."""
    choose(shared_page, "Model", "Dia-1.6B")
    yield shared_page
    choose(shared_page, "Model", "Nano")
    shared_page.get_by_role("button", name="Use Dia-1.6B").wait_for()


@pytest.mark.long
def test_the_page_shows_the_script_as_the_model_reads_it(page):
    script = script_of(page)
    script.fill(CURLY)
    page.locator("#report .read-as").get_by_text(PLAIN).wait_for()
    assert script.input_value() == CURLY, "what was written stays as it is"


@pytest.mark.long
def test_what_the_model_does_not_read_is_a_finding(dia_page):
    page, script = dia_page, script_of(dia_page)
    script.fill(CURLY)
    page.locator("#report .finding").get_by_text("Typographic quotes").wait_for()
    assert page.locator("#report .read-as").count() == 0
    press(page, "Use plain quotes and dashes")
    sync_api.expect(script).to_have_value(PLAIN)


@pytest.mark.long
def test_words_are_read_as_the_list_of_pronunciations_says_also_after_a_reload(page):
    write_script(page, "[S1] Hello, Nguyen, how are you? [S2] Fine. [S1]")
    unfold(page, "Pronunciations")
    words = page.locator("#pronunciations textarea")
    words.fill("Nguyen")
    page.locator("#report .finding").get_by_text("Pronunciations, line 1: write").wait_for()
    words.fill("Nguyen = win")
    read = "[S1] Hello, win, how are you? [S2] Fine. [S1]"
    page.locator("#report .read-as").get_by_text(read).wait_for()
    page.reload()
    page.locator("#report .read-as").get_by_text(read).wait_for()
    unfold(page, "Pronunciations")
    sync_api.expect(words).to_have_value("Nguyen = win")
    words.fill("")
    page.locator("#report .read-as").wait_for(state="detached")


def test_a_finding_is_repaired_by_one_click(page):
    write_script(page, "[S2] Hello there. [S1] Hi, how are you?")
    press(page, "Swap the two speakers")
    script = script_of(page)
    sync_api.expect(script).to_have_value("[S1] Hello there. [S2] Hi, how are you?")


@pytest.mark.long
def test_fix_all_makes_every_repair(dia_page):
    page = dia_page
    write_script(page, "[S1] Hello (giggles). [S2] Hi (coughing), how are you?")
    press(page, "Fix all (3)")
    script = script_of(page)
    sync_api.expect(script).to_have_value(
        "[S1] Hello (laughs). [S2] Hi (coughs), how are you? [S1]"
    )
    page.get_by_text("Fix all").wait_for(state="detached")


# Undo


@pytest.mark.long
def test_an_example_is_undone_by_ctrl_z(page):
    script = script_of(page)
    write_script(page, "")
    script.type("[S1] What I typed myself. [S2]")
    press(page, "Short")
    sync_api.expect(script).to_have_value(re.compile("Hello there"))
    page.keyboard.press("Control+z")
    sync_api.expect(script).to_have_value("[S1] What I typed myself. [S2]")


@pytest.mark.long
def test_a_repair_is_undone_by_ctrl_z(dia_page):
    page = dia_page
    script = script_of(page)
    for button in ("Write (laughs)", "Fix all (2)"):
        text = "[S1] Hello (giggles). [S2] Hi."
        write_script(page, text)
        press(page, button)
        sync_api.expect(script).not_to_have_value(text)
        page.keyboard.press("Control+z")
        sync_api.expect(script).to_have_value(text)


@pytest.mark.long
def test_undo_beside_the_counts_takes_back_step_by_step(page):
    script, undo = script_of(page), page.get_by_role("button", name="Undo", exact=True)
    write_script(page, "")
    assert not undo.is_visible(), "there is nothing to take back"
    typed = "[S1] What I typed myself. [S2]"
    write_script(page, typed)
    press(page, "Short")
    undo.wait_for()
    press(page, "Question and answer")
    undo.click()
    sync_api.expect(script).to_have_value(re.compile("Hello there"))
    undo.click()
    sync_api.expect(script).to_have_value(typed)
    undo.wait_for(state="hidden")


@pytest.mark.long
def test_typing_after_a_repair_ends_its_undo(page):
    """The button would take away what was typed."""
    write_script(page, "[S2] Hello. [S1] Hi.")
    press(page, "Swap the two speakers")
    undo = page.get_by_role("button", name="Undo", exact=True)
    undo.wait_for()
    script_of(page).press("End")
    script_of(page).type(" More.")
    undo.wait_for(state="hidden")


# The choice to normalise


@pytest.mark.long
def test_the_choice_to_normalise_is_remembered(open_window):
    watch = open_window()
    page = watch.open()
    box = page.get_by_label("Write out numbers and symbols as words")
    assert box.count() == 0, "the nano voice always does it"
    choose(page, "Model", "Dia-1.6B")
    box.wait_for()
    assert not box.is_checked(), "Dia reads what is written unless a person agrees"
    script = "[S1] It is $3.50 — now. [S2]"
    script_of(page).fill(script)
    page.get_by_role("button", name="Write them out").wait_for()
    box.check()
    read = page.locator("#report .read-as")
    read.get_by_text("[S1] It is three dollars and fifty cents, now. [S2]").wait_for()
    assert script_of(page).input_value() == script
    page.wait_for_function("window.diaRestored === true")
    page.reload()
    page.wait_for_function("window.diaRestored === true")
    read.get_by_text("three dollars").wait_for()
    assert box.is_checked()
    choose(page, "Model", "Nano")
    box.wait_for(state="detached")


# Chips at Generate


@pytest.mark.long
@pytest.mark.parametrize("size", [None, PHONE], ids=["desktop", "phone"])
def test_a_kept_seed_is_shown_at_generate(open_window, size):
    page = open_window(**({} if size is None else {"size": size})).open()
    assert page.locator(".chip").count() == 0
    write_script(page, "[S1] Hi.", max_tokens=40)
    press(page, "Generate")
    wait_state(page, *OVER)
    press(page, "Keep this seed")
    chip = page.locator(".chip").filter(has_text=re.compile(r"Seed \d+ kept"))
    chip.wait_for()
    assert chip.bounding_box()["height"] >= 24
    page.get_by_role("button", name="Use a random seed again").click()
    chip.wait_for(state="detached")
    unfold(page, "More")
    assert page.get_by_label("Seed", exact=True).input_value() == ""
