// The listening room: plays a pair under neutral letters, takes the vote, shows the result.
// gradio runs this once with: element, props.value ({key, id, tick}), server.ask(question), watch,
// trigger. Which side is which is not known here before the server says so at the end.
// The page joins the files of this folder in the order of `compare_tab.SCRIPTS`.
const KEYS = { preference: { 1: "A", 2: "B", 0: "none" }, abx: { 1: "A", 2: "B" } };
const room = element.querySelector(".lab-room");
const page = (selector) => room.querySelector(selector);
let open = null; // {key, id} of the comparison on show
let state = null; // the server's last answer to "look"
let later = null; // a newer answer, which waits for the end of what is being heard again
let busy = false;

async function ask(question) {
  const answer = await server.ask({ ...open, ...question });
  if (answer && answer.error) {
    say(answer.error, true);
    return null;
  }
  return answer;
}

function say(text, problem = false) {
  const line = page(".lab-said");
  if (!line) return;
  line.textContent = text;
  line.classList.toggle("problem", problem);
}

async function look() {
  if (!open || !open.id) return draw();
  const asked = open.id;
  // The pair on show is named, so that it stays until it is voted on.
  const trial = state && state.trial ? state.trial.id : null;
  const answer = await ask({ do: "look", trial });
  if (answer && open.id === asked) take(answer);
}

// A new answer. What is on show stays as it is while it is the same, with what was listened to.
function take(answer) {
  const before = state && state.trial ? state.trial.id : null;
  const samePair = state && answer.trial && answer.trial.id === before;
  const sameResult = state && state.open && answer.open && answer.result === state.result;
  if (playing && playing.button && !sameResult) {
    later = answer;
    return;
  }
  later = null;
  state = answer;
  if (samePair || sameResult) return drawCounts();
  stop();
  clips = {};
  heard = {};
  paused = { letter: "A", at: 0 };
  draw();
  if (state.trial) fetchClips(state.trial);
}

async function fetchClips(trial) {
  // Another comparison may be opened while this one's clips are on their way.
  const onShow = () => Boolean(state && state.trial && state.trial.id === trial.id);
  for (const letter of trial.letters) {
    const answer = await ask({ do: "clip", trial: trial.id, letter });
    if (!answer || !onShow()) return;
    const clip = await decode(answer.wav);
    if (!onShow()) return;
    clips[letter] = clip;
  }
  drawPlayer();
}

function ready() {
  return Boolean(state && state.trial)
    && [...state.trial.letters].every((letter) => listened(letter) >= state.trial.needed);
}

async function vote(answer) {
  if (busy || !state || !state.trial) return;
  if (!ready()) return say(`Listen to each clip for ${state.trial.needed.toFixed(1)} s first.`);
  busy = true;
  stop();
  const asked = open.id; // Another comparison may be opened before the answer comes.
  const strength = page(".lab-strength input:checked");
  const found = await ask({
    do: "vote", trial: state.trial.id, vote: answer, heard,
    strength: strength ? Number(strength.value) : null, note: page(".lab-note").value,
  });
  busy = false;
  if (open.id !== asked) return;
  if (!found) return drawPlayer();
  take(found);
  say(found.trial ? "Counted. The next pair:" : "Counted.");
  room.focus();
  trigger("click", { done: found.open });
}

async function reveal(button) {
  if (button.dataset.sure !== "yes") {
    button.dataset.sure = "yes";
    button.dataset.label = button.textContent;
    button.textContent = "Really end it? No more votes will count";
    const reset = () => {
      button.dataset.sure = "";
      button.textContent = button.dataset.label;
    };
    button.addEventListener("blur", reset, { once: true });
    return;
  }
  const asked = open.id;
  const found = await ask({ do: "reveal" });
  if (!found || open.id !== asked) return;
  take(found);
  trigger("click", { done: true });
}
