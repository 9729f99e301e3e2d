"""What an open page asks of a machine that also computes the sound."""

from __future__ import annotations

import pytest

sync_api = pytest.importorskip("playwright.sync_api")

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


def test_a_page_at_rest_is_not_drawn_again_and_again(open_window):
    """gradio's own page asks for 60 animation frames a second."""
    watch = open_window(is_new=True)
    watch.context.add_init_script(COUNT_FRAMES)
    page = watch.open()
    page.wait_for_function(IS_AT_REST, polling=1000, timeout=60_000)
