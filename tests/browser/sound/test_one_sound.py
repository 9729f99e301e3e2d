"""Only one thing plays at a time on the whole page, in a real chromium."""

from __future__ import annotations

import pytest

from tests.helpers.page.browser import press, unfold, wait_state, write_script

pytestmark = pytest.mark.long

sync_api = pytest.importorskip("playwright.sync_api")

# Seconds of speech, so that it still plays when something else is started.
LONG = " ".join(
    f"[S{1 + i % 2}] We walk along the river and talk of the weather." for i in range(6)
)


def test_an_earlier_take_and_the_player_take_turns(open_window):
    page = open_window().open()
    write_script(page, LONG, max_tokens=1024)
    press(page, "Generate")
    wait_state(page, "done", "cut")
    player = page.locator("#take")
    unfold(page, "Earlier takes")
    earlier = page.locator(".earlier li button").first

    player.get_by_label("Pause", exact=True).wait_for()
    earlier.click()
    player.get_by_label("Play", exact=True).wait_for()
    sync_api.expect(earlier).to_have_text("Stop")

    player.get_by_label("Play", exact=True).click()
    player.get_by_label("Pause", exact=True).wait_for()
    sync_api.expect(earlier).to_have_text("Play")


def test_an_earlier_take_pressed_twice_at_once_is_silent(open_window):
    page = open_window().open()
    page.evaluate(
        """() => {
            window.played = [];
            const play = HTMLMediaElement.prototype.play;
            HTMLMediaElement.prototype.play = function () {
                window.played.push(this);
                return play.call(this);
            };
        }"""
    )
    write_script(page, "[S1] Hello there.")
    press(page, "Generate")
    wait_state(page, "done", "cut")
    unfold(page, "Earlier takes")
    earlier = page.locator(".earlier li button").first
    earlier.evaluate("button => { button.click(); button.click(); }")
    with page.expect_response("**/component_server**"):
        earlier.evaluate("button => { button.click(); button.click(); button.click(); }")
    sync_api.expect(earlier).to_have_text("Stop")
    sync_api.expect(earlier).to_have_text("Play", timeout=20_000)  # at its end
    assert page.evaluate("window.played.length") == 1, "only the last press plays it"
    # Stopped in the moment in which it starts.
    earlier.evaluate(
        """button => new Promise(resolve => {
            new MutationObserver((_, observer) => {
                observer.disconnect();
                button.click();
                resolve();
            }).observe(button, {childList: true, characterData: true, subtree: true});
            button.click();
        })"""
    )
    sync_api.expect(earlier).to_have_text("Play")
    assert page.evaluate("window.played.every(audio => audio.paused)")
