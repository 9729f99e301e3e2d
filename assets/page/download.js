// A model's download: its buttons tell the server what to do.
element.addEventListener("click", ({ target }) => {
  const button = target.closest("button[data-action]");
  if (button && isConfirmed(button)) trigger("click", { action: button.dataset.action });
});

// What deletes is pressed twice: the first press asks for confirmation.
function isConfirmed(button) {
  if (!["delete", "discard"].includes(button.dataset.action) || button.dataset.label) return true;
  button.dataset.label = button.textContent;
  button.textContent = "Really delete?"; // the column keeps its width: nothing may move
  button.focus(); // Safari does not focus a button that is clicked
  button.addEventListener("blur", () => {
    button.textContent = button.dataset.label;
    delete button.dataset.label;
  }, { once: true });
  return false;
}

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
