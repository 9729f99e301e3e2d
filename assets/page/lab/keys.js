// Keys, and what starts it all.

function typing(target) {
  return target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName)
    || (target.tagName === "INPUT" && !/^(radio|checkbox)$/.test(target.type));
}

// On a button or an open choice, space is that control's own.
function ownsSpace(target) {
  return /^(BUTTON|A|SUMMARY)$/.test(target.tagName)
    || (target.tagName === "INPUT" && !(target.type === "radio" && target.checked));
}

document.addEventListener("keydown", (event) => {
  if (!room.isConnected || room.offsetParent === null || !state || !state.trial) return;
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (typing(event.target)) return;
  const key = event.key.toLowerCase();
  const chosen = KEYS[state.kind] && KEYS[state.kind][key];
  if (key === " " && ownsSpace(event.target)) return;
  if (key === " ") toggle();
  else if (state.trial.letters.toLowerCase().includes(key) && key.length === 1) {
    switchTo(key.toUpperCase());
  } else if (chosen) vote(chosen);
  else return;
  event.preventDefault();
});

watch("value", async () => {
  const { key, id } = props.value || {};
  const another = !open || open.id !== id || open.key !== key;
  if (another) {
    later = null;
    stop();
    state = null;
    open = { key, id };
  }
  await look();
  if (another && id) room.scrollIntoView({ block: "nearest" });
});

setInterval(() => { if (playing) drawPlayer(); }, 100);
draw();
