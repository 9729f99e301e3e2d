// The pages before, between and after the trials. Each function returns an element.

import { make, makeButton, makeChoice } from "../page/dom.js";
import { HeadphoneCheck } from "./headphones.js";

const LONGEST_NAME = 60;
const STORED = [
  "your answers, how long you listened to each clip, and when",
  "a random number that this browser keeps, so that you can go on after an interruption",
];
const COPIED_MS = 2000;

// `about`: the test's. `isRecruited`: a platform named the person. `start` gets the name.
export function welcome(about, { isRecruited, isLocal, isLasting, start }) {
  const page = step(about.title || "Listening test");
  const { trials, training } = about;
  page.append(make("p", "", `The test has ${trials} ${trials === 1 ? "trial" : "trials"}. In each you `
    + "listen to short clips of speech, most of it synthetic, and answer one question. "
    + `${training ? `${training} training trials come first; they do not count. ` : ""}`
    + "You can stop at any time and go on later in this browser."));
  page.append(make("p", "", "Use headphones if you can, and a quiet place."));
  page.append(make("h2", "", "What is stored"), listOf(isLocal, isRecruited));
  if (about.consent) page.append(make("p", "consent", about.consent));
  if (!isLasting) {
    page.append(make("p", "problem", "This browser stores nothing for this page, perhaps because its "
      + "window is private. Do not reload the page before the end."));
  }
  const name = make("input");
  Object.assign(name, { maxLength: LONGEST_NAME, autocomplete: "nickname" });
  const label = make("label", "name", "Your name (optional; whoever made the test sees it) ");
  label.append(name);
  const go = makeButton("main", "Start", () => start(name.value.trim()));
  go.disabled = true;
  const agree = makeChoice(
    "checkbox", "option", "I agree to take part, and that this is stored.", false,
    (checked) => { go.disabled = !checked; },
  );
  page.append(label, agree, go);
  return page;
}

function listOf(isLocal, isRecruited) {
  const list = make("ul");
  const names = isRecruited ? ["the participant and study numbers of the site that sent you here"] : [];
  for (const text of [...STORED, "your name, only if you write it below", ...names]) {
    list.append(make("li", "", text));
  }
  list.append(make("li", "", isLocal
    ? "all of it only in this browser, until you pass on the file of results at the end"
    : "no address, no cookie; whoever made the test sees the answers, and nobody else"));
  return list;
}

// `check`: a VolumeCheck.
export function volume(check, next) {
  const page = step("Set the volume");
  const go = makeButton("main", "The volume is right", next);
  page.append(check.node, go);
  return page;
}

export function headphones(player, done) {
  const page = step("Headphone check");
  const advice = "Put on headphones for this test. You will hear three tones, six times. Say each time "
    + "which tone is the quietest.";
  page.append(make("p", "", advice), new HeadphoneCheck(player, done).node);
  return page;
}

// `again` repeats the check, `next` goes on without.
export function noHeadphones({ again, next }) {
  const page = step("This did not sound like headphones");
  page.append(
    make("p", "", "Loudspeakers make one of the tones quieter than it is. Check that both sides of your "
      + "headphones play, then try once more. You may go on all the same; that the check was not passed "
      + "is stored with your answers."),
    makeButton("main", "Try again", again),
    makeButton("", "Go on without", next),
  );
  return page;
}

export function pause(done, total, next) {
  const page = step("Time for a break");
  page.append(
    make("p", "", `You have answered ${done} of ${total}. Rest your ears for a minute or two; your answers `
      + "are kept. Leave the volume as it is."),
    makeButton("main", "Go on", next),
  );
  return page;
}

export function closed() {
  const page = step("This test is closed");
  page.append(make("p", "", "Whoever made it accepts no more answers. Thank you for your interest."));
  return page;
}

// While the last answers are sent.
export function sending() {
  const page = step("Almost done");
  page.append(make("p", "", "Your last answers are being saved. Leave this page open until they are."));
  return page;
}

// `end`: {completion_code, completion_url} of the server, or {file} of a test in a folder.
export function end({ completion_code: code, completion_url: url, file }) {
  const page = step("Thank you");
  if (file) {
    page.append(
      make("p", "", "Your answers are in this browser alone. Save them as a file, and send it to whoever "
        + "gave you the test."),
      fileLink(file),
    );
    return page;
  }
  page.append(make("p", "", "All your answers are saved. You can close this page."));
  if (code) page.append(codeLine(code));
  if (url) {
    const link = make("a", "main", "Back to the site that sent you here");
    link.href = url;
    page.append(link);
  }
  return page;
}

function fileLink({ name, text }) {
  const link = make("a", "main", "Save the results");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = name;
  return link;
}

function codeLine(code) {
  const line = make("p", "code", "Your completion code: ");
  const copy = makeButton("", "Copy", async () => {
    await navigator.clipboard?.writeText(code);
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = "Copy"; }, COPIED_MS);
  });
  line.append(make("strong", "", code), " ", copy);
  return line;
}

function step(title) {
  const page = make("section", "step");
  page.append(make("h1", "", title));
  return page;
}
