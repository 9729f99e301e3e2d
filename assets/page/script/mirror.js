// Where characters of a text field are: a hidden copy of its text, with the same width and font.

import { make } from "../dom.js";

const COPIED = ["font", "letterSpacing", "lineHeight", "padding", "tabSize", "textIndent"];

export class Mirror {
  #node = make("div", "script-mirror");

  constructor() {
    this.#node.setAttribute("aria-hidden", "true");
  }

  // {left, top} of the characters at these places, in ascending order, the height of a line and that
  // of the text, in pixels from the field's upper left corner while it is not scrolled.
  measure(area, places) {
    const style = getComputedStyle(area);
    for (const name of COPIED) this.#node.style[name] = style[name];
    this.#node.style.width = `${area.clientWidth}px`;
    const text = area.value;
    // With a character in it: an empty one would stay on the line before a soft wrap.
    const marks = places.map((place) => make("span", "", text[place]));
    const pieces = places.flatMap((place, index) => {
      const done = index ? places[index - 1] + 1 : 0;
      return [text.slice(done, place), marks[index]];
    });
    const rest = text.slice(places.length ? places.at(-1) + 1 : 0);
    // A last line that is empty has a height as well.
    this.#node.replaceChildren(...pieces, `${rest}\u200b`);
    area.closest("label").after(this.#node);
    const lineHeight = parseFloat(style.lineHeight) || 1.5 * parseFloat(style.fontSize);
    const found = marks.map((mark) => ({ left: mark.offsetLeft, top: mark.offsetTop }));
    const bottom = this.#node.offsetHeight - parseFloat(style.paddingBottom);
    this.#node.remove();
    return { found, lineHeight, bottom };
  }
}
