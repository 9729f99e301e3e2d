"""What an open page asks of a machine that also computes the sound."""

from __future__ import annotations

import pytest

from tests.helpers.page.browser import press, wait_state, write_script

sync_api = pytest.importorskip("playwright.sync_api")

SCRIPT = " ".join(
    f"[S{1 + i % 2}] We walk along the river and talk of the weather." for i in range(6)
)
COUNT_FRAMES = """window.frames = 0;
const request = window.requestAnimationFrame;
window.requestAnimationFrame = (callback) => {
  window.frames += 1;
  return request.call(window, callback);
};"""
# Asked once a second.
IS_AT_REST = """() => {
  const drawn = window.frames - (window.before ?? -100);
  window.before = window.frames;
  return drawn < 5;
}"""


def test_no_piece_of_a_running_take_is_asked_for_twice(open_window):
    page, asked = open_window().open(), []

    def note(request):
        body = request.post_data_json if request.url.endswith("/component_server/") else {}
        if body.get("fn_name") == "hear":
            asked.append(body["data"]["from"])

    page.on("request", note)
    write_script(page, SCRIPT)
    press(page, "Generate")
    wait_state(page, "done", "cut")
    assert len(set(asked)) > 1
    # The answer at the very end may have come before the run was over.
    assert len(asked) <= len(set(asked)) + 1


def test_a_page_at_rest_is_not_drawn_again_and_again(open_window):
    """gradio's own page asks for 60 animation frames a second."""
    watch = open_window(is_new=True)
    watch.context.add_init_script(COUNT_FRAMES)
    page = watch.open()
    page.wait_for_function(IS_AT_REST, polling=1000, timeout=60_000)
