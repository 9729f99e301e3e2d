// Brings a take's samples to the page: pieces of a running take, and a finished take's file.

// The time that the rest of a take needs is an estimate.
const SPARE_FACTOR = 1.25;
const SPARE_SECONDS = 0.3;

// The pieces of one running take. `state` is that of LiveRun.state (ui/generate/live_audio.py).
export class Arrival {
  state = {};
  #ask;
  #arrived;
  #fetched = 0; // samples
  #isFetching = false;
  #isComplete = false;

  // ask({run, from}): the server's answer; arrived(samples, rate, isComplete): called with each.
  constructor(run, ask, arrived) {
    this.run = run;
    this.#ask = ask;
    this.#arrived = arrived;
  }

  // A new state of the run; fetches what is new.
  async update(state) {
    this.state = state;
    if (this.#isFetching || this.#isComplete) return;
    if (!state.done && state.ready * state.rate <= this.#fetched) return;
    this.#isFetching = true;
    // If the connection fails, the next state repeats the request.
    const part = await this.#ask({ run: this.run, from: this.#fetched }).catch(() => null);
    this.#isFetching = false;
    if (!part) return;
    const bytes = Uint8Array.from(atob(part.pcm), (char) => char.charCodeAt(0));
    const samples = Float32Array.from(new Int16Array(bytes.buffer), (value) => value / 32768);
    this.#fetched += samples.length;
    this.#isComplete = part.done;
    this.#arrived(samples, part.rate, part.done);
    // More may have come meanwhile. If there was nothing, the next state asks again.
    if (samples.length || this.state.done) this.update(this.state);
  }

  // Seconds until the take can be heard to its end from `position` without a gap, at a speed; null
  // if that is not known.
  secondsToWait(position, speed) {
    const { done, total, left, lag, ready, rate } = this.state;
    if (done) return 0;
    if (left === null || left === undefined) return null;
    // Until the end, audio arrives in blocks that are up to `lag` behind the tokens.
    const behind = lag + Math.max(0, ready - this.#fetched / rate);
    const audible = (total - behind - position) / speed;
    return Math.max(0, SPARE_FACTOR * left + SPARE_SECONDS - audible);
  }
}

// The samples of a file that the server has, float32 at its own rate in Hz.
export async function samplesOf(file, rate) {
  const path = file.split("/").map(encodeURIComponent).join("/");
  const answer = await fetch(new URL(`gradio_api/file=${path}`, document.baseURI));
  if (!answer.ok) throw new Error(`${answer.status}`);
  // Plays nothing, and resamples nothing at this rate.
  const decoder = new OfflineAudioContext(1, 1, rate);
  const buffer = await decoder.decodeAudioData(await answer.arrayBuffer());
  return buffer.getChannelData(0).slice();
}
