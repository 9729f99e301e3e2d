// One trial: its clips under neutral names, the player, and what a person answers.

import { make, makeButton, makeChoice, makeGroup } from "../page/dom.js";
import { ClipSet } from "../page/lab/clip_set.js";
import { Transport } from "../page/lab/transport.js";
import { makeBallot, questionOf } from "./ballots.js";
import { newId } from "./memory.js";

const MARGIN_SECONDS = 0.5; // that may be missing at the end of a clip that was heard to its end
const LONGEST_NOTE = 500;
const REFERENCE = "Reference";
const X = "X";
const ATTRIBUTES = { voice: "Voice", pace: "Pace", words: "Words", noise: "Noise" };
const DIGIT = /^(?:Digit|Numpad)(\d)$/;

export class Trial {
  #page;
  #before;
  #names; // of the clips on the page, the reference first
  #files; // their names at the source
  #clips; // ClipSet
  #transport;
  #ballot;
  #buttons = new Map();
  #hint = make("p", "hint");
  #note = make("input");
  #next;
  #started;

  // `page`: {player, choices, fetchClip, remember, submit, isShown(trial)}. `presentation`: the
  // session's. `before`: the `record` of the same trial before a reload, or an empty one.
  constructor(page, presentation, attributes, before) {
    this.#page = page;
    this.presentation = presentation;
    this.attributes = attributes;
    this.#before = before;
    this.#started = before.started ?? new Date().toISOString();
    const { clips, design, reference } = presentation;
    this.#names = clips.map((_, index) => (design === "abx" && index === 2 ? X : String(index + 1)));
    this.#files = [...clips];
    if (reference) {
      this.#names.unshift(REFERENCE);
      this.#files.unshift(reference);
    }
    this.#clips = new ClipSet({
      player: page.player,
      letters: this.#names,
      choices: page.choices,
      before,
      isShown: () => page.isShown(this),
      stopped: () => page.remember(),
    });
  }

  async fetchClips() {
    for (const [index, name] of this.#names.entries()) {
      // One after the other, so that the first can be played while the others are fetched.
      // oxlint-disable-next-line no-await-in-loop
      const bytes = await this.#page.fetchClip(this.#files[index]);
      if (!bytes) return; // The page says why.
      // oxlint-disable-next-line no-await-in-loop
      const buffer = await this.#page.player.decode(bytes);
      if (!this.#page.isShown(this)) return;
      this.#clips.add(name, buffer);
      this.drawPlayer();
    }
  }

  // What was heard

  get #judged() {
    return this.#names.filter((name) => name !== REFERENCE);
  }

  get #missing() {
    if (!this.#clips.isComplete) return this.#judged;
    return this.#judged.filter((name) => this.#clips.covered(name) < this.presentation.hear_seconds);
  }

  // What is left to do before the answer can be saved.
  get #open() {
    const missing = this.#missing;
    if (!missing.length) return this.#ballot.answer ? "" : "Now answer the question.";
    const count = this.#judged.length;
    const which = missing.length === count && count > 1 ? "every clip" : `clip ${missing.join(", ")}`;
    const needed = this.presentation.hear_seconds;
    return this.#clips.length - needed > MARGIN_SECONDS
      ? `Listen to ${needed.toFixed(0)} s of ${which} before you answer.`
      : `Listen to ${which} to the end before you answer.`;
  }

  // The answer as it is sent.
  get #answer() {
    const { heard, covered } = this.#clips.seconds;
    const inOrder = (seconds) => this.#judged.map((name) => round(seconds[name] ?? 0));
    return {
      id: newId(),
      presentation: this.presentation.id,
      answer: this.#ballot.answer,
      attributes: this.#ticked,
      note: this.#note.value,
      heard: inOrder(heard),
      covered: inOrder(covered),
      started: this.#started,
      time: new Date().toISOString(),
    };
  }

  // The trial as it outlives a reload.
  get record() {
    return {
      ...this.#clips.record,
      started: this.#started,
      answer: this.#ballot.draft ?? this.#ballot.answer,
      attributes: this.#ticked,
      note: this.#note.value,
    };
  }

  get #ticked() {
    return this.attributes.filter((name) => this.node.querySelector(`[name=attribute-${name}]`).checked);
  }

  #submit() {
    const open = this.#open;
    if (open) {
      this.#say(open);
      return;
    }
    // What is playing now is added to what was heard.
    this.#page.player.stop();
    this.#page.submit(this.#answer);
  }

  // Whether a key means something here; if so, it has been done.
  press(event) {
    const [, digit] = DIGIT.exec(event.code) || [];
    if (digit && event.shiftKey) return this.#ballot.choose(digit);
    const name = { 0: REFERENCE, x: X }[digit ?? event.key.toLowerCase()] ?? digit;
    if (event.key === "Enter" && event.target.tagName !== "BUTTON") this.#submit();
    else if (this.#names.includes(name)) this.#clips.switchTo(name);
    else if (event.key.toLowerCase() === "r") this.#transport.toggleRepeat();
    else if (this.#clips.actionOf(event)) this.#clips.actionOf(event)();
    else return false;
    return true;
  }

  // Drawing

  // `title`: where in the test this is.
  draw(title) {
    const { presentation } = this;
    this.#transport = new Transport(this.#clips);
    this.#ballot = makeBallot(presentation, this.#judged.length, {
      before: this.#before.answer,
      changed: () => this.#changed(),
      play: (index) => this.#clips.switchTo(String(index + 1)),
    });
    this.#hint.setAttribute("role", "status");
    this.#next = makeButton("main", "Save and go on", () => this.#submit());
    this.node = make("section", `trial ${presentation.design}`);
    this.node.append(
      make("h1", "", title),
      ...(presentation.text ? [make("p", "script", presentation.text)] : []),
      makeGroup("clips", "Clips", ...this.#names.map((name) => this.#makeClip(name))),
      this.#transport.node,
      this.#transport.choices,
      make("h2", "", questionOf(presentation)),
      this.#ballot.node,
      ...this.#makeRemarks(),
      this.#hint,
      this.#next,
      this.#makeKeys(),
    );
    this.drawPlayer();
    return this.node;
  }

  #makeClip(name) {
    const button = makeButton(name === REFERENCE ? "clip word" : "clip", "", (event) => {
      this.#clips.switchTo(name);
      // After the mouse the keys belong to the page again: space pauses and restarts no clip.
      if (event.detail) this.#page.focus();
    });
    const heard = make("span", "heard");
    button.setAttribute("aria-label", `Play ${name === REFERENCE ? "the reference" : `clip ${name}`}`);
    button.append(make("strong", "", name), heard);
    this.#buttons.set(name, button);
    return button;
  }

  #makeRemarks() {
    const label = make("label", "note", "Note (optional) ");
    Object.assign(this.#note, { maxLength: LONGEST_NOTE, value: this.#before.note ?? "" });
    this.#note.addEventListener("input", () => this.#page.remember());
    label.append(this.#note);
    if (!this.attributes.length) return [label];
    const group = make("fieldset", "scale attributes");
    group.append(make("legend", "", "What made the difference? (optional)"));
    const row = make("div", "options");
    for (const name of this.attributes) {
      const isTicked = (this.#before.attributes ?? []).includes(name);
      const choice = makeChoice("checkbox", "option", ATTRIBUTES[name] ?? name, isTicked, () => this.#changed());
      choice.querySelector("input").name = `attribute-${name}`;
      row.append(choice);
    }
    group.append(row);
    return [group, label];
  }

  #makeKeys() {
    const digits = this.#judged.filter((name) => name !== X).join(", ");
    const extra = this.#names.includes(X) ? ", X" : "";
    const first = this.#names.includes(REFERENCE) ? " · 0 plays the reference" : "";
    const keys = make("details", "keys");
    keys.append(make("summary", "", "Keys"), make("p", "",
      `${digits}${extra} play a clip${first} · P plays all · Space plays and pauses · `
      + "← → move by 2 s · R repeats · F, T, W play from here, to here, all of a long clip · "
      + "Shift and a digit answer · Enter saves"));
    return keys;
  }

  #changed() {
    this.#page.remember();
    this.drawPlayer();
  }

  // What changes while a clip plays.
  drawPlayer() {
    if (!this.node) return;
    for (const [name, button] of this.#buttons) this.#drawClip(name, button);
    this.#transport.draw(this.#clips.position.letter);
    const open = this.#open;
    this.#next.setAttribute("aria-disabled", String(Boolean(open)));
    this.node.dataset.ready = String(!open);
    this.#say(open);
  }

  #drawClip(name, button) {
    const isThere = this.#clips.has(name);
    button.disabled = !isThere;
    button.setAttribute("aria-pressed", String(this.#clips.playing === name));
    const left = this.presentation.hear_seconds - this.#clips.covered(name);
    const state = name === REFERENCE ? "" : left <= 0 ? "heard" : `${left.toFixed(1)} s to go`;
    button.querySelector(".heard").textContent = isThere ? state : "loading";
  }

  // A line that stays as it is must not be read aloud again.
  #say(text) {
    if (this.#hint.textContent !== text) this.#hint.textContent = text;
  }
}

function round(seconds) {
  return Math.round(seconds * 100) / 100;
}
