// Chips for settings that affect every take but may be in a closed accordion: a seed, a voice
// prompt. The cross of a chip removes its setting. gradio's value: {seed, voice}.

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
    const { seed, voice } = this.#props.value || {};
    const text = String(seed ?? "").trim();
    const chips = [];
    if (text && text !== "-1") {
      chips.push(this.#chip(`Seed ${text} kept`, "seed", "Use a random seed again"));
    }
    if (voice) chips.push(this.#chip("Voice prompt in use", "voice", "Remove the voice prompt"));
    this.#element.querySelector(".chips").replaceChildren(...chips);
  }

  #chip(text, name, action) {
    const chip = document.createElement("span");
    const button = document.createElement("button");
    chip.className = "chip";
    chip.textContent = text;
    button.type = "button";
    button.textContent = "×";
    button.title = action;
    button.ariaLabel = action;
    button.addEventListener("click", () => this.#trigger("click", { name }));
    chip.append(button);
    return chip;
  }
}
