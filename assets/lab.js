// The listening room: plays a pair of clips under neutral letters, takes the vote, shows the result.
// gradio runs this once with: element, props.value ({key, id, tick}), server.ask(question), watch,
// trigger. Which side is which is not known here before the server says so at the end.
const KEYS = { preference: { 1: "A", 2: "B", 0: "none" }, abx: { 1: "A", 2: "B" } };
const room = element.querySelector(".lab-room");
const page = (selector) => room.querySelector(selector);
let open = null; // {key, id} of the comparison on show
let state = null; // the server's last answer to "look"
let sound = null; // AudioContext, made with the first press
let clips = {}; // letter -> AudioBuffer of the present pair
let heard = {}; // letter -> seconds listened to
let playing = null; // {source, letter, began, offset, name}
let paused = { letter: "A", at: 0 };
let busy = false;

async function ask(question) {
  const answer = await server.ask({ ...open, ...question });
  if (answer && answer.error) {
    say(answer.error, true);
    return null;
  }
  return answer;
}

function say(text, problem = false) {
  const line = page(".lab-said");
  if (!line) return;
  line.textContent = text;
  line.classList.toggle("problem", problem);
}

async function look() {
  if (!open || !open.id) return draw();
  const asked = open.id;
  const answer = await ask({ do: "look" });
  if (answer && open.id === asked) take(answer);
}

// A new answer: the pair on show stays as it is, with what was listened to, while it is the same.
function take(answer) {
  const before = state && state.trial ? state.trial.id : null;
  const same = state && answer.trial && answer.trial.id === before;
  state = answer;
  if (same) return drawCounts();
  stop();
  clips = {};
  heard = {};
  paused = { letter: "A", at: 0 };
  draw();
  if (state.trial) fetchClips(state.trial);
}

async function fetchClips(trial) {
  for (const letter of trial.letters) {
    const answer = await ask({ do: "clip", trial: trial.id, letter });
    if (!answer || !state.trial || state.trial.id !== trial.id) return;
    clips[letter] = await decode(answer.wav);
  }
  drawPlayer();
}

async function decode(wav) {
  const bytes = Uint8Array.from(atob(wav), (char) => char.charCodeAt(0));
  sound ??= new AudioContext();
  return sound.decodeAudioData(bytes.buffer);
}

// Playing

async function play(letter, buffer, at, ended) {
  stop();
  await sound.resume();
  const source = sound.createBufferSource();
  source.buffer = buffer;
  source.connect(sound.destination);
  playing = { source, letter, began: sound.currentTime, offset: at };
  const mine = playing;
  source.onended = () => {
    if (playing !== mine) return;
    stop();
    paused.at = 0;
    if (ended) ended();
    drawPlayer();
  };
  source.start(0, at);
  drawPlayer();
}

// Ends what plays and counts the seconds it was listened to.
function stop() {
  if (!playing) return;
  const mine = playing;
  playing = null;
  const at = Math.min(place(mine), mine.source.buffer.duration);
  if (mine.letter) {
    heard[mine.letter] = (heard[mine.letter] || 0) + Math.max(0, at - mine.offset);
    paused = { letter: mine.letter, at };
  }
  mine.source.onended = null;
  mine.source.stop();
}

function place(mine) {
  return mine.offset + sound.currentTime - mine.began;
}

function listened(letter) {
  const now = playing && playing.letter === letter
    ? Math.min(place(playing), playing.source.buffer.duration) - playing.offset : 0;
  return (heard[letter] || 0) + now;
}

// To a clip: from its start, or, where both keep step in time, from where the other one is.
function switchTo(letter) {
  if (!state || !state.trial || !clips[letter]) return;
  const at = state.trial.aligned && playing && playing.letter !== letter ? place(playing) : 0;
  play(letter, clips[letter], Math.min(at, clips[letter].duration));
}

function toggle() {
  if (!state || !state.trial) return;
  if (playing) {
    stop();
    return drawPlayer();
  }
  const { letter, at } = paused;
  if (clips[letter]) play(letter, clips[letter], at < clips[letter].duration - 0.05 ? at : 0);
}

