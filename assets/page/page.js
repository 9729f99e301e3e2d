// Runs once when the page has loaded.
() => {
  // Ctrl+Enter (or Cmd+Enter) presses Generate from anywhere. Touch screens show no title.
  document.querySelector("#generate").title = "Ctrl+Enter";
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    const button = document.querySelector("#generate");
    if (!button || button.disabled || button.offsetParent === null) return;
    event.preventDefault();
    button.click();
  });

  // The tab's title shows the time left, which is the one beside it in the status.
  const title = document.title;
  function showTimeLeft() {
    const lefts = [...document.querySelectorAll(".status[data-left]")].map((card) => card.dataset.left);
    const left = lefts.find(Boolean);
    document.title = left ? `${left} · ${title}` : title;
  }
  const statuses = document.querySelectorAll("#status, #lab-status");
  for (const status of statuses) {
    new MutationObserver(showTimeLeft).observe(status, { childList: true, subtree: true });
  }

  // gradio shows the API documentation only after a click on the button in the footer. With
  // ?view=api it considers it already open, and the first click closes it.
  const openApi = () => document.querySelector("footer .show-api").click();
  if (new URLSearchParams(location.search).get("view") === "api") {
    openApi();
    openApi();
  }
  document.addEventListener("click", (event) => {
    if (!event.target.closest("a[href='?view=api']")) return;
    event.preventDefault();
    openApi();
  });

  // gradio's accordions have no aria-expanded, and those of sections are not headings.
  function describeFolds() {
    for (const button of document.querySelectorAll("button.label-wrap:not([aria-expanded])")) {
      const update = () => button.setAttribute("aria-expanded", button.classList.contains("open"));
      new MutationObserver(update).observe(button, { attributeFilter: ["class"] });
      update();
      if (button.parentElement.matches(".section")) {
        const heading = document.createElement("h2");
        button.replaceWith(heading);
        heading.append(button);
      }
    }
  }
  // A tab is built when it is opened for the first time.
  new MutationObserver(describeFolds).observe(document.body, { childList: true, subtree: true });
  describeFolds();
}
