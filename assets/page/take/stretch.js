// Speech faster or slower at the same pitch (WSOLA, Verhelst and Roelands 1993): pieces of the wave
// are joined where they continue the piece before best.

const FRAME = 0.02; // seconds of output that each join makes
const SEARCH = 0.01; // seconds to both sides of a piece's place, in which the best one is looked for
const COARSE = 4; // samples between two places that are compared, and between two samples of them

export class Stretch {
  #samples = null;
  #frame;
  #search;
  #speed;
  #place; // where the next piece would begin without the search, in samples; fractional
  #next; // where the piece before goes on

  // from: the first sample.
  constructor(rate, speed, from) {
    this.#frame = Math.round(FRAME * rate);
    this.#search = Math.round(SEARCH * rate);
    this.#speed = speed;
    this.#place = from;
    this.#next = from;
  }

  // The first sample that is not used up.
  get place() {
    return Math.round(this.#place);
  }

  // About `length` samples of output; fewer where the input ends, none where a frame does not fit.
  // isComplete: no input follows, so that the last frame is filled up with silence.
  read(samples, available, isComplete, length) {
    this.#samples = samples.subarray(0, available);
    const needed = isComplete ? 1 : 2 * this.#frame + this.#search;
    const frames = [];
    for (let made = 0; made < length && this.#place + needed <= available; made += this.#frame) {
      frames.push(this.#read());
    }
    const output = new Float32Array(frames.length * this.#frame);
    frames.forEach((frame, index) => output.set(frame, index * this.#frame));
    return output;
  }

  #read() {
    const begin = this.#best(Math.round(this.#place));
    const output = new Float32Array(this.#frame);
    for (let index = 0; index < this.#frame; index += 1) {
      const part = (index + 0.5) / this.#frame;
      output[index] = (1 - part) * this.#at(this.#next + index) + part * this.#at(begin + index);
    }
    this.#next = begin + this.#frame;
    this.#place += this.#frame * this.#speed;
    return output;
  }

  #at(index) {
    return this.#samples[index] ?? 0;
  }

  // The place near `place` that is most like what follows the piece before.
  #best(place) {
    let best = place;
    let most = -Infinity;
    for (let shift = -this.#search; shift <= this.#search; shift += COARSE) {
      const begin = Math.max(0, place + shift);
      let product = 0;
      let energy = 1e-6;
      for (let index = 0; index < this.#frame; index += COARSE) {
        const sample = this.#at(begin + index);
        product += sample * this.#at(this.#next + index);
        energy += sample * sample;
      }
      const likeness = product / Math.sqrt(energy);
      if (likeness > most) [most, best] = [likeness, begin];
    }
    return best;
  }
}