function ready() {
  return Boolean(state && state.trial)
    && [...state.trial.letters].every((letter) => listened(letter) >= state.trial.needed);
}

async function vote(answer) {
  if (busy || !ready()) {
    if (state && state.trial) say(`Listen to each clip for ${state.trial.needed.toFixed(1)} s first.`);
    return;
  }
  busy = true;
  stop();
  const strength = page(".lab-strength input:checked");
  const found = await ask({
    do: "vote", trial: state.trial.id, vote: answer, heard,
    strength: strength ? Number(strength.value) : null, note: page(".lab-note").value,
  });
  busy = false;
  if (!found) return drawPlayer();
  take(found);
  say(found.trial ? "Counted. The next pair:" : "Counted.");
  room.focus();
  trigger("click", { done: found.open });
}

async function reveal(button) {
  if (button.dataset.sure !== "yes") {
    button.dataset.sure = "yes";
    button.textContent = "Really end it? No more votes will count";
    return;
  }
  const found = await ask({ do: "reveal" });
  if (!found) return;
  take(found);
  trigger("click", { done: true });
}

// Drawing. Scripts and names come as text and are set as text; the result is the server's own HTML.

function draw() {
  room.replaceChildren();
  room.dataset.state = !state ? "empty" : state.trial ? "listen" : state.open ? "open" : "unready";
  const said = make("p", "lab-said");
  said.setAttribute("role", "status");
  if (state && state.trial) drawTrial();
  else if (state && state.open) drawResult();
  else {
    const text = !state ? "Make a comparison above, or open a kept one."
      : state.making ? "The first pair is being made; you can listen as soon as it is there."
      : "No pair is ready: press Go on to make what is missing.";
    room.append(make("p", "lab-empty", text));
  }
  room.append(said);
  drawCounts();
}

function make(tag, name = "", text = "") {
  const node = document.createElement(tag);
  if (name) node.className = name;
  if (text) node.textContent = text;
  return node;
}

function button(name, text, press) {
  const node = make("button", name, text);
  node.type = "button";
  node.addEventListener("click", press);
  return node;
}

function drawTrial() {
  const { trial, kind } = state;
  room.append(make("h3", "lab-count"), make("p", "lab-script", trial.script));
  const player = make("div", "lab-player");
  player.setAttribute("role", "group");
  player.setAttribute("aria-label", "Player");
  for (const letter of trial.letters) {
    const one = button("lab-clip", "", () => switchTo(letter));
    one.dataset.letter = letter;
    one.setAttribute("aria-label", `Play clip ${letter}`);
    one.append(make("strong", "", letter), make("span", "lab-heard"));
    player.append(one);
  }
  const pause = button("lab-pause", "Play", toggle);
  const bar = make("div", "bar");
  bar.append(make("div", "bar-fill"));
  room.append(player, pause, bar);
  drawVotes(kind);
  drawPlayer();
}

function drawVotes(kind) {
  const names = kind === "abx"
    ? { A: "X is A", B: "X is B" }
    : { A: "A is better", B: "B is better", none: "No difference" };
  const votes = make("div", "lab-votes");
  votes.setAttribute("role", "group");
  votes.setAttribute("aria-label", "Your vote");
  for (const [key, answer] of Object.entries(KEYS[kind]).sort((a, b) => (b[0] > 0) - (a[0] > 0))) {
    const one = button("lab-vote", names[answer], () => vote(answer));
    one.dataset.vote = answer;
    one.append(make("kbd", "", key));
    votes.append(one);
  }
  room.append(votes);
  if (kind !== "abx") room.append(strengths());
  const label = make("label", "lab-note-label", "Note (optional) ");
  const note = make("input", "lab-note");
  note.maxLength = 500;
  label.append(note);
  const keys = kind === "abx" ? "space play or pause · A, B, X switch · 1 X is A · 2 X is B"
    : "space play or pause · A, B switch · 1 A is better · 2 B is better · 0 no difference";
  room.append(label, make("p", "small lab-keys", `Keys: ${keys}. Switching starts the clip anew.`));
  const end = button("lab-end", "End the test and reveal", () => reveal(end));
  room.append(end);
}

