// A check for headphones: of three tones, which is the quietest? One of the louder tones has its
// phase turned over in one ear. Over loudspeakers the two sides cancel out, so that it sounds the
// quietest; with headphones it does not (Woods, Siegel, Traer and McDermott, Headphone screening to
// facilitate web-based auditory experiments, 2017).

import { make, makeButton, makeGroup } from "../page/dom.js";

const ROUNDS = 6;
const NEEDED = 5;
const HERTZ = 200;
const SAMPLE_RATE = 44_100;
const TONE_SECONDS = 0.8;
const GAP_SECONDS = 0.4;
const RAMP_SECONDS = 0.1;
const LOUD = 0.2;
const QUIET = LOUD * 10 ** (-6 / 20);
const TONES = ["loud", "quiet", "turned"];

export class HeadphoneCheck {
  #player;
  #done;
  #round = 0;
  #right = 0;
  #tones;
  #said = make("p", "hint");
  #choices;
  #play;

  // `done` is called with whether the check was passed.
  constructor(player, done) {
    this.#player = player;
    this.#done = done;
    this.#said.setAttribute("role", "status");
    this.#play = makeButton("main", "Play the three tones", () => this.#start());
    const buttons = [1, 2, 3].map((number) =>
      makeButton("choice", `Tone ${number}`, () => this.#answer(number - 1)));
    this.#choices = makeGroup("choices", "Which tone is the quietest?", ...buttons);
    this.node = make("div", "check");
    this.node.append(this.#play, this.#choices, this.#said);
    this.#next();
  }

  #next() {
    this.#tones = shuffled(TONES);
    this.#enable(false);
    this.#said.textContent = `Round ${this.#round + 1} of ${ROUNDS}: play the tones, then say which `
      + "was the quietest.";
  }

  #enable(isHeard) {
    for (const button of this.#choices.children) button.disabled = !isHeard;
  }

  #start() {
    const [left, right] = samplesOf(this.#tones);
    const buffer = this.#player.fromSamples(left, right, SAMPLE_RATE);
    this.#player.play({ buffer, stopped: () => {}, ended: () => this.#enable(true) });
  }

  #answer(index) {
    this.#player.stop();
    this.#round += 1;
    this.#right += this.#tones[index] === "quiet" ? 1 : 0;
    if (this.#round < ROUNDS) {
      this.#next();
      this.#play.focus();
    } else {
      this.#done(this.#right >= NEEDED);
    }
  }
}

// The samples of each ear.
export function samplesOf(tones) {
  const step = Math.round((TONE_SECONDS + GAP_SECONDS) * SAMPLE_RATE);
  const length = Math.round(TONE_SECONDS * SAMPLE_RATE);
  const left = new Float32Array(step * tones.length);
  const right = new Float32Array(left.length);
  tones.forEach((tone, index) => {
    const level = tone === "quiet" ? QUIET : LOUD;
    for (let at = 0; at < length; at += 1) {
      const edge = Math.min(at, length - at) / (RAMP_SECONDS * SAMPLE_RATE);
      const wave = Math.sin((2 * Math.PI * HERTZ * at) / SAMPLE_RATE) * level * Math.min(1, edge);
      left[index * step + at] = wave;
      right[index * step + at] = tone === "turned" ? -wave : wave;
    }
  });
  return [left, right];
}

function shuffled(values) {
  const keyed = values.map((value) => [Math.random(), value]);
  return keyed.sort(([one], [other]) => one - other).map(([, value]) => value);
}
