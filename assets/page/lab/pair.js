// A pair that waits for its vote: its clips under neutral names, the player and the vote buttons.

import { Coverage } from "./coverage.js";
import { make, makeButton, makeChoice, makeGroup } from "./dom.js";
import { CLIP_NAMES, VOTES, clipOfKey, keyHelp, voteHint, voteOfKey } from "./names.js";
import { Transport } from "./transport.js";
import { VolumeCheck } from "./volume.js";

const STRENGTHS = { 1: "slightly", 2: "clearly", 3: "very much" };
const END_SECONDS = 0.05; // a clip that was paused so close to its end restarts
const SEEK_SECONDS = 2; // one press of an arrow key

export class Pair {
  #clips = {}; // letter -> {letter, buffer, stopped, ended}, as they arrive
  #heard = {}; // letter -> seconds listened to
  #coverage = {}; // letter -> Coverage
  #paused = { letter: "A", position: 0 };
  #sequence = ["A"]; // letters that are played one after the other
  #before; // what was done with this pair before a reload
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
    this.#heard = { ...before.heard };
    const covered = before.covered || {};
    for (const letter of this.letters) this.#coverage[letter] = new Coverage(covered[letter]);
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
      this.#clips[letter] = {
        letter,
        buffer,
        stopped: (start, end) => this.#note(letter, start, end),
        ended: () => this.#playNext(letter),
      };
    }
    if (this.#volume) this.#volume.offer([this.#clips.A.buffer, this.#clips.B.buffer]);
    this.drawPlayer();
  }

  // The server does not know that this page has the clips: it was started anew.
  startAgain() {
    this.#clips = {};
    this.#heard = {};
    for (const letter of this.letters) this.#coverage[letter] = new Coverage();
    this.room.remember();
    this.drawPlayer();
    this.fetchClips();
  }

  // Another comparison may be opened while this one's clips are fetched.
  #isShown() {
    return this.room.pair === this;
  }

  // What was listened to

  #note(letter, start, end) {
    this.#heard[letter] = (this.#heard[letter] || 0) + end - start;
    this.#coverage[letter] = this.#coverage[letter].with(start, end);
    this.#paused = { letter, position: end };
    this.room.remember();
  }

  // Different seconds of a clip that were listened to, the ones just now among them.
  #covered(letter) {
    const coverage = this.#coverage[letter];
    if (this.#playing !== letter) return coverage.seconds;
    return coverage.with(this.player.offset, this.player.position).seconds;
  }

  // The clips that must be listened to before a vote counts.
  get #missing() {
    return this.letters.filter((letter) => this.#covered(letter) < this.trial.needed);
  }

  get hint() {
    return voteHint(this.letters, this.#missing, this.trial.needed, this.#length);
  }

  get mayVote() {
    return !this.#missing.length;
  }

  // Seconds listened to, the strength and the note: what is sent with a vote.
  get ballot() {
    const strength = this.room.find(".lab-strength input:checked");
    const covered = this.letters.map((letter) => [letter, this.#coverage[letter].seconds]);
    return {
      trial: this.trial.id,
      heard: this.#heard,
      covered: Object.fromEntries(covered),
      strength: strength ? Number(strength.value) : null,
      note: this.room.find(".lab-note").value,
    };
  }

  // The ballot so far, as it outlives a reload.
  get record() {
    const covered = this.letters.map((letter) => [letter, this.#coverage[letter].intervals]);
    return { ...this.ballot, covered: Object.fromEntries(covered) };
  }

  // Playing

  // The letter of the clip that is playing, if it is one of the pair's.
  get #playing() {
    return this.player.clip ? this.player.clip.letter : undefined;
  }

  // Both clips of a pair have the same length.
  get #length() {
    const [clip] = Object.values(this.#clips);
    return clip ? clip.buffer.duration : 0;
  }

  // The clip at hand and the position in it, {letter, position}; from its end it starts again.
  get #position() {
    if (this.#playing) return { letter: this.#playing, position: this.player.position };
    const { letter, position } = this.#paused;
    return { letter, position: position < this.#length - END_SECONDS ? position : 0 };
  }

  // Plays a clip from its start or, if the listener wants that, from the position of the other one.
  // Whether both sides are in step is not known here: it would reveal before the vote that their
  // codes are equal.
  switchTo(letter) {
    const playing = this.#playing;
    const keep = this.room.choices.keepPosition && playing && playing !== letter;
    this.#sequence = [letter];
    this.#play(letter, keep ? this.player.position : 0);
  }

  playAll() {
    this.#sequence = this.letters;
    this.#play(this.letters[0]);
  }

  #play(letter, position = 0) {
    const clip = this.#clips[letter];
    if (clip && this.#isShown()) this.player.play(clip, Math.min(position, clip.buffer.duration));
  }

  #playNext(letter) {
    const next = this.#sequence[this.#sequence.indexOf(letter) + 1];
    if (next) this.#play(next);
    else if (this.room.choices.repeat) this.#play(this.#sequence[0]);
  }

  toggle() {
    if (this.#playing) {
      this.player.stop();
      this.drawPlayer();
    } else {
      this.#resume();
    }
  }

  #resume() {
    const { letter, position } = this.#position;
    if (!this.#sequence.includes(letter)) this.#sequence = [letter];
    this.#play(letter, position);
  }

  // Moves within the clip at hand, which goes on playing if it does.
  seek(seconds) {
    const { letter } = this.#position;
    const position = Math.max(0, Math.min(seconds, this.#length));
    const isPlaying = Boolean(this.#playing);
    this.player.stop();
    this.#paused = { letter, position };
    if (isPlaying) this.#resume();
    else this.drawPlayer();
  }

  // Whether a key means something here; if so, it has been done.
  press(event) {
    const answer = voteOfKey(event, this.kind);
    const clip = event.shiftKey ? undefined : clipOfKey(event);
    const others = {
      " ": () => this.toggle(),
      p: () => this.playAll(),
      r: () => this.#transport.toggleRepeat(),
      ArrowLeft: () => this.seek(this.#position.position - SEEK_SECONDS),
      ArrowRight: () => this.seek(this.#position.position + SEEK_SECONDS),
    };
    const other = others[event.key.length > 1 ? event.key : event.key.toLowerCase()];
    if (answer) this.room.vote(answer);
    else if (this.letters.includes(clip)) this.switchTo(clip);
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
    this.#transport = new Transport(this, this.room.choices);
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
      this.switchTo(letter);
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
    const { letter, position } = this.#position;
    this.#transport.draw({
      name: CLIP_NAMES[letter],
      position,
      length: this.#length,
      isPlaying: Boolean(this.#playing),
      isComplete: this.letters.every((each) => this.#clips[each]),
    });
    if (this.#volume) this.#volume.drawPlayer();
    const { mayVote, hint } = this;
    for (const node of this.room.findAll(".lab-vote")) node.disabled = !mayVote;
    const line = this.room.find(".lab-hint");
    // A line that stays as it is must not be read aloud again.
    if (this.#length && line.textContent !== hint) line.textContent = hint;
    this.room.mark("ready", mayVote);
  }

  #drawClip(node) {
    const { letter } = node.dataset;
    const clip = this.#clips[letter];
    node.disabled = !clip;
    node.setAttribute("aria-pressed", String(this.#playing === letter));
    const left = this.trial.needed - this.#covered(letter);
    const text = left <= 0 ? "heard" : `${left.toFixed(1)} s to go`;
    node.querySelector(".lab-heard").textContent = clip ? text : "loading";
  }
}
