// A test at an invitation's link: the server has its clips and takes its answers.

const RECEIPT = "receipt-";
const PLATFORM = ["PROLIFIC_PID", "STUDY_ID", "SESSION_ID"];

// What the server refuses, in its own words.
export class Refusal extends Error {}

export class ServerSource {
  #memory;
  // Relative to the page, wherever a proxy has put it. The last part of its path is the link.
  #link = location.pathname.replace(/\/+$/, "").split("/").pop();

  get name() {
    return this.#link;
  }

  // `memory`: of this browser.
  use(memory) {
    this.#memory = memory;
  }

  // {title, design, consent, trials, closed, ...}: what a person may read before taking part.
  async about() {
    return this.#ask("about", {});
  }

  // {rater, session, answered}: of who has this id, or is known by what a platform says of them.
  async enter(rater, name) {
    return this.#ask("enter", { rater, name, recruitment: recruitment() });
  }

  // The bytes of a clip.
  async clip(rater, clip) {
    const response = await this.#post("clip", { rater, clip });
    const bytes = await response.arrayBuffer();
    // When the server first sent it, signed by it. It outlives a reload, as what was heard does.
    const name = RECEIPT + clip;
    if (!this.#memory.get(name)) this.#memory.set(name, response.headers.get("x-receipt"));
    return bytes;
  }

  // An answer with what proves that its clips were sent.
  proven(answer, clips) {
    const receipts = clips.map((clip) => this.#memory.get(RECEIPT + clip) ?? "");
    for (const clip of clips) this.#memory.remove(RECEIPT + clip);
    return { ...answer, receipts };
  }

  // {results: [{id, state, message}]}, in the order of the answers.
  async send(rater, answers) {
    return this.#ask("answers", { rater, answers });
  }

  // {completion_code, completion_url}
  async finish(rater, headphones) {
    return this.#ask("finish", { rater, headphones });
  }

  async #ask(what, body) {
    return (await this.#post(what, body)).json();
  }

  // Raises Refusal for an answer of 400 and above, another error where the server is not reached.
  async #post(what, body) {
    const response = await fetch(`${this.#link}/${what}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      cache: "no-store",
    });
    if (response.ok) return response;
    const text = await response.text();
    // Busy, or a proxy whose server restarts: the same request may succeed in a moment.
    if (response.status === 429 || response.status >= 500) throw new Error(text);
    throw new Refusal(text);
  }
}

// What a recruiting platform adds to the link.
export function recruitment() {
  const query = new URLSearchParams(location.search);
  const named = PLATFORM.map((name) => [name, query.get(name)]);
  return Object.fromEntries(named.filter(([, value]) => value));
}
