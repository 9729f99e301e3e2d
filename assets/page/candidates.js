// Candidates: takes of one script to choose from. gradio starts it with: element, props.value ({key,
// running, candidates}), server.candidates(question), trigger, watch. `click` makes one again;
// `submit` chooses one, or deletes the others.

import { make, makeButton, updateRows } from "./dom.js";
import { Toggle } from "./toggle.js";

const STATES = { waiting: "waiting", running: "being made", good: "", faulty: "check: ", failed: "" };

export class Candidates {
  #element;
  #props;
  #server;
  #trigger;
  #list;
  #problem;
  #sounds = new Toggle((index) => this.#button(index), (index) => this.#addressOf(index));

  constructor({ element, props, server, trigger, watch }) {
    this.#element = element;
    this.#props = props;
    this.#server = server;
    this.#trigger = trigger;
    this.#list = element.querySelector("ol");
    this.#problem = element.querySelector(".candidates-problem");
    this.#discard.addEventListener("click", () => this.#trigger("submit", { do: "discard" }));
    watch("value", () => this.#draw());
    this.#draw();
  }

  get #value() {
    return this.#props.value || { candidates: [] };
  }

  get #discard() {
    return this.#element.querySelector(".candidates-discard");
  }

  #button(index) {
    return this.#list.children[index]?.querySelector(".candidate-play");
  }

  async #addressOf(index) {
    const { id } = this.#value.candidates[index];
    const answer = await this.#server.candidates({ do: "hear", key: this.#value.key, id });
    this.#problem.textContent = answer?.error ?? "";
    return answer?.file && window.diaFiles.addressOf(answer.file);
  }

  #draw() {
    const { candidates, running } = this.#value;
    const made = candidates.filter(({ id }) => id).length;
    this.#discard.hidden = running || made < 2;
    updateRows(this.#list, candidates, (index) => this.#row(index),
      (row, candidate, index) => this.#show(row, candidate, index, running));
  }

  #row(index) {
    const row = make("li", "candidate");
    const idOf = () => ({ id: this.#value.candidates[index].id });
    const buttons = make("div", "candidate-buttons");
    buttons.append(
      makeButton("candidate-play", "Play", () => this.#sounds.press(index)),
      makeButton("candidate-choose", "Choose", () => this.#trigger("submit", idOf())),
      makeButton("candidate-again", "Make again", () => this.#trigger("click", idOf())),
    );
    row.append(make("p", "candidate-name"), make("p", "candidate-state"), buttons);
    return row;
  }

  #show(row, candidate, index, running) {
    const { name, id, state, seconds, pace, seed, verdict, chosen } = candidate;
    const isMade = Boolean(id);
    row.dataset.state = state;
    row.classList.toggle("is-chosen", chosen);
    row.querySelector(".candidate-name").textContent = chosen ? `${name} · in the player` : name;
    row.querySelector(".candidate-state").textContent = [
      seconds ? `${seconds.toFixed(1)} s` : "",
      isMade && pace ? `${pace.toFixed(1)} words/s` : "",
      isMade ? `seed ${seed}` : "",
      STATES[state] + verdict,
    ].filter(Boolean).join(" · ");
    for (const button of row.querySelectorAll("button")) {
      button.setAttribute("aria-label", `${button.textContent}, candidate ${name}`);
    }
    row.querySelector(".candidate-play").disabled = !isMade;
    row.querySelector(".candidate-choose").disabled = running || !isMade || chosen;
    row.querySelector(".candidate-again").disabled = running || !isMade;
    if (this.#sounds.id === index && row.dataset.id !== id) this.#sounds.stop();
    row.dataset.id = id;
  }
}
