// Help with writing a script: suggestions, a margin with the speakers, and two buttons. gradio's
// value: {sounds} that the chosen model makes, and {text}, the script's, which changes with it.

import { Completion } from "./completion.js";
import { Margin } from "./margin.js";
import { textField } from "./text.js";
import { addTurn, swapSpeakers } from "./turns.js";

const TYPED = /^(insert(Composition)?Text|deleteContent)/;

export class ScriptHelp {
  #field;
  #margin;
  #completion;
  #hasCursor = false; // whether somebody was in the field

  // field: the selector of the script's field.
  constructor({ element, props, watch, field }) {
    this.#field = textField(field);
    this.#margin = new Margin(this.#field);
    const status = element.querySelector("[role=status]");
    this.#completion = new Completion(this.#field, status, () => props.value?.sounds ?? []);
    element.querySelector(".add-turn").addEventListener("click", () => this.#addTurn());
    element.querySelector(".swap-speakers").addEventListener("click", () => this.#swap());
    this.#follow("input", (event) => this.#typed(event));
    this.#follow("focusin", () => { this.#hasCursor = true; });
    this.#follow("focusout", () => this.#completion.close());
    this.#follow("scroll", () => this.#margin.scroll());
    // Before the page's own keys.
    this.#follow("keydown", (event) => this.#press(event));
    document.addEventListener("selectionchange", () => this.#completion.followCursor());
    for (const name of ["scroll", "resize"]) {
      window.addEventListener(name, () => this.#completion.place(), { passive: true });
    }
    document.addEventListener("dia-turn", ({ detail }) => this.#markHeard(detail));
    watch("value", () => this.#margin.update());
    this.#margin.update();
  }

  #follow(name, listener) {
    document.addEventListener(name, (event) => {
      if (this.#field.has(event.target)) listener(event);
    }, { capture: true });
  }

  #typed({ inputType, isComposing }) {
    this.#margin.update();
    if (TYPED.test(inputType) && !isComposing) this.#completion.update();
    else this.#completion.close();
  }

  #press(event) {
    const { ctrlKey, metaKey, altKey, isComposing } = event;
    if (ctrlKey || metaKey || altKey || isComposing) return;
    if (!this.#completion.press(event)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  // Only while the field has the words of the take that is heard.
  #markHeard({ turn, script }) {
    const isSame = this.#field.text?.trim() === script.trim();
    this.#margin.markTurn(isSame ? turn : null);
  }

  // After the turn that the cursor is in.
  #addTurn() {
    const { area, text } = this.#field;
    const change = addTurn(text, this.#hasCursor ? area.selectionStart : text.length);
    this.#field.insert(change.start, change.end, change.text);
    area.setSelectionRange(change.cursor, change.cursor);
  }

  // In the selection, or everywhere.
  #swap() {
    const { area, text } = this.#field;
    const { selectionStart: start, selectionEnd: end } = area;
    const swapped = start < end
      ? text.slice(0, start) + swapSpeakers(text.slice(start, end)) + text.slice(end)
      : swapSpeakers(text);
    this.#field.replace(swapped);
    area.setSelectionRange(start, end);
  }
}
