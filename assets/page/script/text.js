// The script's text field, for the examples, the repairs and the Undo button.

// The texts that were replaced here, as {before, after}, the latest last.
const replaced = [];

function field() {
  return document.querySelector("#script textarea");
}

// As typing does it: the browser notes it for Ctrl+Z, and the page hears of it.
function write(text) {
  const area = field();
  area.focus({ preventScroll: true });
  area.select();
  // There is no other way into the browser's list of what can be undone.
  if (!document.execCommand(text ? "insertText" : "delete", false, text)) {
    area.value = text;
    area.dispatchEvent(new Event("input", { bubbles: true }));
  }
  // Where there is no keyboard, the one on the screen would cover the page.
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

// Whether the script is as it was last replaced here: nothing was typed since.
export function canUndo() {
  return replaced.length > 0 && replaced.at(-1).after === field()?.value;
}

export function undo() {
  if (canUndo()) write(replaced.pop().before);
}
