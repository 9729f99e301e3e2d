// The line that plays a take while it is generated, above the player of the finished take.
// gradio starts it with: element, props.value (see LiveRun.state in ui/generate/live_audio.py),
// server.hear({run, from}), trigger, watch.

import { Playback } from "./playback.js";

const DRAW_MS = 100;
const ENOUGH_SECONDS = 0.3; // buffered before playback starts, so that a late piece leaves no gap
// The time that the rest of a take needs is an estimate.
const SPARE_FACTOR = 1.25;
const SPARE_SECONDS = 0.3;
const SWITCH = "dia-play-as-made"; // its name in the browser's storage

const BUTTONS = { playing: "Pause", stalled: "Pause", paused: "Resume", waiting: "Listen now" };

export class LiveStrip {
  #element;
  #props;
  #server;
  #trigger;
  #button;
  #text;
  #switch;
  #take = null;
  #context = null; // AudioContext, created by a click
  #rate = 0; // samples per second of the chosen model
  #isPressed = false; // Generate was pressed, and the state of its run has not arrived yet

  constructor({ element, props, server, trigger, watch }) {
    this.#element = element;
    this.#props = props;
    this.#server = server;
    this.#trigger = trigger;
    this.#button = element.querySelector("button");
    this.#text = element.querySelector(".live-text");
    this.#switch = element.querySelector("input");
    this.#switch.checked = localStorage.getItem(SWITCH) !== "off";
    this.#switch.addEventListener("change", () => {
      localStorage.setItem(SWITCH, this.#switch.checked ? "on" : "off");
      this.#show();
    });
    this.#button.addEventListener("click", () => this.#press());
    document.addEventListener("click", (event) => {
      if (event.target.closest("#generate")) this.#generate();
      if (event.target.closest("#stop")) this.#pause();
    }, { capture: true });
    // A click on the waveform of the finished take continues from there.
    document.addEventListener("click", (event) => {
      if (this.#state !== "playing" || !event.target.closest("#take .waveform-container")) return;
      document.querySelector("#take .play-pause-button").click();
    });
    setInterval(() => { if (this.#take?.wanted) this.#advance(); }, DRAW_MS);
    watch("value", () => this.#update());
    this.#update();
  }

  // Called by one_sound.js when something else starts to play. If that is the finished take, it
  // keeps its own position.
  pause() {
    if (this.#take) this.#take.followed = this.#heard;
    this.#pause();
  }

  #pause() {
    if (!this.#take) return;
    this.#take.wanted = false;
    this.#context?.suspend();
    this.#show();
  }

  // Generate was pressed. Browsers allow audio to start only after a click.
  #generate() {
    this.#drop();
    this.#isPressed = true;
    if (this.#switch.checked) this.#unlock(this.#rate);
    this.#show();
    showTake();
  }

  #press() {
    const take = this.#take;
    if (take.wanted && this.#context?.state === "running" && this.#state !== "waiting") {
      this.#pause();
      return;
    }
    // Without waiting, there may be gaps.
    take.now = this.#state === "waiting";
    take.wanted = true;
    this.#unlock(take.rate);
    this.#advance();
  }

  #unlock(rate) {
    document.dispatchEvent(new CustomEvent("dia-play", { detail: this }));
    if (!rate) return;
    if (this.#context?.sampleRate !== rate) {
      this.#context?.close();
      this.#context = new AudioContext({ sampleRate: rate });
      this.#context.addEventListener("statechange", () => this.#advance());
      // On a phone: plays like a video, also if the ringer is off.
      if (navigator.audioSession) navigator.audioSession.type = "playback";
    }
    this.#context.resume();
  }

  #drop() {
    this.#take?.playback?.close();
    this.#take = null;
  }

  // A new state of the run.
  #update() {
    const { run, rate, ...state } = this.#props.value || {};
    if (rate) this.#rate = rate;
    if (run && this.#take?.run !== run) {
      this.#drop();
      const wanted = this.#isPressed && this.#switch.checked;
      this.#isPressed = false;
      this.#take = { run, wanted, now: false, playback: null, fetched: 0, isFetching: false,
                     isComplete: false, isOver: false, followed: 0 };
    }
    if (run) Object.assign(this.#take, { rate: this.#rate }, state);
    this.#advance();
  }

  async #fetch(take) {
    if (take.isFetching || take.isComplete) return;
    if (!take.done && take.ready * take.rate <= take.fetched) return;
    take.isFetching = true;
    const question = { run: take.run, from: take.fetched };
    // If the connection fails, the next call repeats the request.
    const part = await this.#server.hear(question).catch(() => null);
    take.isFetching = false;
    if (take !== this.#take || !part) return;
    if (part.pcm) {
      const bytes = Uint8Array.from(atob(part.pcm), (char) => char.charCodeAt(0));
      const samples = Float32Array.from(new Int16Array(bytes.buffer), (value) => value / 32768);
      // If the model was changed after the click, the context has another rate.
      if (this.#context?.sampleRate !== part.rate) this.#unlock(part.rate);
      take.playback ??= new Playback(this.#context, part.rate);
      take.playback.push(samples);
      take.fetched += samples.length;
    }
    take.isComplete = part.done;
    this.#advance();
  }

  // Fetches and plays whatever is ready.
  #advance() {
    const take = this.#take;
    if (take && take.done && !take.ready) this.#pause();
    else if (take && take.wanted) {
      this.#fetch(take);
      // If the browser blocks audio, any later click on the page would start it.
      if (take.playback && this.#context.state === "running") this.#play(take, take.playback);
    }
    this.#show();
  }

  #play(take, playback) {
    const isEnough = take.isComplete || playback.queued >= ENOUGH_SECONDS;
    if (playback.ahead || (isEnough && (take.now || secondsToWait(take) === 0))) {
      take.now = false;
      playback.send();
    }
    if (take.isComplete && !playback.ahead) {
      take.wanted = false;
      take.isOver = true;
      this.#context.suspend();
    }
  }

  get #heard() {
    return this.#take?.playback?.heard ?? 0;
  }

  get #state() {
    const take = this.#take;
    const heard = this.#heard;
    if (!take || !take.ready) return "empty";
    if (take.isOver || (take.done && !take.wanted && !heard)) return "over";
    if (!take.wanted) return heard ? "paused" : "ready";
    if (this.#context?.state !== "running") return "blocked";
    if (take.playback && take.playback.ahead) return "playing";
    return heard ? "stalled" : "waiting";
  }

  #show() {
    const state = this.#state;
    const take = this.#take;
    const heard = this.#heard;
    this.#element.dataset.live = state;
    this.#element.dataset.heard = heard.toFixed(2);
    this.#button.disabled = state === "empty" || state === "over";
    this.#button.textContent = BUTTONS[state] || "Listen";
    this.#text.textContent = this.#words(state, heard);
    // The player of the finished take follows, so that it can continue from here.
    const position = state === "over" ? 0 : heard;
    if (take && take.done && take.followed !== position) {
      take.followed = position;
      this.#element.dataset.position = position.toFixed(2);
      this.#trigger("select");
    }
  }

