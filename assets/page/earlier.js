// Earlier takes: a list the server keeps for this person, each to play, download, name, star, use,
// compare or delete. gradio starts it with: element, props.value ({key, tick}),
// server.earlier(question), trigger, watch.

import { Toggle } from "./toggle.js";

const NAME_CHARACTERS = 60;

export class EarlierTakes {
  #props;
  #server;
  #trigger;
  #list;
  #status;
  #search;
  #starred;
  #all;
  #answer = { takes: [] };
  #sounds = new Toggle((id) => this.#button(id, "play"), (id) => this.#addressOf(id));

  constructor({ element, props, server, trigger, watch }) {
    this.#props = props;
    this.#server = server;
    this.#trigger = trigger;
    this.#list = element.querySelector("ul");
    this.#status = element.querySelector(".earlier-status");
    this.#search = element.querySelector(".earlier-search");
    this.#starred = element.querySelector(".earlier-starred");
    this.#all = element.querySelector(".earlier-all");
    window.diaFiles.showFormat(element);
    this.#search.addEventListener("input", () => this.#draw());
    this.#starred.addEventListener("change", () => this.#draw());
    this.#all.addEventListener("click", () => this.#downloadAll());
    watch("value", () => this.#load());
    this.#load();
  }

  async #ask(question) {
    const answer = await this.#server.earlier({ key: (this.#props.value || {}).key, ...question });
    this.#status.textContent = (answer && answer.error) || "";
    return answer && !answer.error ? answer : null;
  }

  async #load() {
    if (!(this.#props.value || {}).key) return;
    const answer = await this.#ask({ do: "list" });
    if (!answer) return;
    this.#answer = answer;
    this.#draw();
  }

  // Those that the search and the choice of stars leave.
  get #shown() {
    const words = this.#search.value.toLowerCase().split(/\s+/).filter(Boolean);
    return this.#answer.takes.filter((take) => {
      const text = `${take.name} ${take.words} ${take.figures}`.toLowerCase();
      return (take.starred || !this.#starred.checked) && words.every((word) => text.includes(word));
    });
  }

  #draw() {
    // The buttons are made anew: the focus goes to the one that had it.
    const { take, act } = document.activeElement?.dataset ?? {};
    const shown = this.#shown;
    const { length } = this.#answer.takes;
    this.#list.replaceChildren(...shown.map((one) => this.#row(one)));
    this.#all.disabled = !shown.length;
    this.#all.textContent = shown.length < length ? `Download these ${shown.length}` : "Download all";
    this.#status.textContent = this.#words(shown.length);
    if (take) this.#button(take, act)?.focus();
  }

  #button(id, act) {
    return this.#list.querySelector(`[data-take="${id}"][data-act="${act}"]`);
  }

  #words(shown) {
    const { takes, removed } = this.#answer;
    const notes = [];
    if (!takes.length) notes.push("Your takes are listed here. The latest 30 are kept.");
    else if (shown < takes.length) notes.push(`${shown} of ${takes.length} takes.`);
    if (removed)
      notes.push(`Takes up to ${when(removed)} were removed, because the space for takes on this ` +
        "machine was used up. Download a take to keep it.");
    return notes.join(" ");
  }

  // Scripts and names come from people, so they are set as text, never as HTML.
  #row(take) {
    const row = make("li", "");
    const buttons = make("div", "earlier-buttons");
    const acts = {
      play: ["Play", () => this.#sounds.press(take.id)],
      star: [take.starred ? "★" : "☆", () => this.#label(take, { starred: !take.starred })],
      download: ["Download", () => this.#download({ do: "hear", id: take.id })],
      rename: ["Rename", (button) => this.#rename(take, button)],
      use: ["Use these settings", () => this.#use(take.id)],
      compare: ["Compare with this", () => this.#trigger("submit", { id: take.id })],
      delete: ["Delete", (button) => this.#remove(take.id, button)],
    };
    for (const [act, [text, press]] of Object.entries(acts)) {
      const button = make("button", `earlier-${act}`, text);
      button.type = "button";
      Object.assign(button.dataset, { take: take.id, act });
      button.addEventListener("click", () => press(button));
      buttons.append(button);
    }
    const star = buttons.querySelector(".earlier-star");
    star.setAttribute("aria-pressed", take.starred);
    star.setAttribute("aria-label", "Star");
    if (this.#sounds.id === take.id) buttons.querySelector(".earlier-play").textContent = "Stop";
    if (take.name) row.append(make("p", "earlier-name", take.name));
    const figures = `${when(take.created)} · ${take.figures}`;
    row.append(make("p", "", take.script), make("p", "earlier-figures", figures), buttons);
    return row;
  }

  async #addressOf(id) {
    const answer = await this.#ask({ do: "hear", id });
    return answer && window.diaFiles.addressOf(answer.file);
  }

  async #download(question) {
    const answer = await this.#ask({ ...question, format: window.diaFiles.format });
    if (answer) window.diaFiles.download(answer.file);
  }

  #downloadAll() {
    return this.#download({ do: "zip", ids: this.#shown.map((take) => take.id) });
  }

  async #label(take, label) {
    if (await this.#ask({ do: "label", id: take.id, ...label })) await this.#load();
  }

  // A field in the place of the button: Enter saves the name, Escape leaves it as it was.
  #rename(take, button) {
    const field = make("input", "earlier-field");
    Object.assign(field, { value: take.name, maxLength: NAME_CHARACTERS });
    field.setAttribute("aria-label", "Name of this take: Enter saves it");
    let isOver = false;
    const end = async (isSaved) => {
      if (isOver) return;
      isOver = true;
      const hadFocus = document.activeElement === field;
      field.replaceWith(button);
      if (hadFocus) button.focus();
      if (isSaved && field.value.trim() !== take.name) await this.#label(take, { name: field.value });
    };
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === "Escape") {
        event.preventDefault();
        end(event.key === "Enter");
      }
    });
    field.addEventListener("blur", () => end(true));
    button.replaceWith(field);
    field.focus();
    field.select();
  }

  // Restores the settings in the form and scrolls to it; its status lists what was restored.
  #use(id) {
    this.#trigger("click", { id });
    const form = document.querySelector("#script-area");
    const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    form.scrollIntoView({ behavior: calm ? "auto" : "smooth", block: "start" });
  }

  // The button is pressed twice: the first press asks for confirmation.
  async #remove(id, button) {
    if (!button.dataset.label) {
      button.dataset.label = button.textContent;
      button.textContent = "Really delete?"; // no wider than the button: nothing may move
      button.focus(); // Safari does not focus a button that is clicked
      const reset = () => {
        button.textContent = button.dataset.label;
        delete button.dataset.label;
      };
      button.addEventListener("blur", reset, { once: true });
      return;
    }
    this.#sounds.stop();
    if (await this.#ask({ do: "delete", id })) await this.#load();
  }
}

function make(tag, name, text = "") {
  const node = document.createElement(tag);
  node.className = name;
  node.textContent = text;
  return node;
}

// In the time zone and the language of this browser.
function when(time) {
  return new Date(time).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
}
