// Plays a take while it is being made. gradio runs this once with: element (the part of the page),
// props.value ({run, ready, done}, updated while a take is made), server.hear({run, from}), watch.
// Web Audio only: no encoder, no file; what was heard is never restarted and never jumps.
const ENOUGH_SECONDS = 1.0; // gathered before (re)starting, so that a slow run does not stutter
const button = element.querySelector("button");
const text = element.querySelector(".live-text");
let take = null;

function fresh(run) {
  return { run, got: 0, ready: 0, done: false, rate: 0, listening: false, fetching: false,
           context: null, end: 0, held: [], heldSamples: 0, played: 0 };
}

function drop() {
  if (take && take.context) take.context.close();
  take = null;
}

async function fetchMore(mine) {
  if (mine.fetching || (mine.done && mine.complete)) return;
  mine.fetching = true;
  const part = await server.hear({ run: mine.run, from: mine.got });
  mine.fetching = false;
  if (mine !== take || !part) return;
  if (part.pcm) {
    const bytes = Uint8Array.from(atob(part.pcm), (char) => char.charCodeAt(0));
    const samples = Float32Array.from(new Int16Array(bytes.buffer), (value) => value / 32768);
    mine.rate = part.rate;
    mine.got += samples.length;
    mine.held.push(samples);
    mine.heldSamples += samples.length;
  }
  mine.complete = part.done;
  play(mine);
}

function play(mine) {
  if (!mine.rate || !mine.heldSamples) return show();
  // At the take's own rate, the pieces meet without a seam: nothing is resampled piece by piece.
  mine.context ??= new AudioContext({ sampleRate: mine.rate });
  const now = mine.context.currentTime;
  const dry = mine.end < now + 0.02;
  if (dry && !mine.complete && mine.heldSamples < ENOUGH_SECONDS * mine.rate) return show();
  if (dry) mine.end = now + 0.05;
  for (const samples of mine.held) {
    const buffer = mine.context.createBuffer(1, samples.length, mine.rate);
    buffer.copyToChannel(samples, 0);
    const source = mine.context.createBufferSource();
    source.buffer = buffer;
    source.connect(mine.context.destination);
    source.start(mine.end);
    mine.end += buffer.duration;
  }
  mine.held = [];
  mine.heldSamples = 0;
  show();
}

// Seconds heard so far: what was handed to the speakers, less what still lies ahead.
function heard(mine) {
  if (!mine.context || !mine.rate) return 0;
  const scheduled = (mine.got - mine.heldSamples) / mine.rate;
  return Math.max(0, scheduled - Math.max(0, mine.end - mine.context.currentTime));
}

function show() {
  const ready = take ? take.ready : 0;
  const seconds = take ? heard(take) : 0;
  const ended = take && take.complete && take.context && take.end <= take.context.currentTime;
  if (ended) take.listening = false;
  const over = take && take.done && !take.listening;
  // A run that ended without a sound, as a failed one does, leaves nothing to be heard.
  const state = !ready ? "empty" : take.listening ? "playing"
    : over ? "over" : "ready";
  element.dataset.live = state;
  element.dataset.heard = seconds.toFixed(2);
  button.disabled = state === "empty" || state === "over";
  button.textContent = state === "playing" ? "Pause" : "Listen so far";
  text.textContent = {
    empty: "You can listen while the take is generated.",
    ready: `${ready.toFixed(1)} s ready`,
    playing: `${seconds.toFixed(1)} of ${ready.toFixed(1)} s`,
    over: "The take is in the player below.",
  }[state];
}

button.addEventListener("click", async () => {
  if (!take) return;
  take.listening = !take.listening;
  if (take.listening) {
    if (take.context) await take.context.resume();
    await fetchMore(take);
  } else if (take.context) {
    await take.context.suspend();
  }
  show();
});

watch("value", () => {
  const { run, ready, done } = props.value || {};
  if (!run) return;
  if (!take || take.run !== run) {
    drop();
    take = fresh(run);
  }
  take.ready = ready;
  take.done = done;
  if (take.listening) fetchMore(take);
  show();
});

setInterval(() => {
  if (!take || !take.listening) return;
  if (!take.complete && take.ready * take.rate > take.got) fetchMore(take);
  show();
}, 250);
show();