  #words(state, heard) {
    const take = this.#take;
    switch (state) {
      case "empty":
        if (take?.done) return "No sound was generated.";
        return this.#switch.checked ? "The take plays while it is generated."
          : "You can listen while the take is generated.";
      case "waiting":
        return startsIn("Starts", secondsToWait(take));
      case "stalled":
        return startsIn("Continues", secondsToWait(take));
      case "blocked":
        return "Press Listen: this browser does not start sound by itself.";
      case "ready":
        return `${take.ready.toFixed(1)} s ready`;
      case "over":
        return "The take is in the player below.";
      default:
        return `${heard.toFixed(1)} of ${take.ready.toFixed(1)} s`;
    }
  }
}

// Seconds until playback can start without a gap; null if that is not known.
function secondsToWait({ done, total, left, lag, ready, fetched, rate, playback }) {
  if (done) return 0;
  if (left === null) return null;
  const heard = playback ? playback.heard : 0;
  // Until the end, audio arrives in blocks that are up to `lag` behind the tokens.
  const behind = lag + Math.max(0, ready - fetched / rate);
  return Math.max(0, SPARE_FACTOR * left + SPARE_SECONDS - (total - behind - heard));
}

function startsIn(word, seconds) {
  if (seconds === null || seconds < 1) return `${word} in a moment.`;
  const whole = Math.round(seconds);
  const minutes = `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${word} in about ${whole < 100 ? `${whole} s` : minutes}, so that it plays without a gap.`;
}

// On a phone the take is below the script.
function showTake() {
  const { bottom } = document.querySelector("#take").getBoundingClientRect();
  const { top } = document.querySelector("#status").getBoundingClientRect();
  if (top >= 0 && bottom <= window.innerHeight) return;
  const isCalm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  document.querySelector("#take-area").scrollIntoView({ behavior: isCalm ? "auto" : "smooth" });
}
