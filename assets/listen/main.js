// A listening test for invited people, at a link or in a folder: consent, volume, training, trials,
// breaks, end. What it shows comes from the session, which tells nothing of the sides.

import { make } from "../page/dom.js";
import { isOfControl } from "../page/lab/keys.js";
import { Player } from "../page/lab/player.js";
import { VolumeCheck } from "../page/lab/volume.js";
import { FileSource } from "./file_source.js";
import { Memory, newId } from "./memory.js";
import { Outbox } from "./outbox.js";
import { Refusal, ServerSource, recruitment } from "./server_source.js";
import * as steps from "./steps.js";
import { Trial } from "./trial.js";

const DRAW_MS = 100;
const RETRY_MS = 2000;
const AHEAD = 2; // trials whose clips are fetched before they are shown
const UNREACHABLE = "The connection is lost. Your answers are kept here and sent when it is back.";

export class ListeningPage {
  choices = { repeat: false, keepPosition: false };
  #root;
  #status = make("p", "status");
  #progress = make("progress");
  #content = make("div", "content");
  #source;
  #memory;
  #about;
  #who; // {id, name}
  #session;
  #done = new Set(); // presentations with an answer
  #outbox;
  #view = null; // the Trial or the VolumeCheck on show
  #isFinishing = false; // everything is answered
  #fetched = new Map(); // clip -> a promise of its bytes

