// The volume check before the first pair: the beginnings of both clips, at the level of the test.
// It treats both sides alike, and does not count as listening.

import { make, makeButton, makeGroup } from "../dom.js";

const SECONDS = 1.5; // of each clip
const LABEL = "Play a short sample";
const ADVICE =
  "Set your volume first: play a short sample, adjust it until it is comfortable, and leave it there "
  + "for the whole test. Headphones reveal smaller differences than loudspeakers.";

export class VolumeCheck {
  #player;
  #button;
  #sample = null; // a clip of the player's, when the clips of the pair have come

  constructor(player) {
    this.#player = player;
    this.#button = makeButton("lab-sample", LABEL, () => this.#toggle());
    this.node = makeGroup("lab-volume", "Volume check", make("p", "", ADVICE), this.#button);
    this.drawPlayer();
  }

  // The clips of the pair have come.
  offer(buffers) {
    this.#sample = { buffer: this.#player.excerpt(buffers, SECONDS), stopped: () => {} };
    this.drawPlayer();
  }

  #toggle() {
    if (this.#player.clip === this.#sample) {
      this.#player.stop();
      this.drawPlayer();
    } else {
      this.#player.play(this.#sample);
    }
  }

  drawPlayer() {
    this.#button.disabled = !this.#sample;
    const isPlaying = this.#sample && this.#player.clip === this.#sample;
    this.#button.textContent = isPlaying ? "Stop the sample" : LABEL;
  }
}
