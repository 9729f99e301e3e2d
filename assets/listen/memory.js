// What this browser keeps of one test: who listens, how far they are, and every answer that is not
// confirmed yet. Answers have a key each, so that two tabs cannot overwrite each other's.

const PREFIX = "dia-listen";
const ID_BYTES = 16;

export class Memory {
  #test;
  #values = new Map(); // where the browser keeps nothing

  constructor(test) {
    this.#test = test;
    this.isLasting = attempt(() => {
      localStorage.setItem(`${PREFIX}-probe`, "1");
      localStorage.removeItem(`${PREFIX}-probe`);
      return true;
    }) === true;
  }

  get(name) {
    const key = this.#key(name);
    const text = this.isLasting ? attempt(() => localStorage.getItem(key)) : this.#values.get(key);
    return text ? attempt(() => JSON.parse(text)) : null;
  }

  set(name, value) {
    const [key, text] = [this.#key(name), JSON.stringify(value)];
    // A full storage fails; the value then lasts as long as the page.
    const isStored = this.isLasting && attempt(() => {
      localStorage.setItem(key, text);
      return true;
    });
    if (!isStored) this.#values.set(key, text);
  }

  remove(name) {
    attempt(() => localStorage.removeItem(this.#key(name)));
    this.#values.delete(this.#key(name));
  }

  // The values whose names begin with `start`.
  all(start) {
    const key = this.#key(start);
    const stored = attempt(() => Object.keys(localStorage)) ?? [];
    const names = new Set([...stored, ...this.#values.keys()].filter((name) => name.startsWith(key)));
    const prefix = this.#key("");
    return [...names].map((name) => this.get(name.slice(prefix.length))).filter(Boolean);
  }

  #key(name) {
    return `${PREFIX}-${this.#test}-${name}`;
  }
}

// 32 hexadecimal digits, which nobody can guess.
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(ID_BYTES));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Storage may be disabled, for example in private windows; then access raises an error.
function attempt(work) {
  try {
    return work();
  } catch {
    return null;
  }
}
