// The remarks under the scripts of a comparison: a press on a repair names its finding, and the
// server repairs the scripts.
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
