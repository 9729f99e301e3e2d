// The buttons and the seek bar below the clips. All clips of a trial have the same length, so the
// bar reveals nothing about the sides.

import { make, makeButton, makeChoice, makeGroup } from "../dom.js";

const LONG_SECONDS = 8; // from which on a part of a clip can be chosen

export class Transport {
  #clips;
  #button;
  #all;
  #bar;
  #time;
  #region;
  #whole;

  // `clips`: a ClipSet.
  constructor(clips) {
    this.#clips = clips;
    this.#button = makeButton("lab-pause", "Play", () => clips.toggle());
    const all = { 1: "From the start", 2: "Play both", 3: "Play all three" }[clips.letters.length];
    this.#all = makeButton("lab-all", all ?? "Play all", () => clips.playAll());
    this.#bar = make("input", "lab-position");
    Object.assign(this.#bar, { type: "range", min: 0, step: "any", value: 0, disabled: true });
    this.#bar.setAttribute("aria-label", "Position in the clip");
    this.#bar.addEventListener("change", () => clips.seek(Number(this.#bar.value)));
    this.#time = make("span", "lab-time");
    const { choices } = clips;
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
    this.choices.append(this.repeat, ...(clips.letters.length > 1 ? [this.keep] : []), this.#makeRegion());
  }

  #makeRegion() {
    const clips = this.#clips;
    this.#whole = makeButton("lab-whole", "Whole clip", () => clips.clearRegion());
    this.#region = makeGroup(
      "lab-region", "Part of the clip",
      makeButton("lab-from", "From here", () => clips.startRegion()),
      makeButton("lab-to", "To here", () => clips.endRegion()),
      this.#whole,
    );
    this.#region.hidden = true;
    return this.#region;
  }

  toggleRepeat() {
    this.repeat.querySelector("input").click();
  }

  // `name`: of the clip at hand.
  draw(name) {
    const clips = this.#clips;
    const { length, region } = clips;
    this.#button.textContent = clips.playing ? "Pause" : "Play";
    this.#button.disabled = !length;
    this.#all.disabled = !clips.isComplete;
    this.#bar.disabled = !length;
    this.#region.hidden = length < LONG_SECONDS;
    this.#whole.disabled = !region;
    if (!length) return;
    if (this.#bar.max !== String(length)) this.#bar.max = length;
    // Not updated while the listener drags it.
    const isDragged = this.#bar.matches(":active");
    const { position } = clips.position;
    if (!isDragged) this.#bar.value = position;
    const shown = isDragged ? Number(this.#bar.value) : position;
    const part = region ? `, part ${region[0].toFixed(1)} to ${region[1].toFixed(1)} s` : "";
    const time = `${shown.toFixed(1)} of ${length.toFixed(1)} s`;
    this.#time.textContent = `Clip ${name}: ${time}${part}`;
    this.#bar.setAttribute("aria-valuetext", `${time} of clip ${name}${part}`);
  }
}
