// The listening room: shows a pair under neutral letters, takes the vote, shows the result.
// gradio starts it with: element, props.value ({key, id, tick}), server.ask(question), watch,
// trigger. Which side is which is not known here until the server sends the result.

import { Pair, make } from "./pair.js";
import { Player } from "./player.js";
import { Result } from "./result.js";

const DRAW_MS = 100;

export class Room {
  #root;
  #server;
  #trigger;
  #view = null; // the Pair or the Result on show
  #state = null; // the server's last answer to "look"
  #waiting = null; // a newer answer, taken when the clip of the result that is playing has stopped
  #busy = false;

  constructor({ element, props, server, trigger, watch }) {
    this.#root = element.querySelector(".lab-room");
    this.#server = server;
    this.#trigger = trigger;
    this.comparison = null; // {key, id} of the comparison on show
    this.keepPlace = false; // switching continues from the same position
    this.player = new Player(() => this.#drawPlayer());
    document.addEventListener("keydown", (event) => this.#press(event));
    setInterval(() => { if (this.player.clip) this.#drawPlayer(); }, DRAW_MS);
    watch("value", () => this.#open(props.value || {}));
    this.#draw();
    // The value may have been set before this module was loaded.
    if (props.value && props.value.id) this.#open(props.value);
  }

  get pair() {
    return this.#view instanceof Pair ? this.#view : null;
  }

  // What the views use of the page.

  find(selector) {
    return this.#root.querySelector(selector);
  }

  findAll(selector) {
    return this.#root.querySelectorAll(selector);
  }

  append(...nodes) {
    this.#root.append(...nodes);
  }

  focus(options) {
    this.#root.focus(options);
  }

  mark(name, value) {
    this.#root.dataset[name] = String(value);
  }

  // The server

  async ask(question) {
    const answer = await this.#server.ask({ ...this.comparison, ...question });
    if (answer && answer.error) {
      this.#say(answer.error, true);
      return null;
    }
    return answer;
  }

  async #open({ key, id }) {
    const { comparison } = this;
    const isOther = !comparison || comparison.id !== id || comparison.key !== key;
    if (isOther) {
      this.#waiting = null;
      this.player.stop();
      this.#state = null;
      this.#view = null;
      this.comparison = { key, id };
    }
    await this.#look();
    if (isOther && id) this.#root.scrollIntoView({ block: "nearest" });
  }

  async #look() {
    const { comparison } = this;
    if (!comparison.id) {
      this.#draw();
      return;
    }
    // The pair on show is named, so that it stays until it is voted on.
    const answer = await this.ask({ do: "look", trial: this.pair && this.pair.trial.id });
    if (answer && this.comparison === comparison) this.#take(answer);
  }

  // A new answer. What is on show stays as it is while it is the same, with what was listened to.
  #take(answer) {
    const state = this.#state;
    const isSamePair = this.pair && answer.trial && answer.trial.id === this.pair.trial.id;
    const isSameResult = state && state.open && answer.open && answer.result === state.result;
    if (this.#view instanceof Result && this.player.clip && !isSameResult) {
      this.#waiting = answer;
      return;
    }
    this.#waiting = null;
    this.#state = answer;
    if (isSamePair || isSameResult) {
      this.#drawCounts();
      return;
    }
    this.player.stop();
    this.#view = null;
    if (answer.trial) this.#view = new Pair(this, answer.trial, answer.kind);
    else if (answer.open) this.#view = new Result(this);
    this.#draw();
    if (this.pair) this.pair.fetchClips();
  }

  takeWaiting() {
    if (this.#waiting) this.#take(this.#waiting);
  }

  async vote(answer) {
    const { pair, comparison } = this;
    if (this.#busy || !pair) return;
    if (!pair.mayVote) {
      this.#say(`Listen to each clip for ${pair.trial.needed.toFixed(1)} s first.`);
      return;
    }
    this.#busy = true;
    this.player.stop();
    const next = await this.ask({ do: "vote", vote: answer, ...pair.ballot });
    this.#busy = false;
    // Another comparison may have been opened meanwhile.
    if (this.comparison !== comparison) return;
    if (!next) {
      this.#drawPlayer();
      return;
    }
    this.#take(next);
    this.#say(next.trial ? "Vote saved. The next pair:" : "Vote saved.");
    this.focus();
    this.#trigger("click", { done: next.open });
  }

  // Ends the test. The button is pressed twice: the first press asks for confirmation.
  async reveal(button) {
    if (!button.dataset.label) {
      button.dataset.label = button.textContent;
      button.textContent = "Press again to end the test: no more votes will count";
      const reset = () => {
        button.textContent = button.dataset.label;
        button.dataset.label = "";
      };
      button.addEventListener("blur", reset, { once: true });
      return;
    }
    const { comparison } = this;
    const answer = await this.ask({ do: "reveal" });
    if (!answer || this.comparison !== comparison) return;
    this.#take(answer);
    this.#trigger("click", { done: true });
  }

  // Drawing

  #draw() {
    const state = this.#state;
    this.#root.replaceChildren();
    this.mark("state", this.#stateName());
    this.append(make("h3", "", state && state.open ? "3 · Result" : "2 · Listen"));
    if (this.pair) this.pair.draw();
    else if (this.#view) this.#view.draw(state.result);
    else this.append(make("p", "lab-empty", this.#whyEmpty()));
    const message = make("p", "lab-said");
    message.setAttribute("role", "status");
    this.append(message);
    this.#drawCounts();
  }

  #stateName() {
    if (!this.#state) return "empty";
    if (this.#state.trial) return "listen";
    return this.#state.open ? "open" : "unready";
  }

  #whyEmpty() {
    const state = this.#state;
    if (!state) return "Make pairs above, or open a saved comparison below.";
    const which = state.voted ? "next" : "first";
    if (state.making) return `The ${which} pair is being generated. You can listen when it is ready.`;
    const failed = state.failed ? ` (${state.failed} failed)` : "";
    return `No pair is ready${failed}. Press Resume to generate the missing ones.`;
  }

  #drawPlayer() {
    if (this.#view) this.#view.drawPlayer();
  }

  #drawCounts() {
    const state = this.#state;
    if (!this.pair || !state) return;
    const made = state.made < state.pairs ? ` (${state.made} made)` : "";
    this.find(".lab-count").textContent = `Pair ${state.trial.number} of ${state.pairs}${made}`;
  }

  #say(text, isProblem = false) {
    const line = this.find(".lab-said");
    if (!line) return;
    line.textContent = text;
    line.classList.toggle("problem", isProblem);
  }

  // Keys

  #press(event) {
    if (!this.#root.isConnected || this.#root.offsetParent === null || !this.pair) return;
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (isTyping(event.target) || (event.key === " " && ownsSpace(event.target))) return;
    if (this.pair.press(event.key.toLowerCase())) event.preventDefault();
  }
}

function isTyping(target) {
  return target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName)
    || (target.tagName === "INPUT" && !/^(radio|checkbox)$/.test(target.type));
}

// On a button or an open choice, space is that control's own.
function ownsSpace(target) {
  return /^(BUTTON|A|SUMMARY)$/.test(target.tagName)
    || (target.tagName === "INPUT" && !(target.type === "radio" && target.checked));
}
