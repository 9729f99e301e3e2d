// Which keys belong to the control that has the focus, and which to the page.

export function isOfControl(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return true;
  const { key, target } = event;
  if (isTyping(target) || (key === " " && ownsSpace(target))) return true;
  return key.startsWith("Arrow") && ownsArrows(target);
}

function isTyping(target) {
  return target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName)
    || (target.tagName === "INPUT" && !/^(radio|checkbox|range)$/.test(target.type));
}

function ownsArrows(target) {
  return target.tagName === "INPUT" || target.closest("[role=tablist]") !== null;
}

// On a button or an open choice, space is that control's own.
function ownsSpace(target) {
  return /^(BUTTON|A|SUMMARY)$/.test(target.tagName)
    || (target.type === "checkbox" || (target.type === "radio" && !target.checked));
}
