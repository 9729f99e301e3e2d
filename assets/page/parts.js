// The parts of a long script: a list, each to play, to make again, or to change and make again.
// gradio starts it with: element, props.value ({key, parts, made, running}), server.parts(question),
// trigger, watch. While the whole plays, the part that is heard is marked.

import { make, makeButton, updateRows } from "./dom.js";
import { Toggle } from "./toggle.js";

const STATES = { waiting: "waiting", running: "being made", stopped: "stopped", good: "", faulty: "" };

export class Parts {
  #element;
  #props;
  #server;
  #trigger;
  #list;
  #problem;
  #sounds = new Toggle((index) => this.#button(index), (index) => this.#addressOf(index));
  #edited = null; // the part whose words are being changed

  constructor({ element, props, server, trigger, watch }) {
    this.#element = element;
    this.#props = props;
    this.#server = server;
    this.#trigger = trigger;
    this.#list = element.querySelector("ol");
    this.#problem = element.querySelector(".parts-problem");
    element.querySelector(".parts-resume").addEventListener("click", () =>
      this.#press({ do: "resume" }));
    for (const button of element.querySelectorAll("[data-get]"))
      button.addEventListener("click", () => this.#download(button.dataset.get));
    watch("value", () => this.#draw());
    this.#draw();
    // The player writes where it is on its element.
    const player = document.querySelector("#take");
    new MutationObserver((changes) => this.#mark(changes.at(-1).target))
      .observe(player, { attributes: true, attributeFilter: ["data-position"], subtree: true });
  }

  // Mark the part that is heard in the whole.
  #mark({ dataset }) {
    const position = Number(dataset.position);
    const { starts = [] } = this.#value;
    const heard = position > 0 ? starts.findLastIndex((start) => start <= position) : -1;
    [...this.#list.children].forEach((row, index) => {
      const isHeard = index === heard;
      if (isHeard && !row.classList.contains("is-heard")) this.#reveal(row);
      row.classList.toggle("is-heard", isHeard);
    });
  }

  // In the list alone: the page does not move.
  #reveal(row) {
    const { offsetTop: top, offsetHeight: height } = row;
    const { scrollTop, clientHeight } = this.#list;
    if (top < scrollTop || top + height > scrollTop + clientHeight) this.#list.scrollTop = top;
  }

  get #value() {
    return this.#props.value || { parts: [] };
  }

  #press(what) {
    this.#problem.textContent = "";
    this.#trigger("click", what);
  }

  async #ask(question) {
    const { key } = this.#value;
    const answer = await this.#server.parts({ key, format: window.diaFiles.format, ...question });
    this.#problem.textContent = (answer && answer.error) || "";
    return answer && !answer.error ? answer : null;
  }

  async #download(name) {
    const answer = await this.#ask({ do: name });
    if (answer) window.diaFiles.download(answer.file);
  }

  #draw() {
    const { parts, made, running } = this.#value;
    if (!parts.length) {
      this.#list.replaceChildren();
      this.#edited = null;
      return;
    }
    const isComplete = made === parts.length;
    this.#element.querySelector(".parts-count").textContent = `${made} of ${parts.length} made`;
    this.#element.querySelector(".parts-resume").hidden = running || isComplete;
    this.#element.querySelector(".parts-files").hidden = running || !isComplete;
    // In place: words that are being changed are not lost.
    updateRows(this.#list, parts, (index) => this.#row(index),
      (row, part, index) => this.#show(row, part, index, running));
  }

  #row(index) {
    const row = make("li", "part");
    const buttons = make("div", "part-buttons");
    const acts = {
      play: ["Play", () => this.#sounds.press(index)],
      again: ["Make again", () => this.#press({ do: "again", index })],
      edit: ["Edit", () => this.#edit(row, index)],
    };
    for (const [act, [text, press]] of Object.entries(acts)) {
      const button = makeButton(`part-${act}`, text, press);
      button.setAttribute("aria-label", `${text}, part ${index + 1}`);
      buttons.append(button);
    }
    row.append(make("p", "part-text"), make("p", "part-state"), buttons);
    return row;
  }

  // Scripts come from people, so they are set as text, never as HTML.
  #show(row, part, index, running) {
    const isMade = part.state === "good" || part.state === "faulty";
    row.dataset.state = part.state;
    row.querySelector(".part-text").textContent = part.text;
    const seconds = part.seconds ? `${part.seconds.toFixed(1)} s` : "";
    const fault = part.state === "faulty" ? `check: ${part.verdict}` : "";
    row.querySelector(".part-state").textContent = [seconds, STATES[part.state], fault]
      .filter(Boolean).join(" · ");
    row.querySelector(".part-play").disabled = !isMade && part.state !== "stopped";
    row.querySelector(".part-again").disabled = running || !isMade;
    row.querySelector(".part-edit").disabled = running;
    if (this.#sounds.id === index && row.dataset.take !== String(part.take)) this.#sounds.stop();
    row.dataset.take = part.take;
  }

  #button(index) {
    return this.#list.children[index]?.querySelector(".part-play");
  }

  async #addressOf(index) {
    const { take } = this.#value.parts[index];
    return (await this.#ask({ do: "hear", index, take }))?.sound;
  }

  // A field in the place of the words: Ctrl+Enter or the button makes the part again with them.
  #edit(row, index) {
    if (this.#edited === index) return this.#close(row, row.querySelector(".part-edit"));
    const field = make("textarea", "part-field");
    field.value = this.#value.parts[index].text;
    field.rows = 3;
    field.setAttribute("aria-label", `Words of part ${index + 1}: Control+Enter makes it again`);
    const send = () => {
      const words = field.value;
      this.#close(row, row.querySelector(".part-edit"));
      row.querySelector(".part-text").textContent = words;
      this.#press({ do: "again", index, words });
    };
    const save = makeButton("part-save", "Make with these words", send);
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.stopPropagation(); // Anywhere else it presses Generate.
        send();
      }
      if (event.key === "Escape") this.#close(row, row.querySelector(".part-edit"));
    });
    if (this.#edited !== null) this.#close(this.#list.children[this.#edited]);
    this.#edited = index;
    row.querySelector(".part-text").after(field, save);
    row.classList.add("is-edited");
    field.focus();
  }

  #close(row, focused) {
    this.#edited = null;
    row?.classList.remove("is-edited");
    for (const one of row?.querySelectorAll(".part-field, .part-save") ?? []) one.remove();
    focused?.focus();
  }
}
