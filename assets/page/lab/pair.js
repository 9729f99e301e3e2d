// A pair that waits for its vote: its clips under neutral names, the player and the vote buttons.

import { ClipSet } from "./clip_set.js";
import { make, makeButton, makeChoice, makeGroup } from "../dom.js";
import { CLIP_NAMES, VOTES, clipOfKey, keyHelp, voteHint, voteOfKey } from "./names.js";
import { Transport } from "./transport.js";
import { VolumeCheck } from "./volume.js";

const STRENGTHS = { 1: "slightly", 2: "clearly", 3: "very much" };

export class Pair {
  #before; // what was done with this pair before a reload
  #clips; // ClipSet
  #transport;
  #volume = null;

  // `trial` and `kind` are the server's: {id, number, script, letters, needed} and the test's kind.
  // `before`: the `record` of the same pair before a reload, or an empty one.
  constructor(room, trial, kind, before) {
    this.room = room;
    this.player = room.player;
    this.trial = trial;
    this.kind = kind;
    this.letters = [...trial.letters];
    this.#before = before;
    this.#clips = new ClipSet({
      player: room.player,
      letters: this.letters,
      choices: room.choices,
      before,
      isShown: () => this.#isShown(),
      stopped: () => room.remember(),
    });
  }

  async fetchClips() {
    for (const letter of this.letters) {
      // One after the other, so that the first can be played while the others are fetched.
      // oxlint-disable-next-line no-await-in-loop
      const answer = await this.room.ask({ do: "clip", trial: this.trial.id, letter });
      if (!answer || !this.#isShown()) return;
      // oxlint-disable-next-line no-await-in-loop
      const buffer = await this.player.decode(answer.clip);
      if (!this.#isShown()) return;
      this.#clips.add(letter, buffer);
    }
    if (this.#volume) this.#volume.offer(this.#clips.buffers.slice(0, 2));
    this.drawPlayer();
  }

  // The server does not know that this page has the clips: it was started anew.
  startAgain() {
    this.#clips.startAgain();
    this.room.remember();
    this.drawPlayer();
    this.fetchClips();
  }

  // Another comparison may be opened while this one's clips are fetched.
  #isShown() {
    return this.room.pair === this;
  }

  // The clips that must be listened to before a vote counts.
  get #missing() {
    return this.letters.filter((letter) => this.#clips.covered(letter) < this.trial.needed);
  }

  get hint() {
    return voteHint(this.letters, this.#missing, this.trial.needed, this.#clips.length);
  }

  get mayVote() {
    return !this.#missing.length;
  }

  // Seconds listened to, the strength and the note: what is sent with a vote.
  get ballot() {
    const strength = this.room.find(".lab-strength input:checked");
    return {
      trial: this.trial.id,
      ...this.#clips.seconds,
      strength: strength ? Number(strength.value) : null,
      note: this.room.find(".lab-note").value,
    };
  }

  // The ballot so far, as it outlives a reload.
  get record() {
    return { ...this.ballot, ...this.#clips.record };
  }

  // Whether a key means something here; if so, it has been done.
  press(event) {
    const answer = voteOfKey(event, this.kind);
    const clip = event.shiftKey ? undefined : clipOfKey(event);
    const repeat = event.key.toLowerCase() === "r" && (() => this.#transport.toggleRepeat());
    const other = repeat || this.#clips.actionOf(event);
    if (answer) this.room.vote(answer);
    else if (this.letters.includes(clip)) this.#clips.switchTo(clip);
    else if (other) other();
    else return false;
    return true;
  }

  // Drawing

  // `isFirst`: no pair of this comparison was voted on yet.
  draw(isFirst) {
    const end = makeButton("lab-end", "End the test and reveal", () => this.room.reveal(end));
    const hint = make("p", "lab-hint");
    hint.setAttribute("role", "status");
    this.#transport = new Transport(this.#clips);
    if (isFirst) this.#volume = new VolumeCheck(this.player);
    this.room.append(
      make("p", "lab-count"),
      ...(this.#volume ? [this.#volume.node] : []),
      make("p", "lab-script", this.trial.script),
      makeGroup("lab-player", "Clips", ...this.letters.map((letter) => this.#clipButton(letter))),
      this.#transport.node,
      this.#transport.choices,
      hint,
      makeGroup("lab-votes", "Your vote", ...this.#voteButtons()),
      ...(this.kind === "abx" ? [] : [this.#strengths()]),
      this.#noteField(),
      make("p", "small lab-keys", `${keyHelp(this.kind)}.`),
      end,
    );
    this.drawPlayer();
  }

  #clipButton(letter) {
    const node = makeButton("lab-clip", "", (event) => {
      this.#clips.switchTo(letter);
      // After the mouse the keys belong to the room again: space pauses and restarts no clip.
      if (event.detail) this.room.focus({ preventScroll: true });
    });
    const heard = make("span", "lab-heard");
    heard.id = `lab-heard-${letter}`;
    node.dataset.letter = letter;
    node.setAttribute("aria-label", `Play clip ${CLIP_NAMES[letter]}`);
    node.setAttribute("aria-describedby", heard.id);
    node.append(make("strong", "", CLIP_NAMES[letter]), heard);
    return node;
  }

  #voteButtons() {
    return VOTES[this.kind].map(([answer, text, digit]) => {
      const node = makeButton("lab-vote", text, () => this.room.vote(answer));
      node.dataset.vote = answer;
      node.setAttribute("aria-keyshortcuts", `Shift+${digit}`);
      const key = make("kbd", "", `Shift+${digit}`);
      key.setAttribute("aria-hidden", "true");
      node.append(key);
      return node;
    });
  }

  #strengths() {
    const group = make("fieldset", "lab-strength");
    group.append(make("legend", "", "How clearly? (optional, before you vote)"));
    for (const [value, text] of Object.entries(STRENGTHS)) {
      const isChosen = this.#before.strength === Number(value);
      const label = makeChoice("radio", "", text, isChosen, () => this.room.remember());
      Object.assign(label.querySelector("input"), { name: "lab-strength", value });
      group.append(label);
    }
    return group;
  }

  #noteField() {
    const label = make("label", "lab-note-label", "Note (optional) ");
    const input = make("input", "lab-note");
    input.maxLength = 500;
    input.value = this.#before.note || "";
    input.addEventListener("input", () => this.room.remember());
    label.append(input);
    return label;
  }

  // What changes while a clip plays.
  drawPlayer() {
    for (const node of this.room.findAll(".lab-clip")) this.#drawClip(node);
    this.#transport.draw(CLIP_NAMES[this.#clips.position.letter]);
    if (this.#volume) this.#volume.drawPlayer();
    const { mayVote, hint } = this;
    for (const node of this.room.findAll(".lab-vote")) node.disabled = !mayVote;
    const line = this.room.find(".lab-hint");
    // A line that stays as it is must not be read aloud again.
    if (this.#clips.length && line.textContent !== hint) line.textContent = hint;
    this.room.mark("ready", mayVote);
  }

  #drawClip(node) {
    const { letter } = node.dataset;
    const isThere = this.#clips.has(letter);
    node.disabled = !isThere;
    node.setAttribute("aria-pressed", String(this.#clips.playing === letter));
    const left = this.trial.needed - this.#clips.covered(letter);
    const text = left <= 0 ? "heard" : `${left.toFixed(1)} s to go`;
    node.querySelector(".lab-heard").textContent = isThere ? text : "loading";
  }
}
