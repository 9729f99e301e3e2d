// The remarks under the scripts of a comparison: a press on a repair names its finding, and the
// server repairs the scripts.
export class Repairs {
  constructor({ element, trigger }) {
    element.addEventListener("click", ({ target }) => {
      const button = target.closest("button.repair");
      if (button) trigger("click", { code: button.dataset.code });
    });
  }
}
