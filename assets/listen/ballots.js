// What a person answers in each design. A ballot has a `node`, the `answer` as the server reads it,
// null while it is incomplete, and `choose(digit)` for the digits pressed with Shift.

import { make, makeButton, makeChoice } from "../page/dom.js";

export const QUESTIONS = {
  preference: "Which clip is better?",
  abx: "Is X clip 1 or clip 2?",
  cmos: "How good is clip 2, compared with clip 1?",
  mushra: "How good is each clip? The reference is 100; one of the clips is the reference itself.",
  bws: "Which clip is the best, and which is the worst?",
  mos: "How natural does this speech sound?",
};
const UNREFERENCED = "How good is each clip?";
const STRENGTHS = [[1, "slightly"], [2, "clearly"], [3, "very much"]];
const PREFERENCES = [[1, "Clip 1 is better"], [0, "No difference"], [2, "Clip 2 is better"]];
const COMPARISONS = [
  [-3, "Much worse"], [-2, "Worse"], [-1, "Slightly worse"], [0, "About the same"],
  [1, "Slightly better"], [2, "Better"], [3, "Much better"],
];
const OPINIONS = [[1, "Bad"], [2, "Poor"], [3, "Fair"], [4, "Good"], [5, "Excellent"]];
const QUALITIES = ["Bad", "Poor", "Fair", "Good", "Excellent"];
const HIGHEST = 100;

export function questionOf({ design, reference }) {
  return design === "mushra" && !reference ? UNREFERENCED : QUESTIONS[design];
}

// `count`: of the clips to judge. `before`: the answer before a reload. `changed` is called when the
// answer has changed, `play` with the number of a clip that is judged now.
export function makeBallot({ design, reference }, count, { before, changed, play }) {
  switch (design) {
    case "preference": return new PreferenceBallot(before, changed);
    case "abx": return new ScaleBallot("x", [[1, "X is clip 1"], [2, "X is clip 2"]], before, changed);
    case "cmos": return new ScaleBallot("score", COMPARISONS, before, changed);
    case "mos": return new ScaleBallot("score", OPINIONS, before, changed);
    case "mushra": return new SliderBallot({ count, before, changed, play, reference });
    case "bws": return new ExtremesBallot(count, before, changed);
    default: throw new Error(`This page has no ballot for ${design}: reload it.`);
  }
}

// One value of a scale.
class ScaleBallot {
  #name;
  #inputs;
  #value;

  constructor(name, options, before, changed) {
    this.#name = name;
    this.#value = before?.[name] ?? null;
    this.node = makeScale(`scale-${name}`, "Your answer", options, this.#value, (value) => {
      this.#value = value;
      changed();
    });
    this.#inputs = new Map([...this.node.querySelectorAll("input")].map((input) => [input.value, input]));
  }

  get answer() {
    return this.#value === null ? null : { [this.#name]: this.#value };
  }

  choose(digit) {
    const input = this.#inputs.get(digit);
    if (input) input.click();
    return Boolean(input);
  }
}

// The better clip, and how clearly.
class PreferenceBallot {
  #better;
  #strength;

  constructor(before, changed) {
    this.#strength = before?.strength ?? null;
    this.#better = new ScaleBallot("better", PREFERENCES, before, changed);
    const strengths = makeScale(
      "strength", "How clearly? (optional)", STRENGTHS, this.#strength,
      (value) => {
        this.#strength = value;
        changed();
      },
    );
    this.node = make("div");
    this.node.append(this.#better.node, strengths);
  }

  get answer() {
    const { answer } = this.#better;
    return answer && { ...answer, strength: answer.better ? this.#strength : null };
  }

  choose(digit) {
    return this.#better.choose(digit);
  }
}

// A slider for each clip, all of which must have been moved.
class SliderBallot {
  #scores;
  #sliders = [];
  node = make("div", "sliders");

  constructor({ count, before, changed, play }) {
    this.#scores = before?.scores ?? Array.from({ length: count }, () => null);
    const scale = make("div", "qualities");
    scale.setAttribute("aria-hidden", "true");
    scale.append(...QUALITIES.map((quality) => make("span", "", quality)));
    const rows = this.#scores.map((_, index) => this.#makeRow(index, changed, play));
    this.node.append(scale, ...rows);
  }

  #makeRow(index, changed, play) {
    const row = make("div", "slider");
    const slider = make("input");
    const shown = make("output", "", "–");
    const score = this.#scores[index];
    Object.assign(slider, { type: "range", min: 0, max: HIGHEST, step: 1, value: score ?? HIGHEST / 2 });
    slider.setAttribute("aria-label", `Score of clip ${index + 1}, 0 bad to 100 excellent`);
    const show = () => {
      const value = this.#scores[index];
      row.classList.toggle("set", value !== null);
      shown.textContent = value ?? "–";
    };
    const take = () => {
      this.#scores[index] = Number(slider.value);
      show();
      changed();
    };
    slider.addEventListener("input", take);
    // One that stays where it is counts when it was pressed.
    slider.addEventListener("change", take);
    slider.addEventListener("pointerup", take);
    const button = makeButton("number", String(index + 1), () => play(index));
    button.setAttribute("aria-label", `Play clip ${index + 1}`);
    row.append(button, slider, shown);
    this.#sliders.push(slider);
    show();
    return row;
  }

  // The scores so far, as they outlive a reload.
  get draft() {
    return { scores: this.#scores };
  }

  get answer() {
    return this.#scores.includes(null) ? null : { scores: this.#scores };
  }

  // The slider of a clip gets the focus.
  choose(digit) {
    const slider = this.#sliders[Number(digit) - 1];
    if (slider) slider.focus();
    return Boolean(slider);
  }
}

// The best of several clips and the worst of them.
class ExtremesBallot {
  #best;
  #worst;
  node = make("div", "extremes");

  constructor(count, before, changed) {
    const clips = Array.from({ length: count }, (_, index) => [index + 1, `Clip ${index + 1}`]);
    [this.#best, this.#worst] = [before?.best ?? null, before?.worst ?? null];
    const best = makeScale("best", "Best", clips, this.#best, (value) => {
      this.#best = value;
      changed();
    });
    const worst = makeScale("worst", "Worst", clips, this.#worst, (value) => {
      this.#worst = value;
      changed();
    });
    this.node.append(best, worst);
  }

  get draft() {
    return { best: this.#best, worst: this.#worst };
  }

  get answer() {
    const [best, worst] = [this.#best, this.#worst];
    return best === null || worst === null || best === worst ? null : { best, worst };
  }

  choose() {
    return false;
  }
}

// A group of radio buttons. `options`: [value, text].
function makeScale(name, legend, options, chosen, change) {
  const group = make("fieldset", `scale ${name}`);
  group.append(make("legend", "", legend));
  const row = make("div", "options");
  for (const [value, text] of options) {
    const label = makeChoice("radio", "option", text, value === chosen, () => change(value));
    Object.assign(label.querySelector("input"), { name: `ballot-${name}`, value });
    row.append(label);
  }
  group.append(row);
  return group;
}
