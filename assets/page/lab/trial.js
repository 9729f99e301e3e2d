// Drawing. Scripts and names come as text and are set as text; the result is the server's own HTML.

function draw() {
  room.replaceChildren();
  room.dataset.state = !state ? "empty" : state.trial ? "listen" : state.open ? "open" : "unready";
  const said = make("p", "lab-said");
  said.setAttribute("role", "status");
  room.append(make("h3", "", state && state.open ? "3 · Result" : "2 · Listen"));
  if (state && state.trial) drawTrial();
  else if (state && state.open) drawResult();
  else room.append(make("p", "lab-empty", whyEmpty()));
  room.append(said);
  drawCounts();
}

function whyEmpty() {
  if (!state) return "Make a comparison above, or open a kept one below.";
  const which = state.voted ? "next" : "first";
  if (state.making) return `The ${which} pair is being made: listen as soon as it is there.`;
  const failed = state.failed ? ` (${state.failed} failed)` : "";
  return `No pair is ready${failed}: press Go on to make what is missing.`;
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
  room.append(make("p", "lab-count"), make("p", "lab-script", trial.script));
  const player = make("div", "lab-player");
  player.setAttribute("role", "group");
  player.setAttribute("aria-label", "Player");
  for (const letter of trial.letters) {
    const one = button("lab-clip", "", (event) => {
      switchTo(letter);
      // After the mouse the keys belong to the room again: space pauses and starts no clip anew.
      if (event.detail) room.focus({ preventScroll: true });
    });
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
  room.append(label, placeChoice(), make("p", "small lab-keys", `Keys: ${keys}.`));
  const end = button("lab-end", "End the test and reveal", () => reveal(end));
  room.append(end);
}

function placeChoice() {
  const label = make("label", "lab-keep-place");
  const input = make("input");
  input.type = "checkbox";
  input.checked = keepPlace;
  input.addEventListener("change", () => { keepPlace = input.checked; });
  label.append(input, " Keep the place when switching (otherwise the clip restarts)");
  return label;
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
  if (playing && playing.button) return drawPlace();
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

