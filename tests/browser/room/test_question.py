"""The Compare tab's form and its list of comparisons in a real chromium."""

from __future__ import annotations

import csv

import pytest

from tests.helpers.models.checkpoints import NANO_DEFAULTS
from tests.helpers.page.browser import DESKTOP, PHONE, Interceptor, open_tab, press
from tests.helpers.page.lab_page import (
    SCRIPT,
    choose,
    compare_tab,
    fill,
    make_pairs,
    open_more,
    open_zip,
    zip_comparison,
)

pytestmark = pytest.mark.long

sync_api = pytest.importorskip("playwright.sync_api")

DIA = "Dia-1.6B (0626)"


def value_of(page, name: str) -> str:
    return page.locator(f"#lab-{name} input").input_value()


OWN = f"{NANO_DEFAULTS.temperature:g}"
HIGHER = f"{2.5 * NANO_DEFAULTS.temperature:g}"


def note(page, words: str) -> None:
    page.locator("#lab-plan", has_text=words).wait_for()


def test_the_form_is_one_sentence(open_window):
    """What differs and its two values; each choice brings values that suit the model."""
    page = compare_tab(open_window(DESKTOP))
    note(page, "12 pairs to listen to, 24 takes to generate")
    assert not page.locator("#lab-scripts").is_visible()
    sentence = " ".join(page.locator("#lab-question").inner_text().split())
    assert sentence.startswith("Which sounds better:") and sentence.endswith("?")
    assert (value_of(page, "differs"), value_of(page, "first")) == ("Temperature", OWN)
    assert value_of(page, "second") == HIGHER
    for value in (9, -1):
        fill(page, "second", value)
        note(page, f"temperature must be a number from 0 to 5, not {value}")
    choose(page, "differs", "CFG scale")
    page.wait_for_function("document.querySelector('#lab-second input').value === '2.5'")
    note(page, "12 pairs to listen to")
    choose(page, "differs", "Precision")
    page.locator("#lab-first-choice").wait_for()
    assert (value_of(page, "first-choice"), value_of(page, "second-choice")) == ("float32", "int8")
    assert not page.locator("#lab-first").is_visible()


def test_a_choice_may_overtake_the_description(open_window):
    """A description that was asked for before a menu got other choices has a value of the old."""
    window = open_window(DESKTOP)
    requests = Interceptor(window.context, "**/gradio_api/run/**")
    page = compare_tab(window)
    open_more(page)
    note(page, "12 pairs to listen to")
    held = []

    def hold_first(route) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    requests.handle = hold_first
    with page.expect_request("**/gradio_api/run/**"):
        fill(page, "a-max-tokens", 300)
    choose(page, "differs", "Precision")
    page.locator("#lab-second-choice").wait_for()
    held[0].continue_()
    choose(page, "second-choice", "int4")
    note(page, "12 pairs to listen to")


def test_a_model_brings_its_own_defaults(open_window):
    page = compare_tab(open_window(DESKTOP))
    open_more(page)
    assert page.locator("#lab-a-top-p").is_visible() and not page.locator("#lab-b-top-p").count()
    choose(page, "differs", "Model")
    page.locator("#lab-b-temperature").wait_for()
    assert value_of(page, "second-choice") == DIA
    assert (value_of(page, "a-temperature"), value_of(page, "b-temperature")) == (OWN, "1.8")
    choose(page, "second-choice", "Nano voice")
    page.wait_for_function(f"document.querySelector('#lab-b-temperature input').value === '{OWN}'")
    choose(page, "differs", "Temperature")
    page.locator("#lab-first").wait_for()
    choose(page, "a-model", DIA)
    page.wait_for_function("document.querySelector('#lab-second input').value === '1.2'")
    assert value_of(page, "first") == "1.8" and value_of(page, "a-cfg-scale") == "3"


def test_only_fields_that_count_are_shown(open_window):
    page = compare_tab(open_window(DESKTOP))
    open_more(page)
    page.get_by_label("Round: 3 to 6 values").check()
    page.locator("#lab-values").wait_for()
    values = value_of(page, "values").split(", ")
    assert (values[0], len(values), values[-1]) == (OWN, 3, HIGHER)
    assert float(HIGHER) <= 0.5, "within what the nano voice speaks well"
    assert not page.locator("#lab-first").is_visible()
    assert not page.locator("#lab-a-temperature").is_visible(), "it is in the question"
    note(page, "36 pairs to listen to")


