// Plays the samples of one take as they arrive, with Web Audio: no encoder and no file, so that
// there is no gap between pieces. Playback never restarts and never jumps.

// Seconds from now to the next sample to be scheduled; less was too late on a busy machine.
const LEAD = 0.05;

export class Playback {
  #context;
  #rate;
  #output;
  #queued = []; // Float32Arrays that are not scheduled yet
  #queuedSamples = 0;
  #sentSamples = 0;
  #end = 0; // end of the last scheduled sample, on the context's clock

  // `rate` is that of the take and of the context, so that pieces are not resampled.
  constructor(context, rate) {
    this.#context = context;
    this.#rate = rate;
    this.#output = context.createGain();
    this.#output.connect(context.destination);
  }

  // Seconds that are queued.
  get queued() {
    return this.#queuedSamples / this.#rate;
  }

  // Seconds that are scheduled and not played yet.
  get ahead() {
    return Math.max(0, this.#end - this.#context.currentTime);
  }

  // Seconds played so far.
  get heard() {
    return Math.max(0, this.#sentSamples / this.#rate - this.ahead);
  }

  push(samples) {
    this.#queued.push(samples);
    this.#queuedSamples += samples.length;
  }

  // Schedules everything that is queued.
  send() {
    if (!this.#queuedSamples) return;
    this.#end = Math.max(this.#end, this.#context.currentTime + LEAD);
    for (const samples of this.#queued) {
      const buffer = this.#context.createBuffer(1, samples.length, this.#rate);
      buffer.copyToChannel(samples, 0);
      const source = this.#context.createBufferSource();
      source.buffer = buffer;
      source.connect(this.#output);
      source.start(this.#end);
      this.#end += buffer.duration;
    }
    this.#sentSamples += this.#queuedSamples;
    this.#queued = [];
    this.#queuedSamples = 0;
  }

  close() {
    this.#output.disconnect();
  }
}
