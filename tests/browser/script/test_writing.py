"""Help with writing a script, in a real chromium: suggestions, the margin, the two buttons."""

from __future__ import annotations

import pytest

from tests.helpers.page.browser import PHONE, choose, press, script_of

pytestmark = pytest.mark.long

sync_api = pytest.importorskip("playwright.sync_api")

OPTIONS = "#script-suggestions [role=option]"
# Which speaker's bar is beside the line that each tag is in, from the top.
BARS = """() => [...document.querySelectorAll("#script .script-bar")].map((bar) => {
  const area = document.querySelector("#script textarea");
  const line = parseFloat(getComputedStyle(area).lineHeight);
  const top = bar.getBoundingClientRect().top - area.getBoundingClientRect().top + area.scrollTop;
  return [bar.textContent, Math.floor((top - 8) / line)];
})"""


@pytest.fixture
def page(shared_page):
    script_of(shared_page).fill("")
    return shared_page


def type_at_end(page, text: str) -> None:
    script_of(page).press("Control+End")
    script_of(page).press_sequentially(text)


# Suggestions


def test_sounds_of_the_model_are_suggested_and_chosen_by_keys(page):
    script, options = script_of(page), page.locator(OPTIONS)
    type_at_end(page, "[S1] Hi (")
    sync_api.expect(options).to_have_text(["(laughs)", "(pause)", "(pause 1.5)"])
    sync_api.expect(script).to_have_attribute("aria-expanded", "true")
    script.press("ArrowDown")
    chosen = script.get_attribute("aria-activedescendant")
    assert page.locator(f"#{chosen}[aria-selected=true]").inner_text() == "(pause)"
    script.press("ArrowUp")
    script.press("Tab")
    sync_api.expect(script).to_have_value("[S1] Hi (laughs) ")
    sync_api.expect(script).to_be_focused()
    sync_api.expect(options).to_have_count(0)
    assert script.get_attribute("role") is None, "closed, it is a plain text field again"
    script.press("Control+z")
    sync_api.expect(script).to_have_value("[S1] Hi (")


def test_suggestions_are_filtered_and_go_where_nothing_fits(page):
    choose(page, "Model", "Dia-1.6B")
    options = page.locator(OPTIONS)
    type_at_end(page, "[S1] Hi (s")
    sounds = ["(sighs)", "(singing)", "(sings)", "(sniffs)", "(screams)", "(sneezes)"]
    sync_api.expect(options).to_have_text(sounds)
    options.get_by_text("(sniffs)").click()
    sync_api.expect(script_of(page)).to_have_value("[S1] Hi (sniffs) ")
    type_at_end(page, "(so")
    sync_api.expect(options).to_have_count(0)
    choose(page, "Model", "Nano")
    page.get_by_role("button", name="Use Dia-1.6B").wait_for()


def test_the_next_speaker_is_suggested_first_and_escape_closes(page):
    script, options = script_of(page), page.locator(OPTIONS)
    type_at_end(page, "[S1] Hi. [")
    sync_api.expect(options).to_have_text(["[S2]", "[S1]"])
    script.press("Escape")
    script.press_sequentially("S")
    sync_api.expect(options).to_have_count(0)
    script.press("Enter")
    sync_api.expect(script).to_have_value("[S1] Hi. [S\n")
    script.press_sequentially("[")
    sync_api.expect(options).to_have_count(2)
    script.press("ArrowLeft")
    sync_api.expect(options).to_have_count(0)


# The margin


def test_the_margin_names_the_speaker_where_a_turn_begins(page):
    long = "word " * 40
    script_of(page).fill(f"[S1] {long}\n[S2] Yes. [S1] No.\n[S2] Hm.")
    lines = page.wait_for_function(f"() => {{ const b = ({BARS})(); return b.length === 4 && b; }}")
    names, at = zip(*lines.json_value(), strict=True)
    assert names == ("S1", "S2", "S1", "S2")
    assert at[0] == 0 and at[1] > 2 and at[2] == at[1] and at[3] == at[1] + 1
    page.set_viewport_size(PHONE)
    page.wait_for_function(f"(before) => ({BARS})()[1][1] > before", arg=at[1])
    script_of(page).evaluate("(area) => { area.scrollTop = 40; }")
    page.wait_for_function(f"(before) => ({BARS})()[0][1] === 0")
    page.set_viewport_size({"width": 1440, "height": 900})


def test_the_turn_that_is_heard_is_marked_while_the_script_is_the_same(page):
    script = "[S1] One.\n[S2] Two."
    script_of(page).fill(script)
    page.locator("#script .script-bar").nth(1).wait_for()
    send = """(detail) => document.dispatchEvent(new CustomEvent("dia-turn", { detail }))"""
    page.evaluate(send, {"turn": 1, "script": script})
    sync_api.expect(page.locator("#script .script-bar.is-heard")).to_have_text(["S2"])
    page.evaluate(send, {"turn": 0, "script": "Another."})
    sync_api.expect(page.locator("#script .script-bar.is-heard")).to_have_count(0)


# The buttons


@pytest.mark.parametrize(
    ("script", "cursor", "added"),
    [
        ("", 0, "[S1] |"),
        ("[S1] Hi.", 8, "[S1] Hi.\n[S2] |"),
        ("[S1] Hi.\n[S2] Ho.", 6, "[S1] Hi.\n[S2] |\n[S2] Ho."),
        ("[S1] Hi. [S2]", 8, "[S1] Hi.\n[S2] |"),
    ],
)
def test_a_turn_is_added_after_that_of_the_cursor(page, script, cursor, added):
    field = script_of(page)
    field.fill(script)
    field.evaluate("(area, at) => area.setSelectionRange(at, at)", cursor)
    press(page, "Add turn")
    place = field.evaluate("(area) => area.selectionStart")
    text = field.input_value()
    assert f"{text[:place]}|{text[place:]}" == added
    sync_api.expect(field).to_be_focused()


def test_speakers_are_swapped_in_the_selection_or_everywhere(page):
    field = script_of(page)
    field.fill("[S1] One. [S2] Two. [S1]")
    press(page, "Swap speakers")
    sync_api.expect(field).to_have_value("[S2] One. [S1] Two. [S2]")
    page.get_by_role("button", name="Undo", exact=True).wait_for()
    field.press("Control+z")
    sync_api.expect(field).to_have_value("[S1] One. [S2] Two. [S1]")
    field.evaluate("(area) => area.setSelectionRange(9, 16)")
    press(page, "Swap speakers")
    sync_api.expect(field).to_have_value("[S1] One. [S1] Two. [S1]")
