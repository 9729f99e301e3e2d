// Loaded in the page's head. gradio does not show the errors of events outside its queue, so this
// script inspects their responses and shows failures as messages.
(() => {
  const SECONDS = 10;

  function show({ error, title, duration }) {
    const text = error || "Something went wrong. Please try again, or reload the page.";
    let list = document.querySelector("#problems");
    if (!list) {
      list = document.createElement("div");
      list.id = "problems";
      document.body.append(list);
    }
    // An event that fails with every keystroke is shown once.
    for (const shown of list.children) if (shown.dataset.text === text) shown.remove();
    const problem = document.createElement("div");
    problem.dataset.text = text;
    problem.setAttribute("role", "alert");
    const head = document.createElement("strong");
    head.textContent = title || "Error";
    const message = document.createElement("p");
    message.textContent = text;
    const close = document.createElement("button");
    close.type = "button";
    close.textContent = "Close";
    close.addEventListener("click", () => problem.remove());
    problem.append(head, message, close);
    list.append(problem);
    if (duration !== null) setTimeout(() => problem.remove(), 1000 * (duration ?? SECONDS));
  }

  const originalFetch = window.fetch;
  window.fetch = async (...request) => {
    const response = await originalFetch(...request);
    if (!response.ok && new URL(response.url).pathname.includes("/gradio_api/run/")) {
      response.clone().json().then(show, () => show({}));
    }
    return response;
  };
})();
