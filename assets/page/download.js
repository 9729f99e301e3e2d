// A model's download: its buttons tell the server what to do.
element.addEventListener("click", ({ target }) => {
  const button = target.closest("button[data-action]");
  if (button) trigger("click", { action: button.dataset.action });
});
