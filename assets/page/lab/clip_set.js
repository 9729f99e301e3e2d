// The clips of one trial: playing them one at a time, what was heard of each, and the part of them
// that is repeated. Which side is which is not known here.

import { Coverage } from "./coverage.js";

const END_SECONDS = 0.05; // a clip that was paused so close to its end restarts
const SEEK_SECONDS = 2; // one press of an arrow key
const SHORTEST_REGION = 0.5; // seconds

export class ClipSet {
  region = null; // [start, end] in seconds of the part that is played, null for all of it
  #clips = {}; // letter -> {letter, buffer, stopped, ended}, as they arrive
  #heard; // letter -> seconds listened to
  #coverage = {}; // letter -> Coverage
  #paused;
  #sequence; // letters that are played one after the other

  // `choices`: {repeat, keepPosition} of the listener. `before`: the `record` before a reload.
  // `isShown`: whether the trial is still on show; `stopped` is called after a clip was heard.
  constructor({ player, letters, choices, before = {}, isShown, stopped }) {
    Object.assign(this, { player, letters, choices, isShown, stopped });
    this.#paused = { letter: letters[0], position: 0 };
    this.#sequence = [letters[0]];
    this.#heard = { ...before.heard };
    const covered = before.covered || {};
    for (const letter of letters) this.#coverage[letter] = new Coverage(covered[letter]);
  }

  add(letter, buffer) {
    this.#clips[letter] = {
      letter,
      buffer,
      stopped: (start, end) => this.#note(letter, start, end),
      ended: () => this.#playNext(letter),
    };
  }

  // Forgets the clips and what was heard of them.
  startAgain() {
    this.#clips = {};
    this.#heard = {};
    for (const letter of this.letters) this.#coverage[letter] = new Coverage();
  }

  has(letter) {
    return Boolean(this.#clips[letter]);
  }

  get isComplete() {
    return this.letters.every((letter) => this.has(letter));
  }

  get buffers() {
    return this.letters.map((letter) => this.#clips[letter].buffer);
  }

  // All clips of a trial have the same length.
  get length() {
    const [clip] = Object.values(this.#clips);
    return clip ? clip.buffer.duration : 0;
  }

  // What was listened to

  #note(letter, start, end) {
    this.#heard[letter] = (this.#heard[letter] || 0) + end - start;
    this.#coverage[letter] = this.#coverage[letter].with(start, end);
    this.#paused = { letter, position: end };
    this.stopped();
  }

  // Different seconds of a clip that were listened to, the ones just now among them.
  covered(letter) {
    const coverage = this.#coverage[letter];
    if (this.playing !== letter) return coverage.seconds;
    return coverage.with(this.player.offset, this.player.position).seconds;
  }

  // Seconds listened to by letter: all of them, and without repetitions.
  get seconds() {
    const covered = this.letters.map((letter) => [letter, this.#coverage[letter].seconds]);
    return { heard: this.#heard, covered: Object.fromEntries(covered) };
  }

  // The same as it outlives a reload.
  get record() {
    const covered = this.letters.map((letter) => [letter, this.#coverage[letter].intervals]);
    return { heard: this.#heard, covered: Object.fromEntries(covered) };
  }

  // Playing

  // The letter of the clip that is playing, if it is one of these.
  get playing() {
    const { clip } = this.player;
    return clip && this.#clips[clip.letter] === clip ? clip.letter : undefined;
  }

  // The clip at hand and the position in it, {letter, position}; from its end it starts again.
  get position() {
    if (this.playing) return { letter: this.playing, position: this.player.position };
    const { letter, position } = this.#paused;
    const [start, end] = this.#bounds;
    return { letter, position: position >= start && position < end - END_SECONDS ? position : start };
  }

  get #bounds() {
    return this.region ?? [0, this.length];
  }

  // Plays a clip from its start or, if the listener wants that, from the position of the other one.
  // Whether both sides are in step is not known here: it would reveal before the vote that their
  // codes are equal.
  switchTo(letter) {
    const { playing } = this;
    const keep = this.choices.keepPosition && playing && playing !== letter;
    this.#sequence = [letter];
    this.#play(letter, keep ? this.player.position : this.#bounds[0]);
  }

  playAll() {
    this.#sequence = this.letters;
    this.#play(this.letters[0], this.#bounds[0]);
  }

  #play(letter, position) {
    const clip = this.#clips[letter];
    if (!clip || !this.isShown()) return;
    const [start, end] = this.#bounds;
    const isInside = position >= start && position < end;
    this.player.play(clip, isInside ? position : start, end);
  }

  #playNext(letter) {
    const next = this.#sequence[this.#sequence.indexOf(letter) + 1];
    const [start] = this.#bounds;
    if (next) this.#play(next, start);
    else if (this.choices.repeat) this.#play(this.#sequence[0], start);
  }

  toggle() {
    if (this.playing) this.pause();
    else this.#resume();
  }

  pause() {
    this.player.stop();
    this.player.changed();
  }

  #resume() {
    const { letter, position } = this.position;
    if (!this.#sequence.includes(letter)) this.#sequence = [letter];
    this.#play(letter, position);
  }

  // Moves within the clip at hand, which goes on playing if it does.
  seek(seconds) {
    const { letter } = this.position;
    const position = Math.max(0, Math.min(seconds, this.length));
    const isPlaying = Boolean(this.playing);
    this.player.stop();
    this.#paused = { letter, position };
    if (isPlaying) this.#resume();
    else this.player.changed();
  }

  // The part that is played, from or to the position at hand.

  startRegion() {
    const { position } = this.position;
    const end = this.region ? this.region[1] : this.length;
    this.#setRegion(position, end - position < SHORTEST_REGION ? this.length : end);
  }

  endRegion() {
    // Paused at its end, a clip is at its start again: what counts is where it stopped.
    const position = this.playing ? this.player.position : this.#paused.position;
    const start = this.region ? this.region[0] : 0;
    this.#setRegion(position - start < SHORTEST_REGION ? 0 : start, position);
  }

  clearRegion() {
    this.#change(null);
  }

  #setRegion(start, end) {
    const low = Math.min(start, Math.max(0, this.length - SHORTEST_REGION));
    this.#change([low, Math.min(this.length, Math.max(end, low + SHORTEST_REGION))]);
  }

  #change(region) {
    const isPlaying = Boolean(this.playing);
    this.player.stop();
    this.region = region;
    if (isPlaying) this.#resume();
    else this.player.changed();
  }

  // What a key means here, a function, or undefined.
  actionOf(event) {
    const { position } = this.position;
    const actions = {
      " ": () => this.toggle(),
      p: () => this.playAll(),
      f: () => this.startRegion(),
      t: () => this.endRegion(),
      w: () => this.clearRegion(),
      ArrowLeft: () => this.seek(position - SEEK_SECONDS),
      ArrowRight: () => this.seek(position + SEEK_SECONDS),
    };
    return actions[event.key.length > 1 ? event.key : event.key.toLowerCase()];
  }
}
