// Texts and keys for the listener. Clips are called 1, 2 and X on the page, and A, B and X in
// requests and records.

export const CLIP_NAMES = { A: "1", B: "2", X: "X" };

// Votes in the order of their buttons: the answer on the wire, the text, the digit pressed with
// Shift.
export const VOTES = {
  preference: [["A", "1 is better", "1"], ["none", "No difference", "0"], ["B", "2 is better", "2"]],
  abx: [["A", "X is 1", "1"], ["B", "X is 2", "2"]],
};
const MARGIN = 0.5; // seconds that may be missing at the end of a clip that counts as played
const DIGIT = /^(?:Digit|Numpad)(\d)$/;

// The clip that a key plays, or undefined. Digits are recognised by the position of their key,
// because some keyboards need Shift for them.
export function clipOfKey(event) {
  const [, digit] = DIGIT.exec(event.code) || [];
  return { 1: "A", 2: "B", a: "A", b: "B", x: "X" }[digit || event.key.toLowerCase()];
}

// The vote that a key means, or undefined.
export function voteOfKey(event, kind) {
  const [, digit] = DIGIT.exec(event.code) || [];
  const vote = event.shiftKey && VOTES[kind].find(([, , key]) => key === digit);
  return vote ? vote[0] : undefined;
}

export function keyHelp(kind) {
  const [clips, every] = kind === "abx" ? ["1, 2, X", "all three"] : ["1, 2", "both"];
  const votes = VOTES[kind].map(([, , digit]) => `Shift+${digit}`).join(", ");
  return `Keys: ${clips} play a clip · P plays ${every} · Space plays and pauses · ← → move by 2 s · `
    + `R repeats · F, T, W play from here, to here, all of a long clip · ${votes} vote`;
}

// What is missing before a vote is possible. needed: seconds of each clip. missing: letters.
export function voteHint(letters, missing, needed, length) {
  if (!missing.length) return "You can vote now.";
  const names = missing.map((letter) => CLIP_NAMES[letter]).join(" and ");
  let clips = `clip${missing.length > 1 ? "s" : ""} ${names}`;
  if (missing.length === letters.length) clips = letters.length > 2 ? "all three clips" : "both clips";
  const isLong = length - needed > MARGIN;
  const listen = isLong ? `${needed.toFixed(0)} s of ${clips}` : `${clips} to the end`;
  return `Listen to ${listen} before you vote.`;
}
