// Plays the samples of one take as they arrive: Web Audio only, no encoder and no file, so that the
// pieces meet without a seam. What was heard never restarts and never jumps.

// Seconds from now to a sample that is to be the next one heard: on a busy machine, less was late.
const LEAD = 0.05;

export class Playback {
  #context;
  #rate;
  #output;
  #queued = []; // Float32Arrays that are not on their way to the speakers yet
  #queuedSamples = 0;
  #sentSamples = 0;
  #end = 0; // when the last one sent will have been heard, on the context's clock

  // `rate` is that of the take, and of the context: nothing is resampled piece by piece.
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

  // Seconds that were sent and are still to be heard.
  get ahead() {
    return Math.max(0, this.#end - this.#context.currentTime);
  }

  // Seconds heard so far.
  get heard() {
    return Math.max(0, this.#sentSamples / this.#rate - this.ahead);
  }

  push(samples) {
    this.#queued.push(samples);
    this.#queuedSamples += samples.length;
  }

  // Sends what is queued to the speakers.
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
