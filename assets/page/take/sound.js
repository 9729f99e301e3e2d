// The sound of one take, also while it still arrives: its samples are kept here and sent to Web
// Audio a little ahead of what is heard. So a finished take goes on where it was heard, and every
// speed and position works before its end as after it.

import { Stretch } from "./stretch.js";

const LEAD = 0.05; // seconds from now to the next sample; less was too late on a busy machine
const AHEAD = 2; // seconds that are sent ahead: browsers call a hidden page's timers once a second
const PIECE = 0.25; // seconds of one piece
const FADE = 0.008; // seconds: a cut within a wave clicks

export class Sound {
  rate = 0;
  isComplete = false; // no samples follow
  #context = null; // AudioContext, made by a click
  #samples = new Float32Array(0); // longer than `#length`
  #length = 0;
  #speed = 1;
  #position = 0; // seconds, while nothing is sent
  #pieces = []; // sent and not heard to the end: {source, begin, end, from, to}
  #cursor = 0; // the next sample to be sent
  #stretch = null;
  #gain = null; // of the pieces sent since the last start

  // changed: called when the browser has allowed or stopped all sound.
  constructor(changed) {
    this.changed = changed;
  }

  // Allow sound: call it in the handler of a click. Without a rate, at the next call with one.
  unlock(rate) {
    if (!rate) return;
    if (this.#context?.sampleRate !== rate) {
      this.#context?.close();
      // Of the take's own rate, so that pieces are not resampled.
      this.#context = new AudioContext({ sampleRate: rate });
      this.#context.addEventListener("statechange", this.changed);
      // On a phone: plays like a video, also if the ringer is off.
      if (navigator.audioSession) navigator.audioSession.type = "playback";
    }
    this.#context.resume();
  }

  get isAllowed() {
    return this.#context?.state === "running" && this.#context.sampleRate === this.rate;
  }

  // Start over without samples.
  reset(rate = 0) {
    this.stop();
    Object.assign(this, { rate, isComplete: false });
    this.#length = this.#position = this.#cursor = 0;
  }

  append(samples) {
    if (this.#length + samples.length > this.#samples.length) {
      const longer = new Float32Array(2 * (this.#length + samples.length));
      longer.set(this.samples);
      this.#samples = longer;
    }
    this.#samples.set(samples, this.#length);
    this.#length += samples.length;
  }

  // Put the finished take's samples in the place of those that arrived. What plays goes on.
  replace(samples) {
    this.#samples = samples;
    this.#length = samples.length;
    this.isComplete = true;
    this.#cursor = Math.min(this.#cursor, this.#length);
    this.#position = Math.min(this.#position, this.duration);
  }

  get samples() {
    return this.#samples.subarray(0, this.#length);
  }

  // Seconds that have arrived.
  get duration() {
    return this.rate ? this.#length / this.rate : 0;
  }

  // Seconds of the take that are heard now.
  get position() {
    if (!this.#pieces.length) return this.#position;
    const now = this.#context.currentTime;
    const piece = this.#pieces.find(({ end }) => now < end) ?? this.#pieces.at(-1);
    const part = (now - piece.begin) / (piece.end - piece.begin);
    const samples = piece.from + Math.min(1, Math.max(0, part)) * (piece.to - piece.from);
    return Math.min(samples / this.rate, this.duration);
  }

  // Whether something is heard.
  get isPlaying() {
    return this.#pieces.length > 0;
  }

  get isAtEnd() {
    return this.isComplete && !this.isPlaying && this.#position >= this.duration - 0.02;
  }

  get speed() {
    return this.#speed;
  }

  set speed(speed) {
    this.#move(() => { this.#speed = speed; });
  }

  seek(seconds) {
    this.#move(() => { this.#position = Math.min(Math.max(0, seconds), this.duration); });
  }

  #move(change) {
    const wasPlaying = this.isPlaying;
    this.stop();
    change();
    if (wasPlaying) this.send();
  }

  // Send what follows. Call it repeatedly while the sound is to go on.
  send() {
    if (!this.isAllowed) return;
    const now = this.#context.currentTime;
    this.#forgetHeard(now);
    if (!this.#pieces.length) {
      if (this.#position >= this.duration) return;
      this.#start();
    }
    let end = this.#pieces.at(-1)?.end ?? now + Math.round(LEAD * this.rate) / this.rate;
    while (end < now + AHEAD) {
      const from = this.#cursor;
      const output = this.#next();
      if (!output.length) break;
      const begin = end;
      end += output.length / this.rate;
      this.#pieces.push({ source: this.#play(output, begin), begin, end, from, to: this.#cursor });
    }
  }

  // Stop where it is heard now.
  stop() {
    this.#position = this.position;
    if (!this.#pieces.length) return;
    const now = this.#context.currentTime;
    this.#gain.gain.setTargetAtTime(0, now, FADE / 3);
    for (const { source } of this.#pieces) source.stop(now + 2 * FADE);
    this.#pieces = [];
  }

  // The browser's sound is off until `unlock`.
  suspend() {
    // After the fade, and only if nothing was started meanwhile.
    setTimeout(() => { if (!this.isPlaying) this.#context?.suspend(); }, 100);
  }

  #forgetHeard(now) {
    while (this.#pieces.length && this.#pieces[0].end <= now) {
      this.#position = this.#pieces.shift().to / this.rate;
    }
    this.#position = Math.min(this.#position, this.duration);
  }

  #start() {
    this.#cursor = Math.min(Math.round(this.#position * this.rate), this.#length);
    this.#stretch = this.#speed === 1 ? null : new Stretch(this.rate, this.#speed, this.#cursor);
    this.#gain = this.#context.createGain();
    this.#gain.connect(this.#context.destination);
  }

  // The samples of the next piece, as they are heard.
  #next() {
    const length = Math.round(PIECE * this.rate);
    if (this.#stretch) {
      const made = this.#stretch.read(this.#samples, this.#length, this.isComplete, length);
      this.#cursor = Math.min(this.#stretch.place, this.#length);
      return made;
    }
    const piece = this.#samples.subarray(this.#cursor, Math.min(this.#cursor + length, this.#length));
    this.#cursor += piece.length;
    return piece;
  }

  #play(samples, begin) {
    const buffer = this.#context.createBuffer(1, samples.length, this.rate);
    buffer.copyToChannel(samples, 0);
    const source = this.#context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.#gain);
    source.start(begin);
    return source;
  }
}
