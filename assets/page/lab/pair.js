// A pair that waits for its vote: its clips under neutral letters, the player and the vote buttons.
// Scripts and names come as text and are set as text.

// The answer that each key gives.
const KEYS = {
  preference: new Map([["1", "A"], ["2", "B"], ["0", "none"]]),
  abx: new Map([["1", "A"], ["2", "B"]]),
};
const ANSWERS = {
  preference: { A: "A is better", B: "B is better", none: "No difference" },
  abx: { A: "X is A", B: "X is B" },
};
const HELP = {
  preference:
    "space play or pause · A, B switch · 1 A is better · 2 B is better · 0 no difference",
  abx: "space play or pause · A, B, X switch · 1 X is A · 2 X is B",
};
const STRENGTHS = { 1: "slightly", 2: "clearly", 3: "very much" };
const END_SECONDS = 0.05; // a clip that was paused so close to its end restarts

export function make(tag, name = "", text = "") {
  const node = document.createElement(tag);
  if (name) node.className = name;
  if (text) node.textContent = text;
  return node;
}

function makeButton(name, text, press) {
  const node = make("button", name, text);
  node.type = "button";
  node.addEventListener("click", press);
  return node;
}

function makeGroup(name, label, ...children) {
  const node = make("div", name);
  node.setAttribute("role", "group");
  node.setAttribute("aria-label", label);
  node.append(...children);
  return node;
}

export class Pair {
  #clips = {}; // letter -> {letter, buffer, stopped}, as they arrive
  #heard = {}; // letter -> seconds listened to
  #paused = { letter: "A", position: 0 };

  // `trial` and `kind` are the server's: {id, number, script, letters, needed} and the test's kind.
  constructor(room, trial, kind) {
    this.room = room;
    this.player = room.player;
    this.trial = trial;
    this.kind = kind;
    this.letters = [...trial.letters];
  }

  async fetchClips() {
    for (const letter of this.letters) {
      // One after the other, so that the first can be played while the others are fetched.
      // oxlint-disable-next-line no-await-in-loop
      const answer = await this.room.ask({ do: "clip", trial: this.trial.id, letter });
      if (!answer || !this.#isShown()) return;
      // oxlint-disable-next-line no-await-in-loop
      const buffer = await this.player.decode(answer.wav);
      if (!this.#isShown()) return;
      this.#clips[letter] = { letter, buffer, stopped: (...played) => this.#note(letter, ...played) };
    }
    this.drawPlayer();
  }

  // Another comparison may be opened while this one's clips are fetched.
  #isShown() {
    return this.room.pair === this;
  }

  #note(letter, position, seconds) {
    this.#heard[letter] = (this.#heard[letter] || 0) + seconds;
    this.#paused = { letter, position };
  }

  #listened(letter) {
    return (this.#heard[letter] || 0) + this.player.played(this.#clips[letter]);
  }

