// The result: every pair with two players, and its pictures where the test was not blind.

const LATELY = 6; // clips kept decoded, so that going back and forth is quick
const decoded = new Map(); // "trial letter" -> AudioBuffer
const pictures = new Map(); // trial -> HTML

function drawResult() {
  const result = make("div", "lab-result");
  result.innerHTML = state.result;
  room.append(result);
  for (const one of result.querySelectorAll(".hear")) {
    one.dataset.label = one.textContent;
    one.addEventListener("click", () => (playing && playing.button === one ? stop() : hear(one)));
    const slider = sliderOf(one);
    slider.disabled = false;
    slider.addEventListener("change", () => hear(one));
  }
  drawPictures(result);
}

async function drawPictures(result) {
  for (const one of result.querySelectorAll("[data-pictures]")) {
    const trial = one.dataset.pictures;
    if (!pictures.has(trial)) {
      const answer = await ask({ do: "pictures", trial });
      if (!answer || !one.isConnected) return;
      pictures.set(trial, answer.html);
    }
    one.innerHTML = pictures.get(trial);
  }
}

function sliderOf(button) {
  return button.parentElement.querySelector(".place");
}

// From where the slider stands; from the start where that is the end.
async function hear(one) {
  const buffer = await bufferOf(one);
  if (!buffer || !one.isConnected) return;
  const part = Number(sliderOf(one).value);
  play({ button: one }, buffer, part < 0.99 ? part * buffer.duration : 0);
  one.textContent = "Stop";
}

async function bufferOf(one) {
  const { trial, letter } = one.dataset;
  const name = `${open.id} ${trial} ${letter}`;
  if (!decoded.has(name)) {
    const answer = await ask({ do: "clip", trial, letter });
    if (!answer) return null;
    decoded.set(name, await decode(answer.wav));
    if (decoded.size > LATELY) decoded.delete(decoded.keys().next().value);
  }
  return decoded.get(name);
}

function drawPlace() {
  const slider = sliderOf(playing.button);
  if (!slider.matches(":active")) slider.value = place(playing) / playing.source.buffer.duration;
}

// A clip that was heard again has stopped: its slider stays there, or goes back from the end.
function rest(mine, at) {
  const part = at / mine.source.buffer.duration;
  const slider = sliderOf(mine.button);
  mine.button.textContent = mine.button.dataset.label;
  if (!slider.matches(":active")) slider.value = part > 0.99 ? 0 : part;
  setTimeout(() => { if (later) take(later); });
}
