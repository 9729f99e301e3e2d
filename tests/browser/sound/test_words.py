"""The words of a take by Dia2 are shown as they are heard, in a real chromium: also while it is
made, when the player only has those that have begun."""

from __future__ import annotations

import pytest

from tests.helpers.models.mimi import write_small_dia2
from tests.helpers.page.browser import press, running_app, wait_state, write_script

pytestmark = pytest.mark.long

sync_api = pytest.importorskip("playwright.sync_api")

# A Dia2 says the words of its script in order, whatever its weights: noise, half a second each.
TURNS = {
    "S1": "We walk along the river and talk.".split(),
    "S2": "It was a fine day for us.".split(),
}
SCRIPT = " ".join(f"[{speaker}] {' '.join(words)}" for speaker, words in TURNS.items())
FIRST, LAST = ("S1", 0), ("S2", len(TURNS["S2"]) - 1)
# Notes at every change what is shown of the words, which of them are marked as heard, and whether
# the take is still being made.
NOTE_WORDS = """() => {
  window.shown = [];
  const element = document.querySelector("#take .player-words");
  new MutationObserver(() => {
    const words = [...element.querySelectorAll("span")];
    const isHeard = (index) => words[index].matches(".is-heard");
    if (words.length) window.shown.push({
      speaker: element.querySelector("b").textContent,
      words: words.map((word) => word.textContent),
      heard: [...words.keys()].filter(isHeard),
      isMade: document.querySelector('#status [data-state="running"]') !== null,
    });
  }).observe(element, { attributes: true, childList: true, subtree: true });
}"""


@pytest.fixture(scope="module")
def dia2(tmp_path_factory):
    """The app with a small Dia2 that takes longer than its sound."""
    folder = tmp_path_factory.mktemp("dia2")
    given = {"DIA_MODEL": str(write_small_dia2(folder / "small")), "STEP_SECONDS": "0.12"}
    with running_app(folder, module="tests.browser.apps.patient_app", **given) as url:
        yield url


def heard_words(shown: list[dict]) -> list[tuple[str, int]]:
    """Speaker and place in the turn of each word that was marked, in the order of time."""
    assert all(len(each["heard"]) == 1 for each in shown), "one word is heard at a time"
    # Each once, however often it was drawn.
    return list(dict.fromkeys((each["speaker"], each["heard"][0]) for each in shown))


def wait_player(page, state: str) -> None:
    page.locator(f'#take [data-player="{state}"]').wait_for()


def test_words_are_shown_while_the_take_is_made_and_when_it_is_finished(open_window, dia2):
    page = open_window(at=dia2).open()
    write_script(page, SCRIPT)
    page.evaluate(NOTE_WORDS)
    press(page, "Generate")
    wait_player(page, "waiting")
    press(page, "Play now")
    wait_state(page, "done", "cut")
    wait_player(page, "over")
    shown = page.evaluate("window.shown")
    made = [each for each in shown if each["isMade"]]
    assert made, "no word was shown before the end"
    for each in made:
        assert each["words"] == TURNS[each["speaker"]][: len(each["words"])]
    partial = [each for each in made if each["words"] != TURNS[each["speaker"]]]
    assert partial, "no turn was shown before all of its words had begun"
    live = heard_words(made)
    assert live[0] == FIRST and len(live) > 2 and live == sorted(live)
    # Going on in the finished take, nothing is marked again.
    whole = heard_words(shown)
    assert whole == sorted(whole) and whole[-1] == LAST

    page.evaluate("window.shown = []")
    page.get_by_label("Playback speed").select_option("2")
    press(page, "Play")
    wait_player(page, "playing")
    wait_player(page, "over")
    again = page.evaluate("window.shown")
    assert all(each["words"] == TURNS[each["speaker"]] for each in again)
    whole = heard_words(again)
    assert whole[0] == FIRST and whole[-1] == LAST and whole == sorted(whole)
