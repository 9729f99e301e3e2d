// Writes into the script: an example that is pressed, and a repair that the server made. gradio's
// value is that repair: {before, after, number}, empty until there is one.
import { replaceScript, scriptText } from "./text.js";

export class ScriptWriter {
  #props;

  constructor({ element, props, watch }) {
    this.#props = props;
    element.addEventListener("click", ({ target }) => {
      const button = target.closest("[data-script]");
      if (button) replaceScript(button.dataset.script);
    });
    watch("value", () => this.#repair());
  }

  #repair() {
    const { before, after } = this.#props.value || {};
    // What was typed meanwhile stays.
    if (after !== undefined && before === scriptText()) replaceScript(after);
  }
}
