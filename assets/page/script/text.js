// A text field of the page, for the examples, the repairs and the Undo button. Scripts that name the
// same field share it.

const fields = new Map(); // TextField by selector

export function textField(selector) {
  if (!fields.has(selector)) fields.set(selector, new TextField(selector));
  return fields.get(selector);
}

class TextField {
  #selector;
  // The texts that were replaced here, as {before, after}, the latest last.
  #replaced = [];

  constructor(selector) {
    this.#selector = selector;
  }

  // Opening an accordion creates its fields again.
  get area() {
    return document.querySelector(this.#selector);
  }

  get text() {
    return this.area?.value;
  }

  has(node) {
    return node === this.area;
  }

  // Screen readers read the element with the field.
  describe(element) {
    const area = this.area;
    if (!area) return;
    element.id ||= `${area.closest("[id]").id}-described`;
    area.setAttribute("aria-describedby", element.id);
  }

  replace(text) {
    const before = this.text;
    if (text === before) return;
    this.#write(text);
    this.#replaced.push({ before, after: this.text });
  }

  // Whether the text is unchanged since it was last replaced here.
  get canUndo() {
    return this.#replaced.length > 0 && this.#replaced.at(-1).after === this.text;
  }

  undo() {
    if (this.canUndo) this.#write(this.#replaced.pop().before);
  }

  // Writes like typing, so that Ctrl+Z undoes it and gradio gets an input event.
  #write(text) {
    this.insert(0, this.area.value.length, text);
    // On a touch screen, the keyboard would cover the page.
    if (window.matchMedia("(pointer: coarse)").matches) this.area.blur();
  }

  // Put a text in the place of the characters from start to end; the cursor is then after it.
  insert(start, end, text) {
    const { area } = this;
    area.focus({ preventScroll: true });
    area.setSelectionRange(start, end);
    // Although deprecated, the only way to add to the browser's undo history.
    if (!document.execCommand(text ? "insertText" : "delete", false, text)) {
      area.setRangeText(text, start, end, "end");
      area.dispatchEvent(new Event("input", { bubbles: true }));
    }
  }
}