def test_the_scripts_are_checked(open_window):
    page = compare_tab(open_window(DESKTOP))
    open_more(page)
    page.locator("#lab-scripts textarea").fill("[S1] I’m here. [S2]\n---\n[S1] It costs $5. [S2]")
    report = page.locator("#lab-report")
    report.get_by_text("2 scripts · about").wait_for()
    assert "five dollars" in report.locator(".read-as").nth(1).inner_text()
    page.locator("#lab-scripts textarea").fill("[S1] Hi (laugh). [S2]\n---\n[S1] Ho. [S2]")
    report.locator(".read-as").get_by_text("[S1] Hi (laughs). [S2]").wait_for()
    assert not report.get_by_text("not a sound").count(), "the nano voice needs no repair"
    choose(page, "a-model", DIA)
    unknown = "Script 1, line 1: “(laugh)” is not a sound Dia knows"
    report.locator(".finding").get_by_text(unknown).wait_for()
    report.get_by_role("button", name="Write (laughs)").click()
    scripts = page.locator("#lab-scripts textarea")
    sync_api.expect(scripts).to_have_value("[S1] Hi (laughs). [S2]\n---\n[S1] Ho. [S2]")
    page.keyboard.press("Control+z")
    sync_api.expect(scripts).to_have_value("[S1] Hi (laugh). [S2]\n---\n[S1] Ho. [S2]")
    report.get_by_role("button", name="Write (laughs)").click()
    report.get_by_role("button", name="Undo", exact=True).click()
    sync_api.expect(scripts).to_have_value("[S1] Hi (laugh). [S2]\n---\n[S1] Ho. [S2]")
    report.get_by_role("button", name="Undo", exact=True).wait_for(state="hidden")


def test_names_end_before_the_arrow(open_window):
    page = compare_tab(open_window(PHONE))
    overlaps = page.evaluate(
        """() => [...document.querySelectorAll("#compare input[role=combobox]")]
          .filter((input) => input.offsetParent)
          .filter((input) => {
            const arrow = input.parentElement.querySelector("svg").getBoundingClientRect();
            const end = input.getBoundingClientRect().right;
            return end - parseFloat(getComputedStyle(input).paddingRight) > arrow.left + 1;
          })
          .map((input) => input.ariaLabel)"""
    )
    assert overlaps == []


def test_a_model_that_cannot_be_fetched_leaves_nothing_behind(open_window):
    page = compare_tab(open_window(DESKTOP))
    open_more(page)
    choose(page, "a-model", DIA)
    page.wait_for_function("document.querySelector('#lab-second input').value === '1.2'")
    press(page, "Generate pairs")
    page.locator("#lab-make-problem [role=alert]").wait_for()
    page.locator("#lab-make").wait_for()
    page.locator("#lab-kept input").click()
    assert page.get_by_role("option").count() == 0


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """A comparison whose test has ended, with one vote."""
    pairs = make_pairs(tmp_path_factory.mktemp("ended"))
    heard = {"A": 9.0, "B": 9.0}
    pairs.vote(pairs.plan.trials[0].id, "A", heard, 2, "fine", heard)
    pairs.reveal()
    return pairs


def test_a_result_can_be_taken_home(open_window, ended, tmp_path):
    """As CSV and as a zip, once it is revealed; its tables have no frames."""
    page = compare_tab(open_window(DESKTOP))
    assert not page.locator("#lab-csv").is_visible()
    page.locator("input[type=file][accept*='.zip']").set_input_files(
        zip_comparison(ended, tmp_path)
    )
    page.locator('.lab-room[data-state="open"]').wait_for()
    assert not page.locator("#lab-make").is_visible(), "nothing is to be made now"
    with page.expect_download() as waiting:
        press(page, "Download CSV")
    waiting.value.save_as(tmp_path / "votes.csv")
    with open(tmp_path / "votes.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["answer"] for row in rows] == ["1", ""] and rows[0]["note"] == "fine"
    page.get_by_text("The columns of the CSV").click()
    assert "clip_1: the setting heard as clip 1" in page.locator("#lab-downloads").inner_text()
    frames = page.evaluate(
        """() => [...document.querySelectorAll(".lab-table, .lab-table *")]
          .filter((node) => ["Left", "Right", "Top"].some(
            (side) => parseFloat(getComputedStyle(node)[`border${side}Width`]) > 0))
          .map((node) => node.tagName)"""
    )
    assert frames == []


def test_deleting_asks_once(open_window, finished_pairs, tmp_path):
    page = compare_tab(open_window(DESKTOP))
    press(page, "Open")
    page.get_by_text("Choose a comparison in the list first.").first.wait_for()
    open_zip(page, zip_comparison(finished_pairs, tmp_path))
    page.locator("#lab-delete").click()
    asked = page.get_by_role("button", name="Press again to delete it with its votes")
    asked.wait_for()
    page.locator("#lab-open").focus()
    page.get_by_role("button", name="Delete", exact=True).wait_for()
    assert page.locator('.lab-room[data-state="listen"]').is_visible(), "nothing was deleted"
    page.locator("#lab-delete").click()
    asked.click()
    page.locator("#lab-status", has_text="The comparison was deleted.").wait_for()
    assert "ready" not in page.locator("#lab-status .status-detail").inner_text()
    page.locator('.lab-room[data-state="empty"]').wait_for()
    page.locator("#lab-make").wait_for()


def test_a_reload_brings_the_question_back(open_window):
    """After a reload the question stands as it was asked, with its menus."""
    page = compare_tab(open_window(DESKTOP))
    choose(page, "differs", "Precision")
    page.locator("#lab-second-choice").wait_for()
    choose(page, "second-choice", "int4")
    open_more(page)
    page.locator("#lab-scripts textarea").fill(SCRIPT)
    note(page, "1 pair of 1 script can show nothing")
    page.reload()
    open_tab(page, "Compare")
    page.locator("#lab-second-choice").wait_for()
    assert (value_of(page, "differs"), value_of(page, "second-choice")) == ("Precision", "int4")
    note(page, "1 pair of 1 script can show nothing")
