"""Listening in a real chromium: the pair stays while others are made, and switching does not click.

Both are about what a person hears between the first press and the vote.
"""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import soundfile

from tests.helpers.models.checkpoints import write_small
from tests.helpers.page.browser import DESKTOP, press, running_app
from tests.helpers.page.lab_page import (
    SCRIPT,
    compare_tab,
    fill_in,
    hear,
    make_pairs,
    open_zip,
    vote,
    wait_until_ready,
    zip_comparison,
)

pytestmark = pytest.mark.long

sync_api = pytest.importorskip("playwright.sync_api")

PAIRS = 24
# So loud and so low that every cut within the wave is a step that no sample of its own comes near.
TONE_HZ, LEVEL, SECONDS = 60, 0.7, 6.0


@pytest.fixture(scope="module")
def patient(tmp_path_factory):
    """The app with a tiny model and a decoder that takes its time."""
    folder = tmp_path_factory.mktemp("patient")
    model = write_small(folder / "small", codec=True)
    given = {"DIA_MODEL": str(model)}
    with running_app(folder, module="tests.browser.apps.patient_app", **given) as url:
        yield url


def pairs_made(page) -> int:
    """How many pairs are made, as the room says; all of them where it says nothing of it."""
    found = re.search(r"\((\d+) made\)", page.locator(".lab-count").inner_text())
    return int(found[1]) if found else PAIRS


def test_a_pair_stays_until_it_is_voted_on_while_others_are_made(open_window, patient):
    page, fetched = compare_tab(open_window(DESKTOP, at=patient)), []
    page.on("request", lambda request: note_clip(fetched, request))
    fill_in(page, SCRIPT, max_tokens=320, seeds=PAIRS)
    press(page, "Generate pairs")
    for number in (1, 2):
        page.get_by_text(f"Pair {number} of {PAIRS}").wait_for()
        wait_until_ready(page)
        before = pairs_made(page)
        assert before < PAIRS, "the test needs pairs that are still being made"
        page.locator(".lab-note").fill("still here")
        page.locator(".lab-note").blur()
        hear(page, "A")
        page.wait_for_function(
            """(least) => {
              const text = document.querySelector(".lab-count").textContent;
              const found = text.match(/\\((\\d+) made\\)/);
              return !found || Number(found[1]) >= least;
            }""",
            arg=min(PAIRS, before + 5),
        )
        hear(page, "B")
        assert page.locator(".lab-note").input_value() == "still here"
        vote(page, "A")
        page.get_by_text(f"Pair {number + 1} of {PAIRS}").wait_for()
    wait_until_ready(page)
    assert len(set(fetched)) == 3, "each pair was fetched once, and no other came between"
    # Disabled where all pairs are made by now.
    page.evaluate("document.querySelector('#lab-stop').click()")
    page.wait_for_function("!document.querySelector('#lab-make').disabled")


def note_clip(fetched: list, request) -> None:
    if "component_server" in request.url and request.post_data:
        data = json.loads(request.post_data).get("data")
        if isinstance(data, dict) and data.get("do") == "clip":
            fetched.append(data["trial"])


# Everything that reaches the loudspeakers also goes through a tap in the audio thread, which notes
# the largest step from one sample to the next.
TAP = """() => {
  const code = `registerProcessor("tap", class extends AudioWorkletProcessor {
    constructor() {
      super();
      this.last = 0;
      this.step = 0;
      this.peak = 0;
      this.port.onmessage = () => this.port.postMessage([this.step, this.peak]);
    }
    process([input]) {
      for (const sample of input[0] || []) {
        this.step = Math.max(this.step, Math.abs(sample - this.last));
        this.peak = Math.max(this.peak, Math.abs(sample));
        this.last = sample;
      }
      return true;
    }
  });`;
  const module = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  const connect = AudioNode.prototype.connect;
  window.AudioContext = class extends AudioContext {
    constructor() {
      super();
      window.sound = this;
      this.bus = this.createGain();
      connect.call(this.bus, this.destination);
      window.tapped = this.audioWorklet.addModule(module).then(() => {
        const tap = new AudioWorkletNode(this, "tap");
        connect.call(this.bus, tap);
        connect.call(tap, this.destination);
        return tap;
      });
    }
  };
  AudioNode.prototype.connect = function (target, ...rest) {
    return connect.call(this, target === this.context.destination ? this.context.bus : target,
                        ...rest);
  };
}"""
TAPPED = """async () => {
  const tap = await window.tapped;
  return new Promise((resolve) => {
    tap.port.onmessage = (event) => resolve(event.data);
    tap.port.postMessage("");
  });
}"""


def tone(rate: int) -> np.ndarray:
    """int16 [n]: a sine that begins and ends at zero."""
    samples = np.sin(2 * np.pi * TONE_HZ * np.arange(int(SECONDS * rate)) / rate)
    return np.rint(LEVEL * 32767 * samples).astype(np.int16)


def test_stopping_a_clip_does_not_click(open_window, tmp_path):
    pairs = make_pairs(tmp_path, seeds=(1,))
    for name in pairs.plan.trials[0].clips:
        path = pairs.folder / "clips" / name
        rate = soundfile.info(path).samplerate
        soundfile.write(path, tone(rate), rate, subtype="PCM_16")
    watch = open_window(DESKTOP, is_new=True)
    watch.context.add_init_script(f"({TAP})()")
    page = compare_tab(watch)
    open_zip(page, zip_comparison(pairs, tmp_path / "zip"))
    page.evaluate("window.tapped.then(() => 1)")
    for key in "abab ba ":
        page.keyboard.press(key)
        page.wait_for_timeout(171)
    step, peak = page.evaluate(TAPPED)
    assert peak > 0.9 * LEVEL, "the tap hears what is played"
    assert step < 0.05, "a fade of 5 ms changes the wave by less than 0.01 a sample"
    # The browser's sound is off again when nothing plays.
    page.wait_for_function("sound.state === 'suspended'")
