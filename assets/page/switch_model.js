// The line about the speaker has one button, which switches to the other model.
element.addEventListener("click", (event) => {
  if (event.target.closest(".switch-model")) trigger("click");
});