function strengths() {
  const group = make("fieldset", "lab-strength");
  group.append(make("legend", "", "How clearly? (optional)"));
  for (const [value, text] of [[1, "slightly"], [2, "clearly"], [3, "very much"]]) {
    const label = make("label");
    const input = make("input");
    input.type = "radio";
    input.name = "lab-strength";
    input.value = value;
    label.append(input, ` ${text}`);
    group.append(label);
  }
  return group;
}

function drawPlayer() {
  if (!state || !state.trial || !page(".lab-player")) return;
  const open = ready();
  for (const one of room.querySelectorAll(".lab-clip")) {
    const letter = one.dataset.letter;
    one.disabled = !clips[letter];
    one.setAttribute("aria-pressed", String(Boolean(playing && playing.letter === letter)));
    const seconds = listened(letter);
    const enough = seconds >= state.trial.needed;
    one.querySelector(".lab-heard").textContent = !clips[letter] ? "loading"
      : enough ? "heard" : `${Math.max(0, state.trial.needed - seconds).toFixed(1)} s to go`;
  }
  page(".lab-pause").textContent = playing ? "Pause" : "Play";
  page(".lab-pause").disabled = !Object.keys(clips).length;
  const length = playing ? playing.source.buffer.duration : 0;
  page(".bar-fill").style.width = `${length ? Math.min(100, (100 * place(playing)) / length) : 0}%`;
  for (const one of room.querySelectorAll(".lab-vote")) one.disabled = !open;
  room.dataset.ready = String(open);
}

function drawCounts() {
  const line = page(".lab-count");
  if (line && state.trial) {
    const made = state.made < state.pairs ? ` (${state.made} made)` : "";
    line.textContent = `Pair ${state.trial.number} of ${state.pairs}${made}`;
  }
}

function drawResult() {
  const result = make("div", "lab-result");
  result.innerHTML = state.result;
  room.append(result);
  for (const one of result.querySelectorAll(".hear")) {
    one.dataset.label = one.textContent;
    one.addEventListener("click", () => hearAgain(one));
  }
  drawPictures(result);
}

async function drawPictures(result) {
  for (const one of result.querySelectorAll("[data-pictures]")) {
    const answer = await ask({ do: "pictures", trial: one.dataset.pictures });
    if (!answer || !one.isConnected) return;
    one.innerHTML = answer.html;
  }
}

async function hearAgain(one) {
  const again = playing && playing.button === one;
  for (const other of room.querySelectorAll(".hear")) other.textContent = other.dataset.label;
  stop();
  if (again) return;
  const answer = await ask({ do: "clip", trial: one.dataset.trial, letter: one.dataset.letter });
  if (!answer) return;
  await play(null, await decode(answer.wav), 0, () => { one.textContent = one.dataset.label; });
  playing.button = one;
  one.textContent = "Stop";
}

// Keys

function typing(target) {
  return target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName)
    || (target.tagName === "INPUT" && target.type !== "radio");
}

document.addEventListener("keydown", (event) => {
  if (!room.isConnected || room.offsetParent === null || !state || !state.trial) return;
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || typing(event.target)) return;
  const key = event.key.toLowerCase();
  const chosen = KEYS[state.kind] && KEYS[state.kind][key];
  // On a button or a choice, space is that control's own.
  if (key === " " && /^(BUTTON|INPUT|A|SUMMARY)$/.test(event.target.tagName)) return;
  if (key === " ") toggle();
  else if (state.trial.letters.toLowerCase().includes(key) && key.length === 1) {
    switchTo(key.toUpperCase());
  } else if (chosen) vote(chosen);
  else return;
  event.preventDefault();
});

watch("value", () => {
  const { key, id } = props.value || {};
  if (!open || open.id !== id || open.key !== key) {
    stop();
    state = null;
    open = { key, id };
  }
  look();
});

setInterval(() => { if (playing) drawPlayer(); }, 100);
draw();