  constructor(root) {
    this.#root = root;
    this.player = new Player(() => this.#drawPlayer());
    this.#status.setAttribute("role", "status");
    this.#progress.hidden = true;
    this.#progress.setAttribute("aria-label", "Answered");
    root.replaceChildren(this.#progress, this.#status, this.#content);
    document.addEventListener("keydown", (event) => this.#press(event));
    window.addEventListener("pagehide", () => this.player.stop());
    setInterval(() => { if (this.player.clip) this.#drawPlayer(); }, DRAW_MS);
    const { data } = globalThis.diaListening ?? {};
    this.isLocal = Boolean(data);
    this.#source = data ? new FileSource(data) : new ServerSource();
    this.#memory = new Memory(this.#source.name);
    this.#source.use(this.#memory);
  }

  async start() {
    this.#about = await this.#reach(() => this.#source.about());
    if (!this.#about) return;
    document.title = this.#about.title || document.title;
    this.#who = this.#memory.get("who");
    if (this.#who) await this.#enter();
    else if (this.#about.closed) this.#show(steps.closed());
    else this.#show(this.#makeWelcome());
  }

  #makeWelcome() {
    return steps.welcome(this.#about, {
      isRecruited: Object.keys(recruitment()).length > 0,
      isLocal: this.isLocal,
      isLasting: this.#memory.isLasting,
      start: (name) => {
        this.#who = { id: newId(), name };
        this.#memory.set("who", this.#who);
        this.#enter();
      },
    });
  }

  async #enter() {
    const { id, name } = this.#who;
    const entered = await this.#reach(() => this.#source.enter(id, name));
    if (!entered) return;
    // A platform's participant goes on in another browser as who they were.
    this.#who = { id: entered.rater, name };
    this.#memory.set("who", this.#who);
    this.#session = entered.session;
    this.#outbox = new Outbox({
      source: this.#source,
      memory: this.#memory,
      rater: entered.rater,
      changed: () => this.#sent(),
      refused: (refusal) => this.#refused(refusal),
    });
    const waiting = this.#outbox.waiting.map((answer) => answer.presentation);
    const trained = this.#memory.get("trained") ?? [];
    this.#done = new Set([...entered.answered, ...waiting, ...trained]);
    this.#outbox.flush();
    this.#next();
  }

  // Asks the source until it can be reached. Resolves to null for what it refuses, which is shown.
  async #reach(ask) {
    for (;;) {
      try {
        // oxlint-disable-next-line no-await-in-loop
        const answer = await ask();
        this.#drawConnected();
        return answer;
      } catch (error) {
        this.#say(error instanceof Refusal ? error.message : UNREACHABLE, true);
        if (error instanceof Refusal) return null;
      }
      // oxlint-disable-next-line no-await-in-loop
      await new Promise((resolve) => { setTimeout(resolve, RETRY_MS); });
    }
  }

  // The order of the pages

  #next() {
    const { presentations, headphone_check: needsHeadphones } = this.#session;
    const open = presentations.filter(({ id }) => !this.#done.has(id));
    const [next] = open;
    if (!next) this.#finish();
    else if (!this.#memory.get("volume")) this.#setVolume(next);
    else if (needsHeadphones && this.#memory.get("headphones") === null) this.#checkHeadphones();
    else if (this.#isBreak()) this.#pause();
    else this.#showTrial(next, open.slice(1, 1 + AHEAD));
  }

  async #setVolume(presentation) {
    const check = new VolumeCheck(this.player);
    this.#show(steps.volume(check, () => {
      this.#memory.set("volume", true);
      this.#next();
    }), check);
    const clips = presentation.clips.slice(0, 2);
    const files = await Promise.all(clips.map((clip) => this.fetchClip(clip, true)));
    if (files.includes(null)) return; // The page says why.
    const buffers = await Promise.all(files.map((file) => this.player.decode(file)));
    check.offer(buffers);
  }

  #checkHeadphones() {
    const keep = (isPassed) => {
      this.#memory.set("headphones", isPassed);
      this.#next();
    };
    this.#show(steps.headphones(this.player, (isPassed) => {
      if (isPassed) keep(true);
      else this.#show(steps.noHeadphones({ again: () => this.#checkHeadphones(), next: () => keep(false) }));
    }));
  }

  // The test's presentations, without the training.
  get #test() {
    return this.#session.presentations.filter(({ part }) => part === "test");
  }

  get #answered() {
    return this.#test.filter(({ id }) => this.#done.has(id)).length;
  }

  #isBreak() {
    const { break_every: every } = this.#session;
    const done = this.#answered;
    return every > 0 && done > 0 && done % every === 0 && this.#memory.get("break") !== done;
  }

  #pause() {
    const done = this.#answered;
    this.#show(steps.pause(done, this.#test.length, () => {
      this.#memory.set("break", done);
      this.#next();
    }));
  }

  #showTrial(presentation, following) {
    const { id, part } = presentation;
    const before = this.#memory.get("trial");
    const attributes = this.#session.attributes ?? [];
    const { design } = this.#session;
    const record = before?.id === id ? before : {};
    const trial = new Trial(this, { design, ...presentation }, attributes, record);
    const training = this.#session.presentations.filter((each) => each.part === "training");
    const title = part === "training"
      ? `Training ${training.indexOf(presentation) + 1} of ${training.length} (does not count)`
      : `${this.#answered + 1} of ${this.#test.length}`;
    this.#show(trial.draw(title), trial);
    this.#fetchAll(trial, following);
  }

  async #fetchAll(trial, following) {
    await trial.fetchClips();
    for (const { clips, reference } of following) {
      for (const clip of reference ? [reference, ...clips] : clips) this.#fetchAhead(clip);
    }
  }

  // What the trial on show uses

  isShown(trial) {
    return this.#view === trial;
  }

  focus() {
    this.#root.focus({ preventScroll: true });
  }

  remember() {
    const trial = this.#view;
    if (trial instanceof Trial) {
      this.#memory.set("trial", { id: trial.presentation.id, ...trial.record });
    }
  }

  // The bytes of a clip. Decoding takes them away; `isShared` leaves them for the trial.
  async fetchClip(clip, isShared = false) {
    const bytes = await this.#fetchAhead(clip);
    if (!isShared) this.#fetched.delete(clip);
    return isShared && bytes instanceof ArrayBuffer ? bytes.slice(0) : bytes;
  }

  #fetchAhead(clip) {
    const fetched = this.#fetched.get(clip) ?? this.#reach(() => this.#source.clip(this.#who.id, clip));
    this.#fetched.set(clip, fetched);
    return fetched;
  }

  submit(answer) {
    const { presentation } = this.#view;
    this.#say("");
    this.#memory.remove("trial");
    this.#done.add(presentation.id);
    if (presentation.part === "training") {
      this.#memory.set("trained", [...(this.#memory.get("trained") ?? []), presentation.id]);
    } else {
      this.#outbox.add(this.#source.proven(answer, presentation.clips));
    }
    this.#next();
  }

  async #refused({ presentation, message, state }) {
    const wasFinishing = this.#isFinishing;
    this.#isFinishing = false;
    this.#say(message, true);
    if (state === "unheard") {
      // It comes once more, to be listened to again.
      this.#done.delete(presentation);
      if (!(this.#view instanceof Trial)) this.#next();
      return;
    }
    const about = await this.#reach(() => this.#source.about());
    if (about?.closed) this.#show(steps.closed());
    else if (wasFinishing) this.#finish();
  }

  // All is answered: the last answers are on their way.
  #finish() {
    this.#show(steps.sending());
    this.#isFinishing = true;
    this.#sent();
  }

  // The number of waiting answers has changed, or the connection.
  #sent() {
    this.#drawStatus();
    if (!this.#isFinishing || this.#outbox.waiting.length) return;
    this.#isFinishing = false;
    this.#end();
  }

  async #end() {
    const headphones = this.#memory.get("headphones");
    const end = await this.#reach(() => this.#source.finish(this.#who.id, headphones));
    if (end) this.#show(steps.end(end));
  }

  // Drawing

  #show(node, view = null) {
    this.#view = view;
    this.player.stop();
    this.#content.replaceChildren(node);
    this.#drawStatus();
    this.focus();
    window.scrollTo(0, 0);
  }

  #drawPlayer() {
    if (this.#view) this.#view.drawPlayer();
  }

  #waitingText() {
    const count = this.#outbox?.waiting.length ?? 0;
    return count ? `${count} ${count === 1 ? "answer waits" : "answers wait"} to be sent.` : "";
  }

  #drawStatus() {
    if (!this.#session) return;
    Object.assign(this.#progress, { hidden: false, max: this.#test.length, value: this.#answered });
    this.#root.dataset.waiting = String(this.#outbox.waiting.length);
    const { isConnected, problem } = this.#outbox;
    if (!isConnected) this.#say(problem || `${UNREACHABLE} ${this.#waitingText()}`, true);
    else this.#drawConnected();
  }

  // Other messages stay.
  #drawConnected() {
    if (this.#status.textContent.startsWith(UNREACHABLE)) this.#say("");
  }

  #say(text, isProblem = false) {
    this.#status.textContent = text;
    this.#status.classList.toggle("problem", isProblem);
  }

  #press(event) {
    if (!(this.#view instanceof Trial) || isOfControl(event)) return;
    if (this.#view.press(event)) event.preventDefault();
  }
}