  get mayVote() {
    return this.letters.every((letter) => this.#listened(letter) >= this.trial.needed);
  }

  // Seconds listened to, the strength and the note: what is sent with a vote.
  get ballot() {
    const strength = this.room.find(".lab-strength input:checked");
    return {
      trial: this.trial.id,
      heard: this.#heard,
      strength: strength ? Number(strength.value) : null,
      note: this.room.find(".lab-note").value,
    };
  }

  // Plays a clip from its start or, if the listener wants that, from the position of the other one.
  // Whether both sides are in step is not known here: it would reveal before the vote that their
  // codes are equal.
  switchTo(letter) {
    const clip = this.#clips[letter];
    if (!clip || !this.#isShown()) return;
    const other = this.player.clip && this.player.clip !== clip;
    const position = this.room.keepPlace && other ? this.player.position : 0;
    this.player.play(clip, Math.min(position, clip.buffer.duration));
  }

  toggle() {
    if (!this.#isShown()) return;
    if (this.player.clip) {
      this.player.stop();
      this.drawPlayer();
      return;
    }
    const { letter, position } = this.#paused;
    const clip = this.#clips[letter];
    if (!clip) return;
    this.player.play(clip, position < clip.buffer.duration - END_SECONDS ? position : 0);
  }

  // Whether a key means something here; if so, it has been done.
  press(key) {
    const answer = KEYS[this.kind].get(key);
    if (key === " ") this.toggle();
    else if (this.letters.includes(key.toUpperCase())) this.switchTo(key.toUpperCase());
    else if (answer) this.room.vote(answer);
    else return false;
    return true;
  }

  draw() {
    const end = makeButton("lab-end", "End the test and reveal", () => this.room.reveal(end));
    const bar = make("div", "bar");
    bar.append(make("div", "bar-fill"));
    this.room.append(
      make("p", "lab-count"),
      make("p", "lab-script", this.trial.script),
      makeGroup("lab-player", "Player", ...this.letters.map((letter) => this.#clipButton(letter))),
      makeButton("lab-pause", "Play", () => this.toggle()),
      bar,
      makeGroup("lab-votes", "Your vote", ...this.#voteButtons()),
      ...(this.kind === "abx" ? [] : [this.#strengths()]),
      this.#noteField(),
      this.#placeChoice(),
      make("p", "small lab-keys", `Keys: ${HELP[this.kind]}.`),
      end,
    );
    this.drawPlayer();
  }

  #clipButton(letter) {
    const node = makeButton("lab-clip", "", (event) => {
      this.switchTo(letter);
      // After the mouse the keys belong to the room again: space pauses and restarts no clip.
      if (event.detail) this.room.focus({ preventScroll: true });
    });
    node.dataset.letter = letter;
    node.setAttribute("aria-label", `Play clip ${letter}`);
    node.append(make("strong", "", letter), make("span", "lab-heard"));
    return node;
  }

  #voteButtons() {
    return [...KEYS[this.kind]].map(([key, answer]) => {
      const node = makeButton("lab-vote", ANSWERS[this.kind][answer], () => this.room.vote(answer));
      node.dataset.vote = answer;
      node.append(make("kbd", "", key));
      return node;
    });
  }

  #strengths() {
    const group = make("fieldset", "lab-strength");
    group.append(make("legend", "", "How clearly? (optional)"));
    for (const [value, text] of Object.entries(STRENGTHS)) {
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

  #noteField() {
    const label = make("label", "lab-note-label", "Note (optional) ");
    const input = make("input", "lab-note");
    input.maxLength = 500;
    label.append(input);
    return label;
  }

  #placeChoice() {
    const label = make("label", "lab-keep-place");
    const input = make("input");
    input.type = "checkbox";
    input.checked = this.room.keepPlace;
    input.addEventListener("change", () => { this.room.keepPlace = input.checked; });
    label.append(input, " Keep the place when switching (otherwise the clip restarts)");
    return label;
  }

  // What changes while a clip plays.
  drawPlayer() {
    for (const node of this.room.findAll(".lab-clip")) this.#drawClip(node);
    const pause = this.room.find(".lab-pause");
    pause.textContent = this.player.clip ? "Pause" : "Play";
    pause.disabled = !Object.keys(this.#clips).length;
    this.room.find(".bar-fill").style.width = `${100 * this.player.fraction}%`;
    const { mayVote } = this;
    for (const node of this.room.findAll(".lab-vote")) node.disabled = !mayVote;
    this.room.mark("ready", mayVote);
  }

  #drawClip(node) {
    const { letter } = node.dataset;
    const clip = this.#clips[letter];
    node.disabled = !clip;
    node.setAttribute("aria-pressed", String(Boolean(clip && this.player.clip === clip)));
    const left = this.trial.needed - this.#listened(letter);
    const text = left <= 0 ? "heard" : `${left.toFixed(1)} s to go`;
    node.querySelector(".lab-heard").textContent = clip ? text : "loading";
  }
}
