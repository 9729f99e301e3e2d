// Plays one clip at a time through Web Audio. A clip is {buffer, stopped, ended}: the decoded samples,
// a function that is called with the start and the end of what was played, in seconds, when it stops,
// and one that is called when it has come to its end, if there is one.

const RAMP = 0.005; // seconds of fade at each start and stop: a cut within a wave clicks
// Seconds from a press to the fade. The sound runs on in another thread: on a busy machine a fade
// that is to begin now would be over before it is known there.
const LEAD = 0.05;
const EXCERPT_FADE = 0.05; // seconds
const QUIET_MS = 500; // from a stop until the browser's sound is switched off, which saves power

export class Player {
  #context = null; // AudioContext, made with the first clip
  #playback = null; // {clip, source, gain, began, offset, until}
  #requests = 0;

  // `changed` is called when a clip has started, when it has come to its end, and when another
  // player of the page has paused it.
  constructor(changed) {
    this.changed = changed;
  }

  // The clip that is playing, or null.
  get clip() {
    return this.#playback && this.#playback.clip;
  }

  // Seconds from the start of the clip that is playing.
  get position() {
    const { began, offset, until } = this.#playback;
    const played = Math.max(0, this.#context.currentTime - began);
    return Math.min(offset + played, until);
  }

  // The same as a part of the clip's length.
  get fraction() {
    return this.position / this.clip.buffer.duration;
  }

  // Where the clip that is playing was started, in seconds.
  get offset() {
    return this.#playback.offset;
  }

  // An AudioBuffer from an audio file: its bytes, or the same in base64.
  async decode(file) {
    if (typeof file !== "string") return this.#opened.decodeAudioData(file);
    const bytes = Uint8Array.from(atob(file), (char) => char.charCodeAt(0));
    return this.#opened.decodeAudioData(bytes.buffer);
  }

  // An AudioBuffer of what each ear hears: Float32Arrays of one length.
  fromSamples(left, right, sampleRate) {
    const buffer = this.#opened.createBuffer(2, left.length, sampleRate);
    buffer.copyToChannel(left, 0);
    buffer.copyToChannel(right, 1);
    return buffer;
  }

  get #opened() {
    if (!this.#context) {
      this.#context = new AudioContext();
      this.#context.suspend();
    }
    return this.#context;
  }

  // The first `seconds` of each buffer, one after the other, faded out where they are cut.
  excerpt(buffers, seconds) {
    const { sampleRate } = buffers[0];
    const parts = buffers.map((buffer) => buffer.getChannelData(0).slice(0, seconds * sampleRate));
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    const excerpt = this.#context.createBuffer(1, length, sampleRate);
    const fade = Math.round(EXCERPT_FADE * sampleRate);
    let start = 0;
    for (const part of parts) {
      for (let left = 0; left < Math.min(fade, part.length); left += 1) {
        part[part.length - 1 - left] *= left / fade;
      }
      excerpt.copyToChannel(part, 0, start);
      start += part.length;
    }
    return excerpt;
  }

  // Plays a clip from `offset` to `until`, in seconds.
  async play(clip, offset = 0, until = clip.buffer.duration) {
    this.stop();
    document.dispatchEvent(new CustomEvent("dia-play", { detail: this }));
    const request = this.#requests;
    if (this.#context.state !== "running") await this.#context.resume();
    // Another clip may have been started, or this one stopped, while the context resumed.
    if (request !== this.#requests) return;
    const source = this.#context.createBufferSource();
    const { gain } = this.#connect(source);
    const began = this.#context.currentTime + LEAD;
    const playback = { clip, source, gain, began, offset, until };
    gain.setValueAtTime(0, began);
    gain.linearRampToValueAtTime(1, began + RAMP);
    if (until < clip.buffer.duration) {
      gain.setValueAtTime(1, began + until - offset - RAMP);
      gain.linearRampToValueAtTime(0, began + until - offset);
    }
    source.buffer = clip.buffer;
    source.addEventListener("ended", () => {
      if (this.#playback === playback) {
        this.stop(until);
        if (clip.ended) clip.ended();
        this.changed();
      }
    });
    source.start(began, offset, until - offset);
    this.#playback = playback;
    this.changed();
  }

  // For one_sound.js: something else on the page has started to play.
  pause() {
    this.stop();
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
    gain.cancelScheduledValues(end);
    gain.setValueAtTime(1, end);
    gain.linearRampToValueAtTime(0, end + RAMP);
    source.stop(end + RAMP);
    clip.stopped(offset, Math.max(offset, position));
    const request = this.#requests;
    setTimeout(() => {
      // Not where this stop was the beginning of another clip.
      if (request === this.#requests && !this.#playback) this.#context.suspend();
    }, QUIET_MS);
  }

  #connect(source) {
    const node = this.#context.createGain();
    source.connect(node).connect(this.#context.destination);
    return node;
  }
}
