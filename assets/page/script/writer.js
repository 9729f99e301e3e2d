// Writes examples and the server's repairs into the field of a script. gradio's value is the repair
// {before, after, number}, empty until there is one.
import { textField } from "./text.js";

export class ScriptWriter {
  #props;
  #field;

  // field: the selector of the script's field.
  constructor({ element, props, watch, field }) {
    this.#props = props;
    this.#field = textField(field);
    element.addEventListener("click", ({ target }) => {
      const button = target.closest("[data-script]");
      if (button) this.#field.replace(button.dataset.script);
    });
    watch("value", () => this.#repair());
  }

  #repair() {
    const { before, after } = this.#props.value || {};
    // A text that was edited meanwhile is not replaced.
    if (after !== undefined && before === this.#field.text) this.#field.replace(after);
  }
}
