// Answers on their way to the server. Each is in the browser's memory before it is sent, and leaves
// it when the server has confirmed it: an answer whose confirmation was lost is sent again with its
// id, by which the server knows it.

import { Refusal } from "./server_source.js";

const FIRST_WAIT = 1000; // milliseconds after a failure, doubled with each further one
const LONGEST_WAIT = 20_000;
const MOST_TOGETHER = 20;
const NAME = "answer-";

export class Outbox {
  #source;
  #memory;
  #rater;
  #timer;
  #wait = FIRST_WAIT;
  #sending = null;

  // `changed` is called when the number of waiting answers or the connection changes; `refused`
  // with {presentation, message, state} for an answer that the server does not take.
  constructor({ source, memory, rater, changed, refused }) {
    this.#source = source;
    this.#memory = memory;
    this.#rater = rater;
    Object.assign(this, { changed, refused, isConnected: true });
    window.addEventListener("online", () => this.flush());
  }

  get waiting() {
    return this.#memory.all(NAME).sort((one, other) => (one.time < other.time ? -1 : 1));
  }

  add(answer) {
    this.#memory.set(NAME + answer.id, answer);
    this.changed();
    this.flush();
  }

  // Sends what waits; resolves to whether nothing waits any more.
  async flush() {
    clearTimeout(this.#timer);
    this.#sending ??= this.#send();
    await this.#sending;
    this.#sending = null;
    if (!this.isConnected) return false;
    // What was added meanwhile.
    return this.waiting.length ? this.flush() : true;
  }

  async #send() {
    const answers = this.waiting.slice(0, MOST_TOGETHER);
    if (!answers.length) return;
    try {
      const { results } = await this.#source.send(this.#rater, answers);
      this.isConnected = true;
      this.#wait = FIRST_WAIT;
      results.forEach((result, index) => this.#settle(answers[index], result));
    } catch (error) {
      // Refused as a whole: sending it again would not help, but nothing is thrown away.
      this.problem = error instanceof Refusal ? error.message : "";
      this.isConnected = false;
      this.#timer = setTimeout(() => this.flush(), this.#wait);
      this.#wait = Math.min(2 * this.#wait, LONGEST_WAIT);
    }
    this.changed();
  }

  #settle(answer, { state, message }) {
    this.#memory.remove(NAME + answer.id);
    if (state === "refused" || state === "unheard") {
      this.refused({ presentation: answer.presentation, message, state });
    }
  }
}
