// Writes examples and the server's repairs into the script. gradio's value is the repair
// {before, after, number}, empty until there is one.
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
    // A script that was edited meanwhile is not replaced.
    if (after !== undefined && before === scriptText()) replaceScript(after);
  }
}
