// The result, which is the server's own HTML: every pair with two players, and its pictures if the
// test was not blind.

const MAX_DECODED = 6; // clips that stay decoded, so that switching between them is quick
const AT_END = 0.99; // a slider so far right starts the clip from its beginning
const decoded = new Map(); // "comparison trial letter" -> AudioBuffer
const pictures = new Map(); // trial -> HTML

function sliderOf(button) {
  return button.parentElement.querySelector(".place");
}

export class Result {
  constructor(room) {
    this.room = room;
    this.player = room.player;
  }

  draw(html) {
    const node = document.createElement("div");
    node.className = "lab-result";
    node.innerHTML = html;
    this.room.append(node);
    for (const button of node.querySelectorAll(".hear")) {
      button.dataset.label = button.textContent;
      button.addEventListener("click", () => this.#toggle(button));
      const slider = sliderOf(button);
      slider.disabled = false;
      slider.addEventListener("change", () => this.#play(button));
    }
    this.#drawPictures(node);
  }

  async #drawPictures(node) {
    for (const place of node.querySelectorAll("[data-pictures]")) {
      const trial = place.dataset.pictures;
      if (!pictures.has(trial)) {
        // One after the other: each costs the server a spectrogram.
        // oxlint-disable-next-line no-await-in-loop
        const answer = await this.room.ask({ do: "pictures", trial });
        if (!answer || !place.isConnected) return;
        pictures.set(trial, answer.html);
      }
      place.innerHTML = pictures.get(trial);
    }
  }

  #toggle(button) {
    if (this.player.clip && this.player.clip.button === button) this.player.stop();
    else this.#play(button);
  }

  // From the slider's position; from the start if that is the end.
  async #play(button) {
    const buffer = await this.#bufferOf(button);
    if (!buffer || !button.isConnected) return;
    const part = Number(sliderOf(button).value);
    const clip = { button, buffer, stopped: (_, position) => this.#stopped(button, position / buffer.duration) };
    this.player.play(clip, part < AT_END ? part * buffer.duration : 0);
    button.textContent = "Stop";
  }

  async #bufferOf(button) {
    const { trial, letter } = button.dataset;
    const name = `${this.room.comparison.id} ${trial} ${letter}`;
    if (!decoded.has(name)) {
      const answer = await this.room.ask({ do: "clip", trial, letter });
      if (!answer) return null;
      decoded.set(name, await this.player.decode(answer.clip));
      if (decoded.size > MAX_DECODED) decoded.delete(decoded.keys().next().value);
    }
    return decoded.get(name);
  }

  // What changes while a clip plays.
  drawPlayer() {
    if (!this.player.clip) return;
    const slider = sliderOf(this.player.clip.button);
    if (!slider.matches(":active")) slider.value = this.player.fraction;
  }

  // The slider stays where the clip stopped, or returns from the end to the start.
  #stopped(button, part) {
    button.textContent = button.dataset.label;
    const slider = sliderOf(button);
    if (!slider.matches(":active")) slider.value = part > AT_END ? 0 : part;
    setTimeout(() => this.room.takeWaiting());
  }
}
