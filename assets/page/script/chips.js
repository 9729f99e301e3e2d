// What is set where it may be folded away and shapes every take: a seed, a voice prompt. Each is
// freed by its cross. gradio's value: {seed, voice, lost}; lost: a reload could not bring the voice
// prompt back.
const LOST = "The voice prompt is no longer on the server: add the recording and its text again.";

export class Chips {
  #element;
  #props;
  #trigger;

  constructor({ element, props, trigger, watch }) {
    this.#element = element;
    this.#props = props;
    this.#trigger = trigger;
    watch("value", () => this.#draw());
    this.#draw();
  }

  #draw() {
    const { seed, voice, lost } = this.#props.value || {};
    const text = String(seed ?? "").trim();
    const chips = [];
    if (text && text !== "-1") {
      chips.push(this.#chip(`Seed ${text} kept`, "seed", "Use a random seed again"));
    }
    if (voice) chips.push(this.#chip("Voice prompt in use", "voice", "Remove the voice prompt"));
    if (lost) chips.push(make("p", "lost", LOST));
    this.#element.querySelector(".chips").replaceChildren(...chips);
  }

  #chip(text, name, action) {
    const chip = make("span", "chip", text);
    const button = make("button", "", "×");
    button.type = "button";
    button.title = action;
    button.ariaLabel = action;
    button.addEventListener("click", () => this.#trigger("click", { name }));
    chip.append(button);
    return chip;
  }
}

function make(tag, name, text) {
  const node = document.createElement(tag);
  node.className = name;
  node.textContent = text;
  return node;
}
