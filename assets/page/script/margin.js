// The margin of the script: a bar for each turn in its speaker's colour, with the speaker's name where
// the turn begins. The turn that is heard is marked.

import { make } from "../dom.js";
import { Mirror } from "./mirror.js";
import { turnsOf } from "./turns.js";

const LEAST_NAME_HEIGHT = 11; // pixels

export class Margin {
  #field;
  #mirror = new Mirror();
  #node = make("div", "script-margin");
  #bars = make("div", "script-bars");
  #heard = null; // the turn that is heard
  #drawn = ""; // the text and the width that are drawn
  #frame = 0;
  #resized = new ResizeObserver(() => this.update());
  #observed = null;

  constructor(field) {
    this.#field = field;
    // The tags in the script say the same.
    this.#node.setAttribute("aria-hidden", "true");
    this.#node.append(this.#bars);
  }

  // Once per frame, however many changes there are.
  update() {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#draw());
  }

  // index: of the turn that is heard, from 0; null for none.
  markTurn(index) {
    this.#bars.children[this.#heard]?.classList.remove("is-heard");
    this.#bars.children[index]?.classList.add("is-heard");
    this.#heard = index;
  }

  // With the text, and as high as its field.
  scroll() {
    const { area } = this.#field;
    const box = area.getBoundingClientRect();
    const parent = this.#node.offsetParent.getBoundingClientRect();
    Object.assign(this.#node.style, {
      top: `${box.top - parent.top + area.clientTop}px`,
      left: `${box.left - parent.left + area.clientLeft}px`,
      height: `${area.clientHeight}px`,
    });
    this.#bars.style.transform = `translateY(${-area.scrollTop}px)`;
  }

  #draw() {
    const { area } = this.#field;
    // gradio may create the field after this.
    if (!area) this.update();
    else if (area !== this.#observed) this.#attach(area);
    // It has no width while another tab is shown.
    if (!area?.clientWidth) return;
    const drawn = `${area.clientWidth} ${area.value}`;
    if (drawn !== this.#drawn) {
      this.#drawn = drawn;
      this.#bars.replaceChildren(...this.#makeBars(area));
      this.markTurn(this.#heard);
    }
    this.scroll();
  }

  #attach(area) {
    this.#observed = area;
    this.#resized.disconnect();
    this.#resized.observe(area);
    // Outside of the label, of whose text the field's name is made.
    area.closest("label").after(this.#node);
  }

  #makeBars(area) {
    const turns = turnsOf(area.value);
    const { found, lineHeight, bottom } = this.#mirror.measure(area, turns.map(({ start }) => start));
    // Turns that begin in the same line share its height.
    const inLine = new Map();
    for (const { top } of found) inLine.set(top, (inLine.get(top) ?? 0) + 1);
    let place = 0;
    const tops = found.map(({ top }, index) => {
      place = found[index - 1]?.top === top ? place + 1 : 0;
      return top + (place * lineHeight) / inLine.get(top);
    });
    return turns.map(({ speaker }, index) => {
      const height = (tops[index + 1] ?? bottom) - tops[index];
      const nameHeight = lineHeight / inLine.get(found[index].top);
      const name = speaker && nameHeight >= LEAST_NAME_HEIGHT ? `S${speaker}` : "";
      const bar = make("div", `script-bar is-s${speaker}`, name);
      bar.style.top = `${tops[index]}px`;
      bar.style.height = `${height}px`;
      bar.style.lineHeight = `${nameHeight}px`;
      return bar;
    });
  }
}
