// Earlier takes: a list the server keeps for this person, each to hear, use, compare or delete.
// gradio runs this once with: element, props.value ({key, tick}), server.earlier(question), watch.
const list = element.querySelector(".earlier");
const told = element.querySelector(".earlier-said");
let sounding = null; // {audio, button}

async function ask(question) {
  const answer = await server.earlier({ key: (props.value || {}).key, ...question });
  told.textContent = (answer && answer.error) || "";
  return answer && !answer.error ? answer : null;
}

function hush() {
  if (!sounding) return;
  sounding.audio.pause();
  sounding.button.textContent = "Hear";
  sounding = null;
}

async function hear(id, button) {
  const again = sounding && sounding.button === button;
  hush();
  if (again) return;
  const answer = await ask({ do: "hear", id });
  if (!answer) return;
  const path = answer.file.split("/").map(encodeURIComponent).join("/");
  const audio = new Audio(new URL(`gradio_api/file=${path}`, document.baseURI));
  sounding = { audio, button };
  audio.addEventListener("ended", hush);
  button.textContent = "Stop";
  await audio.play();
}

async function remove(id) {
  hush();
  if (await ask({ do: "delete", id })) await draw();
}

function make(tag, name, text = "") {
  const node = document.createElement(tag);
  node.className = name;
  node.textContent = text;
  return node;
}

// Scripts are a person's own words: they are set as text, never as HTML.
async function draw() {
  if (!(props.value || {}).key) return;
  const answer = await ask({ do: "list" });
  if (!answer) return;
  list.replaceChildren();
  for (const take of answer.takes) {
    const row = make("li", "");
    const buttons = make("div", "earlier-buttons");
    const acts = {
      Hear: (button) => hear(take.id, button),
      "Use these settings": () => trigger("click", { id: take.id }),
      "Compare with this": () => trigger("submit", { id: take.id }),
      Delete: () => remove(take.id),
    };
    for (const [text, act] of Object.entries(acts)) {
      const button = make("button", "", text);
      button.type = "button";
      button.addEventListener("click", () => act(button));
      buttons.append(button);
    }
    row.append(make("p", "", take.script), make("p", "earlier-figures", take.figures), buttons);
    list.append(row);
  }
  if (!answer.takes.length) told.textContent = "Takes you make are kept here.";
}

watch("value", draw);
draw();
