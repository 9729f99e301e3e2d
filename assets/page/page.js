// Runs once when the page has loaded. Ctrl+Enter (or Cmd+Enter) presses Generate from anywhere.
() => {
  document.documentElement.lang = "en";
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    const button = document.querySelector("#generate");
    if (!button || button.disabled || button.offsetParent === null) return;
    event.preventDefault();
    button.click();
  });
}
