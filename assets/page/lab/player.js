// Plays one clip at a time through Web Audio. A clip is {buffer, stopped}: the decoded samples, and
// a function that is called with the position and the seconds that were played, when it stops.

const RAMP = 0.005; // seconds of fade at each start and stop: a cut within a wave clicks
// Seconds from a press to the fade. The sound runs on in another thread: on a busy machine a fade
// that is to begin now would be over before it is known there.
const LEAD = 0.02;

export class Player {
  #context = null; // AudioContext, made with the first clip
  #playback = null; // {clip, source, gain, began, offset}
  #requests = 0;

  // `changed` is called when a clip has started and when it has come to its end.
  constructor(changed) {
    this.changed = changed;
  }

  // The clip that is playing, or null.
  get clip() {
    return this.#playback && this.#playback.clip;
  }

  // Seconds from the start of the clip that is playing.
  get position() {
    const { clip, began, offset } = this.#playback;
    const played = Math.max(0, this.#context.currentTime - began);
    return Math.min(offset + played, clip.buffer.duration);
  }

  // The same as a part of the clip's length; 0 if nothing is playing.
  get fraction() {
    return this.clip ? this.position / this.clip.buffer.duration : 0;
  }

  // Seconds of this clip since it was started; 0 if it is not playing.
  played(clip) {
    return clip && this.clip === clip ? this.position - this.#playback.offset : 0;
  }

  // An AudioBuffer from a WAV file in base64.
  async decode(wav) {
    const bytes = Uint8Array.from(atob(wav), (char) => char.charCodeAt(0));
    this.#context ??= new AudioContext();
    return this.#context.decodeAudioData(bytes.buffer);
  }

  async play(clip, offset = 0) {
    this.stop();
    const request = this.#requests;
    if (this.#context.state !== "running") await this.#context.resume();
    // Another clip may have been started, or this one stopped, while the context resumed.
    if (request !== this.#requests) return;
    const source = this.#context.createBufferSource();
    const { gain } = this.#connect(source);
    const began = this.#context.currentTime + LEAD;
    const playback = { clip, source, gain, began, offset };
    gain.setValueAtTime(0, began);
    gain.linearRampToValueAtTime(1, began + RAMP);
    source.buffer = clip.buffer;
    source.addEventListener("ended", () => {
      if (this.#playback === playback) {
        this.stop(clip.buffer.duration);
        this.changed();
      }
    });
    source.start(began, offset);
    this.#playback = playback;
    this.changed();
  }

  // Stops what is playing, if anything.
  stop(position = this.#playback && this.position) {
    this.#requests += 1;
    if (!this.#playback) return;
    const { clip, source, gain, began, offset } = this.#playback;
    this.#playback = null;
    // Not within the fade at its start.
    const end = Math.max(this.#context.currentTime + LEAD, began + RAMP);
    gain.setValueAtTime(1, end);
    gain.linearRampToValueAtTime(0, end + RAMP);
    source.stop(end + RAMP);
    clip.stopped(position, Math.max(0, position - offset));
  }

  #connect(source) {
    const node = this.#context.createGain();
    source.connect(node).connect(this.#context.destination);
    return node;
  }
}
