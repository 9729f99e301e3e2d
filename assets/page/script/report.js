// The findings below the script. Their buttons send the finding to the server, which repairs the
// script; Undo reverts the last example or repair.
import { canUndo, undo } from "./text.js";

export class Report {
  #element;

  constructor({ element, trigger, watch }) {
    this.#element = element;
    element.addEventListener("click", ({ target }) => {
      const button = target.closest("button.repair");
      if (button) {
        trigger("click", { code: button.dataset.code, index: Number(button.dataset.index) });
      } else if (target.closest("button.undo")) undo();
    });
    document.addEventListener("input", ({ target }) => {
      if (target.closest("#script")) this.#show();
    });
    watch("value", () => this.#show());
    this.#show();
  }

  #show() {
    this.#element.dataset.undo = canUndo();
  }
}
