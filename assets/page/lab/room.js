// The listening room: shows a pair under neutral letters, takes the vote, shows the result.
// gradio starts it with: element, props.value ({key, id, tick}), server.ask(question), watch,
// trigger. Which side is which is not known here until the server sends the result.

import { make } from "../dom.js";
import { isOfControl } from "./keys.js";
import { forget, recall, remember, rememberFront } from "./memory.js";
import { Pair } from "./pair.js";
import { Player } from "./player.js";
import { Result } from "./result.js";

const DRAW_MS = 100;
const UNREACHABLE =
  "The server cannot be reached. Try again in a moment, or reload the page: your votes are kept.";
const LOOK_MS = 2000; // between two looks while the first pair is being made

export class Room {
  #root;
  #heading = make("h2");
  #message = make("p", "lab-said");
  #verdict = make("p", "sr-only"); // Of a result, for who cannot see it appear.
  #content = make("div", "lab-content");
  #server;
  #trigger;
  #view = null; // the Pair or the Result on show
  #state = null; // the server's last answer to "look"
  #waiting = null; // a newer answer, taken when the clip of the result that is playing has stopped
  #busy = false;
  #timer;

  constructor({ element, props, server, trigger, watch }) {
    this.#root = element.querySelector(".lab-room");
    this.#server = server;
    this.#trigger = trigger;
    this.comparison = null; // {key, id} of the comparison on show
    // Of the listener, for all pairs: how clips are played.
    this.choices = { repeat: false, keepPosition: false };
    this.player = new Player(() => this.#drawPlayer());
    // One element for all messages, so that a screen reader announces each.
    for (const said of [this.#message, this.#verdict]) said.setAttribute("role", "status");
    this.#root.replaceChildren(this.#heading, this.#message, this.#verdict, this.#content);
    document.addEventListener("keydown", (event) => this.#press(event));
    window.addEventListener("pagehide", () => this.#leave());
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
    this.#content.append(...nodes);
  }

  focus(options) {
    this.#root.focus(options);
  }

  mark(name, value) {
    this.#root.dataset[name] = String(value);
  }

  remember() {
    remember(this.comparison.id, this.pair && this.pair.record);
  }

  // The page is closed or reloaded.
  #leave() {
    this.player.stop();
    rememberFront(this.#isShown());
  }

  #isShown() {
    return this.#root.isConnected && this.#root.offsetParent !== null;
  }

  // The server

  // The answer; null if it is an error, which is shown.
  async ask(question) {
    // gradio gives nothing where the connection failed.
    const answer = await this.#server.ask({ ...this.comparison, ...question }) || { error: UNREACHABLE };
    if (answer.error) {
      this.#say(answer.error, true);
      if (answer.again && this.pair) this.pair.startAgain();
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
      if (comparison && comparison.id && !id) forget();
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
    const trial = this.pair ? this.pair.trial.id : this.#recalled.trial;
    const answer = await this.ask({ do: "look", trial });
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
    const { trial, kind, open } = answer;
    const { trial: before, ...record } = this.#recalled;
    if (trial) this.#view = new Pair(this, trial, kind, before === trial.id ? record : {});
    else if (open) this.#view = new Result(this);
    this.#draw();
    this.remember();
    if (this.pair) this.pair.fetchClips();
    else if (answer.making && !answer.open) this.#lookLater();
  }

  // What was done with a pair of this comparison before a reload: its `record`, or an empty one.
  get #recalled() {
    const { id, pair } = recall() || {};
    return (id === this.comparison.id && pair) || {};
  }

  // A run that goes on after a reload of the page tells it of no new pair.
  #lookLater() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#look(), LOOK_MS);
  }

  takeWaiting() {
    if (this.#waiting) this.#take(this.#waiting);
  }

  async vote(answer) {
    const { pair, comparison } = this;
    if (this.#busy || !pair) return;
    if (!pair.mayVote) {
      this.#say(pair.hint);
      return;
    }
    this.#markBusy(true);
    this.player.stop();
    const { voted } = this.#state;
    // A vote whose answer was lost may have been saved all the same.
    const next = await this.ask({ do: "vote", vote: answer, ...pair.ballot })
      || await this.ask({ do: "look", trial: pair.trial.id });
    this.#markBusy(false);
    // Another comparison may have been opened meanwhile.
    if (this.comparison !== comparison) return;
    if (!next || (next.trial && next.trial.id === pair.trial.id)) {
      this.#drawPlayer();
      return;
    }
    const problem = this.#message.textContent;
    this.#take(next);
    if (next.voted === voted) this.#say(problem, true); // the test was ended meanwhile
    else this.#say(next.trial ? "Vote saved. This is the next pair." : "Vote saved.");
    this.focus({ preventScroll: true });
    if (this.#root.getBoundingClientRect().top < 0) this.#root.scrollIntoView();
    this.#trigger("click", { done: next.open });
  }

  #markBusy(isBusy) {
    this.#busy = isBusy;
    this.mark("busy", isBusy);
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
    this.#content.replaceChildren();
    this.mark("state", this.#stateName());
    this.#heading.textContent = state && state.open ? "3 · Result" : "2 · Listen";
    this.#say("");
    if (this.pair) this.pair.draw(!state.voted);
    else if (this.#view) this.#view.draw(state.result);
    else this.append(make("p", "lab-empty", this.#whyEmpty()));
    this.#verdict.textContent = this.find(".verdict")?.textContent ?? "";
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
    this.#message.textContent = text;
    this.#message.classList.toggle("problem", isProblem);
    if (isProblem) this.#message.scrollIntoView({ block: "nearest" });
  }

  // Keys

  #press(event) {
    if (!this.#isShown() || !this.pair || isOfControl(event)) return;
    if (this.pair.press(event)) event.preventDefault();
  }
}
