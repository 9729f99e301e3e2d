// The script's text field, for the examples, the repairs and the Undo button.

// The texts that were replaced here, as {before, after}, the latest last.
const replaced = [];

function field() {
  return document.querySelector("#script textarea");
}

// Writes like typing, so that Ctrl+Z undoes it and gradio gets an input event.
function write(text) {
  const area = field();
  area.focus({ preventScroll: true });
  area.select();
  // Although deprecated, the only way to add to the browser's undo history.
  if (!document.execCommand(text ? "insertText" : "delete", false, text)) {
    area.value = text;
    area.dispatchEvent(new Event("input", { bubbles: true }));
  }
  // On a touch screen, the keyboard would cover the page.
  if (window.matchMedia("(pointer: coarse)").matches) area.blur();
}

export function scriptText() {
  return field().value;
}

export function replaceScript(text) {
  const before = scriptText();
  if (text === before) return;
  write(text);
  replaced.push({ before, after: scriptText() });
}

// Whether the script is unchanged since it was last replaced here.
export function canUndo() {
  return replaced.length > 0 && replaced.at(-1).after === field()?.value;
}

export function undo() {
  if (canUndo()) write(replaced.pop().before);
}
