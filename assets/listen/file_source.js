// A test in a folder: its clips are scripts beside the page, because a page that was opened from the
// disk may load scripts and nothing else. Answers stay in this browser; a file takes them along.

import { Refusal, recruitment } from "./server_source.js";

const LATEST = 0xffffffff;

export class FileSource {
  #data;
  #memory;

  // `data`: what data.js holds.
  constructor(data) {
    this.#data = data;
  }

  get name() {
    return this.#data.test;
  }

  // `memory`: of this browser.
  use(memory) {
    this.#memory = memory;
  }

  async about() {
    return this.#data.about;
  }

  // One of the sessions, drawn at random at the first start.
  async enter(rater, name) {
    const { sessions } = this.#data;
    let own = this.#memory.get("rater");
    if (!own) {
      const drawn = crypto.getRandomValues(new Uint32Array(1))[0] / (LATEST + 1);
      const number = Math.floor(drawn * sessions.length);
      const started = new Date().toISOString();
      own = { id: rater, name, recruitment: recruitment(), started, number };
      this.#memory.set("rater", own);
    }
    const session = sessions[own.number];
    const answered = this.#answers().map((answer) => answer.presentation);
    return { rater: own.id, session, answered };
  }

  // The bytes of a clip in base64.
  async clip(_, clip) {
    const { clips } = globalThis.diaListening;
    if (!clips[clip]) await load(`clips/${clip.replace(/\.\w+$/, "")}.js`);
    const bytes = clips[clip];
    delete clips[clip];
    return bytes;
  }

  // The page's own rules are all that there is here.
  proven(answer) {
    const { covered, ...own } = answer;
    return covered ? own : answer;
  }

  async send(_, answers) {
    const known = new Set(this.#answers().map((answer) => answer.presentation));
    for (const answer of answers) {
      if (!known.has(answer.presentation)) this.#memory.set(`given-${answer.presentation}`, answer);
    }
    return { results: answers.map(({ id }) => ({ id, state: "counted" })) };
  }

  async finish(_, headphones) {
    const own = this.#memory.get("rater");
    own.finished ??= new Date().toISOString();
    this.#memory.set("rater", { ...own, headphones });
    return { file: this.#results() };
  }

  #answers() {
    return this.#memory.all("given-");
  }

  // The results as a file: {name, text}.
  #results() {
    const { number, ...rater } = this.#memory.get("rater");
    const { test } = this.#data;
    const answers = this.#answers().sort((one, other) => (one.time < other.time ? -1 : 1));
    const session = this.#data.sessions[number].session ?? number;
    const data = JSON.stringify({ session, rater, answers });
    const checksum = crc32(new TextEncoder().encode(test + data)).toString(16).padStart(8, "0");
    const file = { format: "dia-listening-results", version: 1, test, data, checksum };
    return { name: `results-${rater.id.slice(0, 8)}.json`, text: JSON.stringify(file) };
  }
}

function load(path) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.addEventListener("load", resolve);
    script.addEventListener("error", () => reject(new Refusal(`${path} could not be read: unpack the whole zip.`)));
    script.src = path;
    document.head.append(script);
  });
}

// CRC-32 as zip and zlib have it: it shows that a file was changed, not who changed it.
function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return ~crc >>> 0;
}
