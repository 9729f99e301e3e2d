// Loaded in the page's head. Keeps the focus on the page: where the focused element is disabled,
// hidden or removed, browsers give it to nothing, and the next Tab begins at the top.
// `window.diaRuns` has an entry for each kind of run (see connect_run in ui/runs.py): its buttons
// `start` and `stop`, and `result`, all as selectors. The focus goes from Start to Stop, and at the
// end to the result or, without one, to Start again, as after a run that fails at once.
(() => {
  const FOCUSABLE = "a[href], button, input, select, textarea, [tabindex='0']";
  window.diaRuns = [];
  let last = null; // {element, above}: what had the focus, and what it is in
  let waiting = null; // {place, targets}: the place has the focus until one of the targets can

  const isUsable = (element) =>
    Boolean(element?.isConnected && !element.disabled && element.getClientRects().length);

  function find(selectors) {
    for (const selector of selectors) {
      const found = [...document.querySelectorAll(selector)].find(isUsable);
      if (found) return found;
    }
    return null;
  }

  // Where the focus goes from a button of a run; empty for other elements.
  function targetsOf(element) {
    for (const { start, stop, result } of window.diaRuns) {
      const pressed = start.find((selector) => element.matches(selector));
      // A run that fails at once may end before Stop can be pressed.
      if (pressed) return [stop, pressed];
      if (element.matches(stop)) return [...(result ? [result] : []), ...start];
    }
    return [];
  }

  // The next usable element in the innermost part of the page that has one.
  function nearest({ element, above }) {
    for (const part of above) {
      if (!part.isConnected || part === document.body) continue;
      const usable = [...part.querySelectorAll(FOCUSABLE)].filter(isUsable);
      const after = usable.find((one) => element.isConnected &&
        element.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING);
      if (usable.length) return after ?? usable[0];
      if (part.matches(".card")) break;
    }
    return null;
  }

  function hold(place) {
    if (!place) return;
    place.tabIndex = -1;
    place.setAttribute("role", "group");
    const heading = place.querySelector("h2, h3");
    if (heading) place.setAttribute("aria-label", heading.textContent);
    place.focus({ preventScroll: true });
  }

  function check() {
    scheduled = false;
    if (!last) return;
    const { activeElement } = document;
    if (waiting && activeElement === waiting.place) {
      find(waiting.targets)?.focus();
      return;
    }
    const isLost = !activeElement || activeElement === document.body ||
      activeElement === last.element;
    if (!isLost || isUsable(last.element)) return;
    const again = last.element.id ? document.getElementById(last.element.id) : null;
    if (isUsable(again)) {
      again.focus();
      return;
    }
    const targets = targetsOf(last.element);
    const found = targets.length ? find(targets) : nearest(last);
    if (found) {
      found.focus();
      return;
    }
    const place = last.above.find((part) => part.isConnected && part.matches(".card"));
    hold(place);
    waiting = place ? { place, targets: targets.length ? targets : [FOCUSABLE] } : null;
  }

  let scheduled = false;
  function schedule() {
    // What was removed lost the focus at once, as a disabled button does in newer browsers; older
    // ones let it keep the focus until the next frame.
    if (document.activeElement === document.body || !last?.element.isConnected) check();
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(check);
  }

  document.addEventListener("focusin", ({ target }) => {
    if (waiting && target !== waiting.place) waiting = null;
    if (waiting) return;
    const above = [];
    for (let part = target.parentElement; part; part = part.parentElement) above.push(part);
    last = { element: target, above };
  });
  new MutationObserver(schedule).observe(document.documentElement, {
    attributes: true, attributeFilter: ["class", "disabled", "hidden", "style"],
    childList: true, subtree: true,
  });

  window.addEventListener("keydown", (event) => {
    // A key that is held would press Stop as soon as it has the focus.
    if (event.key === "Enter" && event.repeat && event.target.matches("button")) {
      event.preventDefault();
    }
    // gradio's menus (6.31) open again after every key but Escape, also after the one that leaves.
    if (event.key === "Tab" && event.target.matches("input[role=combobox]")) {
      event.stopImmediatePropagation();
      // A list that scrolls can have the focus in chromium, and disappears with it.
      for (const list of document.querySelectorAll("[role=listbox]")) list.tabIndex = -1;
    }
  }, { capture: true });
})();
