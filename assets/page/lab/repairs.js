// The findings below the scripts of a comparison. Their buttons send the finding to the server,
// which repairs the scripts.
export class Repairs {
  #trigger;

  constructor({ element, trigger }) {
    this.#trigger = trigger;
    element.addEventListener("click", ({ target }) => this.#press(target.closest("button.repair")));
  }

  #press(button) {
    if (button) this.#trigger("click", { code: button.dataset.code });
  }
}
