// Earlier takes: a list the server keeps for this person, each to play, use, compare or delete.
// gradio runs this once with: element, props.value ({key, tick}), server.earlier(question), watch.
const list = element.querySelector(".earlier");
const status = element.querySelector(".earlier-status");
let playing = null; // {button, audio}; without audio while the server is asked for the file

async function ask(question) {
  const answer = await server.earlier({ key: (props.value || {}).key, ...question });
  status.textContent = (answer && answer.error) || "";
  return answer && !answer.error ? answer : null;
}

function stop() {
  if (!playing) return;
  const { audio, button } = playing;
  playing = null;
  if (audio) audio.pause();
  button.textContent = "Play";
}

async function play(id, button) {
  const again = playing && playing.button === button;
  stop();
  if (again) return;
  const mine = { button, audio: null };
  playing = mine;
  const answer = await ask({ do: "hear", id });
  if (playing !== mine) return; // pressed again meanwhile, or another take
  if (!answer) {
    playing = null;
    return;
  }
  const path = answer.file.split("/").map(encodeURIComponent).join("/");
  mine.audio = new Audio(new URL(`gradio_api/file=${path}`, document.baseURI));
  // At its end, and when another sound on the page starts. Its own event may come after the next
  // take has started.
  mine.audio.addEventListener("pause", () => {
    if (playing === mine) stop();
  });
  button.textContent = "Stop";
  try {
    await mine.audio.play();
  } catch (error) {
    if (error.name !== "AbortError") throw error; // it was stopped before it began
  }
}

// Restores the settings in the form and scrolls to it; its status lists what was restored.
function use(id) {
  trigger("click", { id });
  const form = document.querySelector("#script-area");
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  form.scrollIntoView({ behavior: calm ? "auto" : "smooth", block: "start" });
}

// The button is pressed twice: the first press asks for confirmation.
async function remove(id, button) {
  if (!button.dataset.label) {
    button.dataset.label = button.textContent;
    button.textContent = "Really delete?"; // no wider than the button: nothing may move
    button.focus(); // Safari does not focus a button that is clicked
    const reset = () => {
      button.textContent = button.dataset.label;
      delete button.dataset.label;
    };
    button.addEventListener("blur", reset, { once: true });
    return;
  }
  stop();
  if (await ask({ do: "delete", id })) await draw();
}

function make(tag, name, text = "") {
  const node = document.createElement(tag);
  node.className = name;
  node.textContent = text;
  return node;
}

// In the time zone and the language of this browser.
function when(time) {
  return new Date(time).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
}

// Scripts come from people, so they are set as text, never as HTML.
async function draw() {
  if (!(props.value || {}).key) return;
  const answer = await ask({ do: "list" });
  if (!answer) return;
  list.replaceChildren();
  for (const take of answer.takes) {
    const row = make("li", "");
    const buttons = make("div", "earlier-buttons");
    const acts = {
      Play: (button) => play(take.id, button),
      "Use these settings": () => use(take.id),
      "Compare with this": () => trigger("submit", { id: take.id }),
      Delete: (button) => remove(take.id, button),
    };
    for (const [text, act] of Object.entries(acts)) {
      const button = make("button", text === "Delete" ? "earlier-delete" : "", text);
      button.type = "button";
      button.addEventListener("click", () => act(button));
      buttons.append(button);
    }
    const figures = `${when(take.created)} · ${take.figures}`;
    row.append(make("p", "", take.script), make("p", "earlier-figures", figures), buttons);
    list.append(row);
  }
  const notes = [];
  if (!answer.takes.length) notes.push("Your takes are listed here. The latest 30 are kept.");
  if (answer.removed)
    notes.push(`Takes up to ${when(answer.removed)} were removed, because the space for takes on ` +
      "this machine was used up. Download a take to keep it.");
  status.textContent = notes.join(" ");
}

watch("value", draw);
draw();
