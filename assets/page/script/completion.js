// Suggestions in the script's field: speakers after "[", sounds and pauses after "(". Arrow keys and
// Enter or Tab, or a click, choose one; Escape closes the list.

import { make } from "../dom.js";
import { Mirror } from "./mirror.js";
import { nextSpeaker } from "./turns.js";

const BEGUN = /(?:\[S?[12]?|\([a-z \d.]{0,20})$/i;
// The rest of a word in brackets in which the cursor is.
const REST = /^[a-z \d.]{0,20}[)\]]/i;
const PAUSES = ["pause", "pause 1.5"];
const LIST = "script-suggestions";
// Of the field while the list is open: otherwise it is a plain text field.
const OPEN_STATE = {
  "role": "combobox",
  "aria-autocomplete": "list",
  "aria-controls": LIST,
  "aria-expanded": "true",
  "aria-haspopup": "listbox",
};

export class Completion {
  #field;
  #status;
  #getSounds;
  #mirror = new Mirror();
  #list = make("ul", "script-suggestions");
  #offered = [];
  #start = 0; // where what was typed of a suggestion begins
  #end = 0; // the cursor
  #active = 0;
  #dismissed = null; // the start of a list that was closed with Escape

  // status: an element that screen readers announce. getSounds(): the sounds that the chosen model
  // makes, without brackets.
  constructor(field, status, getSounds) {
    this.#field = field;
    this.#status = status;
    this.#getSounds = getSounds;
    Object.assign(this.#list, { id: LIST, role: "listbox", ariaLabel: "Suggestions" });
    // Shown above everything, so that no card cuts it off.
    this.#list.popover = "manual";
    // In chromium, a list that scrolls could have the focus.
    this.#list.tabIndex = -1;
    // A press must not take the focus from the field, which would close the list.
    this.#list.addEventListener("mousedown", (event) => event.preventDefault());
    this.#list.addEventListener("click", ({ target }) => {
      const index = [...this.#list.children].indexOf(target.closest("li"));
      if (index >= 0) this.#choose(index);
    });
  }

  close() {
    if (!this.#isOpen) return;
    this.#offered = [];
    this.#list.remove();
    this.#status.textContent = "";
    const { area } = this.#field;
    for (const name of [...Object.keys(OPEN_STATE), "aria-activedescendant"]) {
      area?.removeAttribute(name);
    }
  }

  // After a change of the text by typing.
  update() {
    const { area } = this.#field;
    const before = area.value.slice(0, area.selectionStart);
    const [begun] = before.match(BEGUN) ?? [];
    const offered = begun ? this.#getSuggestions(begun, before) : [];
    const start = before.length - (begun?.length ?? 0);
    if (start !== this.#dismissed) this.#dismissed = null;
    if (!offered.length || this.#dismissed !== null) {
      this.close();
      return;
    }
    this.#open(offered, start, before.length);
  }

  // Close when the cursor moved away.
  followCursor() {
    const { area } = this.#field;
    if (this.#isOpen && area?.selectionEnd !== this.#end) this.close();
  }

  place() {
    if (!this.#isOpen) return;
    const { area } = this.#field;
    const { found: [{ left, top }], lineHeight } = this.#mirror.measure(area, [this.#start]);
    const box = area.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.#list;
    const { clientWidth, clientHeight } = document.documentElement;
    const line = box.top + area.clientTop + top - area.scrollTop;
    const isBelow = line + lineHeight + height <= clientHeight || line < height;
    const x = Math.max(4, Math.min(box.left + left, clientWidth - width - 4));
    this.#list.style.left = `${x}px`;
    this.#list.style.top = `${isBelow ? line + lineHeight : line - height}px`;
  }

  // Whether the list used a key.
  press({ key, shiftKey }) {
    if (!this.#isOpen || shiftKey) return false;
    const count = this.#offered.length;
    if (key === "ArrowDown") this.#mark((this.#active + 1) % count);
    else if (key === "ArrowUp") this.#mark((this.#active + count - 1) % count);
    else if (key === "Enter" || key === "Tab") this.#choose(this.#active);
    else if (key === "Escape") {
      this.#dismissed = this.#start;
      this.close();
    } else return false;
    return true;
  }

  get #isOpen() {
    return this.#offered.length > 0;
  }

  #getSuggestions(begun, before) {
    const next = nextSpeaker(before);
    const all = begun.startsWith("[")
      ? [`[S${next}]`, `[S${3 - next}]`]
      : [...this.#getSounds(), ...PAUSES].map((sound) => `(${sound})`);
    return all.filter((one) => one.toLowerCase().startsWith(begun.toLowerCase()));
  }

  #open(offered, start, end) {
    this.#offered = offered;
    this.#start = start;
    this.#end = end;
    this.#list.replaceChildren(...offered.map((text, index) => {
      const option = make("li", "", text);
      Object.assign(option, { id: `${LIST}-${index}`, role: "option" });
      return option;
    }));
    const { area } = this.#field;
    // Outside of the label, of whose text the field's name is made.
    area.closest("label").after(this.#list);
    this.#list.showPopover();
    for (const [name, value] of Object.entries(OPEN_STATE)) area.setAttribute(name, value);
    const count = offered.length === 1 ? "1 suggestion" : `${offered.length} suggestions`;
    this.#status.textContent = `${count}: arrow keys and Enter choose, Escape closes`;
    this.place();
    this.#mark(0);
  }

  #mark(index) {
    this.#active = index;
    [...this.#list.children].forEach((option, at) => { option.ariaSelected = at === index; });
    const option = this.#list.children[index];
    // Not scrollIntoView, which would move the page as well.
    const { offsetTop, offsetHeight } = option;
    const { scrollTop, clientHeight } = this.#list;
    if (offsetTop < scrollTop) this.#list.scrollTop = offsetTop - 4;
    else if (offsetTop + offsetHeight > scrollTop + clientHeight) {
      this.#list.scrollTop = offsetTop + offsetHeight - clientHeight + 4;
    }
    this.#field.area.setAttribute("aria-activedescendant", option.id);
  }

  #choose(index) {
    const text = this.#offered[index], start = this.#start;
    const after = this.#field.text.slice(this.#end);
    const [rest] = after.match(REST) ?? [""];
    const end = this.#end + rest.length;
    this.close();
    const next = after.slice(rest.length);
    this.#field.insert(start, end, /^[\s.,;:!?]/.test(next) ? text : `${text} `);
  }
}
