// The sounds of a list: each row has a button that plays its sound, and stops it.

export class Toggle {
  #buttonOf;
  #addressOf;
  #playing = null; // {id, audio}; without audio while the server is asked for its address

  // buttonOf(id): the button of a row, if it is there; addressOf(id): the address of its sound, null
  // if the server has none.
  constructor(buttonOf, addressOf) {
    this.#buttonOf = buttonOf;
    this.#addressOf = addressOf;
  }

  // The row that plays, or is about to.
  get id() {
    return this.#playing?.id;
  }

  stop() {
    if (!this.#playing) return;
    const { audio, id } = this.#playing;
    this.#playing = null;
    if (audio) audio.pause();
    this.#show(id, "Play");
  }

  async press(id) {
    const again = this.id === id;
    this.stop();
    if (again) return;
    const mine = { id, audio: null };
    this.#playing = mine;
    const address = await this.#addressOf(id);
    if (this.#playing !== mine) return; // pressed again meanwhile, or another row
    if (!address) {
      this.#playing = null;
      return;
    }
    mine.audio = new Audio(address);
    // At its end, and when another sound on the page starts. Its own event may come after the next
    // one has started.
    mine.audio.addEventListener("pause", () => {
      if (this.#playing === mine) this.stop();
    });
    this.#show(id, "Stop");
    try {
      await mine.audio.play();
    } catch (error) {
      if (error.name !== "AbortError") throw error; // it was stopped before it began
    }
  }

  #show(id, text) {
    const button = this.#buttonOf(id);
    if (!button) return;
    button.textContent = text;
    const label = button.getAttribute("aria-label");
    if (label) button.setAttribute("aria-label", label.replace(/^\w+/, text));
  }
}
