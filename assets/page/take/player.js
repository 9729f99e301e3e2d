// The player of the take: the same one while it is generated and when it is finished.
// gradio starts it with: element, props.value ({rate} of the chosen model, LiveRun.state of a run,
// and {take} of a finished take as `player_take` makes it), server.hear({run, from}), watch.

import { Arrival, samplesOf } from "./arrival.js";
import { Sound } from "./sound.js";
import { Waveform } from "./waveform.js";
import { SpokenWords } from "./words.js";

const DRAW_MS = 100;
const ENOUGH_SECONDS = 0.3; // that arrived before playback starts: a late piece leaves no gap
const STEP_SECONDS = 1; // of the arrow keys
const SWITCH = "dia-play-as-made"; // its name in the browser's storage
const NAMES = { playing: "Pause", stalled: "Pause", waiting: "Play now" };
const LOST = "The take cannot be loaded. Reload the page, or see Earlier takes.";

export class TakePlayer {
  #element;
  #props;
  #server;
  #parts;
  #waveform;
  #spoken;
  #sound = new Sound(() => this.#advance());
  #arrival = null; // of the run whose sound this is
  #file = null; // of the finished take whose sound this is, or soon will be
  #isFinal = false; // the sound is that of the file
  #rate = 0; // samples per second of the chosen model
  #wanted = false; // it is to play as soon as it can
  #isNow = false; // without waiting, although there may be gaps
  #isPressed = false; // Generate was pressed, and the state of its run has not arrived yet
  #problem = "";

  constructor({ element, props, server, watch }) {
    this.#element = element;
    this.#props = props;
    this.#server = server;
    const find = (name) => element.querySelector(`.player-${name}`);
    this.#parts = Object.fromEntries(
      ["play", "position", "time", "speed", "text", "switch", "label"].map((name) =>
        [name, find(name)]));
    this.#waveform = new Waveform(find("waveform"));
    this.#spoken = new SpokenWords(find("words"));
    this.#listen();
    // While it waits for sound, every state and every piece that arrives calls #advance.
    setInterval(() => { if (this.#sound.isPlaying) this.#advance(); }, DRAW_MS);
    new ResizeObserver(() => this.#draw()).observe(element);
    watch("value", () => this.#update());
    this.#update();
  }

  // Called by one_sound.js when something else starts to play.
  pause() {
    this.#wanted = false;
    this.#sound.stop();
    this.#sound.suspend();
    this.#show();
  }

  #listen() {
    const { play, position, speed, switch: box } = this.#parts;
    play.addEventListener("click", () => this.#press());
    position.addEventListener("input", () => this.#seek(Number(position.value)));
    position.addEventListener("keydown", (event) => this.#step(event));
    position.addEventListener("focus", () => this.#describe());
    speed.addEventListener("change", () => {
      this.#sound.speed = Number(speed.value);
      this.#advance();
    });
    box.checked = localStorage.getItem(SWITCH) !== "off";
    box.addEventListener("change", () => {
      localStorage.setItem(SWITCH, box.checked ? "on" : "off");
      this.#show();
    });
    document.addEventListener("click", (event) => {
      if (event.target.closest("#generate")) this.#generate();
      if (event.target.closest("#stop")) this.pause();
    }, { capture: true });
  }

  // Generate was pressed. Browsers allow audio to start only after a click.
  #generate() {
    this.#clear();
    this.#isPressed = true;
    if (this.#parts.switch.checked) this.#unlock(this.#rate);
    this.#show();
    showTake();
  }

  #press() {
    const state = this.#state;
    if (state === "playing" || state === "stalled") {
      this.pause();
      return;
    }
    this.#isNow = state === "waiting";
    this.#wanted = true;
    if (this.#sound.isAtEnd) this.#sound.seek(0);
    this.#unlock(this.#sound.rate || this.#rate);
    this.#advance();
  }

  #seek(seconds) {
    this.#sound.seek(seconds);
    this.#advance();
    this.#describe();
  }

  #step(event) {
    const { position, duration } = this.#sound;
    const places = {
      ArrowLeft: position - STEP_SECONDS, ArrowDown: position - STEP_SECONDS,
      ArrowRight: position + STEP_SECONDS, ArrowUp: position + STEP_SECONDS,
      PageDown: position - 5 * STEP_SECONDS, PageUp: position + 5 * STEP_SECONDS,
      Home: 0, End: duration,
    };
    if (!(event.key in places)) return;
    event.preventDefault();
    this.#seek(places[event.key]);
  }

  #unlock(rate) {
    document.dispatchEvent(new CustomEvent("dia-play", { detail: this }));
    this.#sound.unlock(rate);
  }

  #clear(rate = 0) {
    this.#sound.reset(rate);
    this.#waveform.clear();
    this.#spoken.set();
    this.#arrival = this.#file = null;
    this.#wanted = this.#isNow = this.#isFinal = false;
    this.#problem = "";
  }

  // A new state of a run, or another take.
  #update() {
    const { run, rate, take, ...state } = this.#props.value || {};
    if (rate) this.#rate = rate;
    if (run && this.#arrival?.run !== run) this.#begin(run);
    if (run) this.#arrival.update({ rate: this.#rate, ...state });
    if (run && !take) this.#spoken.update(state);
    if (take && take.file !== this.#file) this.#load(take, Boolean(run) && !take.label);
    this.#parts.label.textContent = take?.label ?? "";
    this.#advance();
  }

  #begin(run) {
    this.#clear(this.#rate);
    this.#wanted = this.#isPressed && this.#parts.switch.checked;
    this.#isPressed = false;
    this.#arrival = new Arrival(run, this.#server.hear, (samples, rate, isComplete) => {
      if (this.#arrival?.run !== run || this.#isFinal) return;
      if (rate) this.#sound.rate = rate;
      // If the model was changed after the click, sound was allowed at another rate.
      if (this.#wanted && samples.length && !this.#sound.isAllowed) this.#sound.unlock(rate);
      this.#sound.append(samples);
      this.#sound.isComplete = isComplete;
      this.#advance();
    });
  }

  // isSame: it is the take whose pieces arrived, so that playback goes on.
  async #load(take, isSame) {
    if (!isSame) this.#clear(take.rate);
    this.#file = take.file;
    this.#spoken.set(take);
    const samples = await samplesOf(take.file, take.rate).catch(() => null);
    if (this.#file !== take.file) return;
    if (samples) {
      this.#sound.rate = take.rate;
      this.#sound.replace(samples);
      this.#isFinal = true;
      this.#waveform.clear();
    } else if (!isSame) this.#problem = LOST;
    this.#advance();
  }

  // Plays whatever is there.
  #advance() {
    const sound = this.#sound;
    if (this.#wanted && sound.isAllowed && this.#canGoOn()) {
      this.#isNow = false;
      sound.send();
    }
    // A take without sound is at its end too; one whose sound is still being fetched is not.
    if (this.#wanted && sound.isAtEnd) {
      this.#wanted = false;
      sound.suspend();
    }
    this.#show();
  }

  #canGoOn() {
    const sound = this.#sound;
    if (sound.isPlaying || sound.isComplete) return true;
    const { position, duration, speed } = sound;
    if (duration - position < ENOUGH_SECONDS) return false;
    return this.#isNow || this.#arrival?.secondsToWait(position, speed) === 0;
  }

  #isOver() {
    return !this.#arrival || Boolean(this.#arrival.state.done);
  }

