// Subtitles of the take: the words around the one that is heard. Whoever marks turns elsewhere on the
// page listens for "dia-turn": {turn, script}, turn counted from 0, null while nothing is heard.

import { make } from "../dom.js";

const LEAD = 0.05; // seconds: a word that is marked late looks later than one that is early
const AFTER = 0.2; // seconds that the last words are shown after their end

export class SpokenWords {
  #element;
  #cues = []; // {speaker, turn, end, words: [[word, start]]}
  #script = "";
  #cue = null;
  #turn = null;

  constructor(element) {
    this.#element = element;
  }

  set(take) {
    this.update(take);
    this.show(0);
  }

  // The words of a running take so far; `show` follows.
  update({ cues = [], script = "" } = {}) {
    this.#cues = cues;
    this.#script = script;
  }

  // Seconds of the take. At 0 nothing was heard yet.
  show(position) {
    const now = position > 0 ? position + LEAD : 0;
    const cue = this.#cues.findLast(({ words }) => words[0][1] <= now) ?? null;
    const isOver = cue === this.#cues.at(-1) && cue && now > cue.end + AFTER;
    this.#draw(now && !isOver ? cue : null);
    const heard = this.#cue ? this.#cue.words.findLastIndex(([, start]) => start <= now) : -1;
    [...this.#element.querySelectorAll("span")].forEach((word, index) => {
      word.classList.toggle("is-heard", index === heard);
    });
    this.#announce(this.#cue?.turn ?? null);
  }

  // Words come from people, so they are set as text, never as HTML.
  #draw(cue) {
    if (cue === this.#cue) return;
    this.#cue = cue;
    this.#element.replaceChildren();
    if (!cue) return;
    this.#element.append(make("b", "", cue.speaker));
    for (const [word] of cue.words) this.#element.append(" ", make("span", "", word));
  }

  #announce(turn) {
    if (turn === this.#turn) return;
    this.#turn = turn;
    const detail = { turn, script: this.#script };
    document.dispatchEvent(new CustomEvent("dia-turn", { detail }));
  }
}
