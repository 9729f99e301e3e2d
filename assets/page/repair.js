// Repair buttons live inside one HTML part: a click names the finding, the server repairs it.
element.addEventListener("click", (event) => {
  const button = event.target.closest("button.repair");
  if (button) trigger("click", { code: button.dataset.code, index: Number(button.dataset.index) });
});