  get #state() {
    const { duration, position, isPlaying, isAllowed, isAtEnd } = this.#sound;
    if (!duration) return "empty";
    if (isAtEnd) return "over";
    if (!this.#wanted) return position > 0 ? "paused" : "ready";
    if (!isAllowed) return "blocked";
    if (isPlaying) return "playing";
    return position > 0 ? "stalled" : "waiting";
  }

  // Seconds of the whole take, an estimate until its end.
  get #total() {
    const expected = this.#isOver() ? 0 : this.#arrival.state.total || 0;
    return Math.max(this.#sound.duration, expected);
  }

  #show() {
    const state = this.#state;
    const { position, duration } = this.#sound;
    const { play, position: slider, time, text } = this.#parts;
    this.#element.dataset.player = state;
    this.#element.dataset.position = position.toFixed(2);
    play.disabled = slider.disabled = state === "empty";
    const name = NAMES[state] ?? "Play";
    if (play.getAttribute("aria-label") !== name) play.setAttribute("aria-label", name);
    slider.max = this.#total.toFixed(2);
    slider.value = position.toFixed(2);
    if (document.activeElement !== slider || !this.#sound.isPlaying) this.#describe();
    const words = duration ? `${clock(position)} / ${clock(this.#total)}` : "";
    if (time.textContent !== words) time.textContent = words;
    const message = this.#words(state);
    if (text.textContent !== message) text.textContent = message;
    this.#spoken.show(position);
    this.#draw();
  }

  // What screen readers say of the position; not while it moves by itself.
  #describe() {
    const { position, duration } = this.#sound;
    const words = `${Math.round(position)} of ${Math.round(duration)} seconds`;
    this.#parts.position.setAttribute("aria-valuetext", words);
  }

  #draw() {
    this.#waveform.add(this.#sound.samples, this.#sound.rate);
    this.#waveform.draw(this.#sound.position, this.#total);
  }

  #words(state) {
    if (this.#problem) return this.#problem;
    const { position, duration, speed } = this.#sound;
    switch (state) {
      case "empty":
        if (this.#arrival && this.#isOver()) return "No sound was generated.";
        return this.#parts.switch.checked ? "The take plays while it is generated."
          : "You can listen while the take is generated.";
      case "waiting":
        return startsIn("Starts", this.#arrival?.secondsToWait(position, speed) ?? null);
      case "stalled":
        return startsIn("Continues", this.#arrival?.secondsToWait(position, speed) ?? null);
      case "blocked":
        return "Press Play: this browser does not start sound by itself.";
      default:
        return this.#isOver() ? "" : `${duration.toFixed(1)} s ready`;
    }
  }
}

function clock(seconds) {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

function startsIn(word, seconds) {
  // Without a figure: the one that the page shows is the status's, until the take is complete.
  if (seconds !== null && seconds < 1) return `${word} in a moment.`;
  return `${word} as soon as it can play to its end without a gap.`;
}

// On a phone the take is below the script.
function showTake() {
  const { bottom } = document.querySelector("#take").getBoundingClientRect();
  const { top } = document.querySelector("#status").getBoundingClientRect();
  if (top >= 0 && bottom <= window.innerHeight) return;
  const isCalm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  document.querySelector("#take-area").scrollIntoView({ behavior: isCalm ? "auto" : "smooth" });
}
