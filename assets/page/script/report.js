// The findings below a script. Their buttons send the finding to the server, which repairs the
// script; Undo reverts the last example or repair.
import { textField } from "./text.js";

export class Report {
  #element;
  #field;

  // field: the selector of the script's field.
  constructor({ element, trigger, watch, field }) {
    this.#element = element;
    this.#field = textField(field);
    element.addEventListener("click", ({ target }) => {
      const button = target.closest("button.repair");
      if (button) {
        trigger("click", { code: button.dataset.code, index: Number(button.dataset.index) });
      } else if (target.closest("button.undo")) this.#field.undo();
    });
    this.#followTyping();
    watch("value", () => this.#show());
    this.#show();
  }

  // Ends when the accordion around this component is closed, which removes it.
  #followTyping() {
    const removed = new AbortController();
    document.addEventListener("input", ({ target }) => {
      if (!this.#element.isConnected) removed.abort();
      // After `replace`, which writes the text before it notes what was replaced.
      else if (this.#field.has(target)) queueMicrotask(() => this.#show());
    }, { signal: removed.signal });
  }

  #show() {
    // gradio's fields have no description of their own.
    const findings = this.#element.querySelector(".findings");
    if (findings) this.#field.describe(findings);
    this.#element.dataset.undo = this.#field.canUndo;
  }
}
