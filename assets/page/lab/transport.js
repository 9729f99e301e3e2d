// The buttons and the seek bar below the clips. Both clips of a pair have the same length, so the
// bar reveals nothing about the sides.

import { make, makeButton, makeChoice } from "./dom.js";

export class Transport {
  #button;
  #all;
  #bar;
  #time;

  // `pair` plays: toggle(), playAll(), seek(seconds). `choices`: {repeat, keepPosition} of the room.
  constructor(pair, choices) {
    this.#button = makeButton("lab-pause", "Play", () => pair.toggle());
    const all = pair.letters.length > 2 ? "Play all three" : "Play both";
    this.#all = makeButton("lab-all", all, () => pair.playAll());
    this.#bar = make("input", "lab-position");
    Object.assign(this.#bar, { type: "range", min: 0, step: "any", value: 0, disabled: true });
    this.#bar.setAttribute("aria-label", "Position in the clip");
    this.#bar.addEventListener("change", () => pair.seek(Number(this.#bar.value)));
    this.#time = make("span", "lab-time");
    const repeat = (checked) => Object.assign(choices, { repeat: checked });
    const keep = (checked) => Object.assign(choices, { keepPosition: checked });
    this.repeat = makeChoice("checkbox", "lab-repeat", "Repeat", choices.repeat, repeat);
    this.keep = makeChoice(
      "checkbox", "lab-keep-position", "Keep the position when switching clips",
      choices.keepPosition, keep,
    );
    this.node = make("div", "lab-transport");
    this.node.append(this.#button, this.#all, this.#bar, this.#time);
    this.choices = make("div", "lab-choices");
    this.choices.append(this.repeat, this.keep);
  }

  toggleRepeat() {
    this.repeat.querySelector("input").click();
  }

  // `name`: the clip at hand; `length`: seconds, 0 while nothing can be played yet.
  draw({ name, position, length, isPlaying, isComplete }) {
    this.#button.textContent = isPlaying ? "Pause" : "Play";
    this.#button.disabled = !length;
    this.#all.disabled = !isComplete;
    this.#bar.disabled = !length;
    if (!length) return;
    if (this.#bar.max !== String(length)) this.#bar.max = length;
    // Not updated while the listener drags it.
    const isDragged = this.#bar.matches(":active");
    if (!isDragged) this.#bar.value = position;
    const shown = isDragged ? Number(this.#bar.value) : position;
    const time = `${shown.toFixed(1)} of ${length.toFixed(1)} s`;
    this.#time.textContent = `Clip ${name}: ${time}`;
    this.#bar.setAttribute("aria-valuetext", `${time} of clip ${name}`);
  }
}
