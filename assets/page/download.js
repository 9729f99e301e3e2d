// A model's download: its buttons tell the server what to do.
element.addEventListener("click", ({ target }) => {
  const button = target.closest("button[data-action]");
  if (button) trigger("click", { action: button.dataset.action });
});

// On a phone the model menu is further down: a card that asks for something comes into view.
const ASKING = new Set(["looking", "needed", "failed"]);
let previousAsks = false;
watch("value", () => requestAnimationFrame(() => {
  const card = element.querySelector(".download");
  const asks = card !== null && ASKING.has(card.dataset.state);
  if (asks && !previousAsks && navigator.userActivation?.hasBeenActive) {
    card.scrollIntoView({ block: "nearest" });
  }
  previousAsks = asks;
}));
