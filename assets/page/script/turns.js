// The turns of a script, counted as the server counts them (dia_demo/text/script.py): a tag without
// words is none.

const TAG = /\[S([12])\]/g;

// {speaker, start, end, text}: from its tag to the next one. speaker: 0 for words before any tag.
export function turnsOf(text) {
  const tags = [...text.matchAll(TAG)].map((match) => ({
    speaker: Number(match[1]), start: match.index, words: match.index + match[0].length,
  }));
  const starts = [{ speaker: 0, start: 0, words: 0 }, ...tags];
  return starts
    .map(({ speaker, start, words }, index) => {
      const end = starts[index + 1]?.start ?? text.length;
      return { speaker, start, end, text: text.slice(words, end).trim() };
    })
    .filter((turn) => turn.text);
}

// The speaker whose turn it is after this text.
export function nextSpeaker(text) {
  const last = [...text.matchAll(TAG)].at(-1);
  if (last) return 3 - Number(last[1]);
  return text.trim() ? 2 : 1;
}

export function swapSpeakers(text) {
  return text.replace(TAG, (_, speaker) => `[S${3 - Number(speaker)}]`);
}

// What "Add turn" changes: `text` in the place of the characters from `start` to `end`, with the
// cursor at `cursor` after that. The turn follows the one at `place`.
export function addTurn(script, place) {
  const turn = turnsOf(script).find(({ end }) => place < end);
  const turnEnd = turn?.end ?? script.length;
  const before = script.slice(0, turnEnd).trimEnd();
  // A tag at the end that has no words yet is used.
  const [, unused] = script.slice(turnEnd).match(/^\s*(\[S[12]\])\s*$/) ?? [];
  const end = unused ? script.length : turnEnd;
  const tag = unused ?? `[S${nextSpeaker(before)}]`;
  const turnText = `${before && "\n"}${tag} `;
  const text = turnText + (script.slice(end) && "\n");
  return { start: before.length, end, text, cursor: before.length + turnText.length };
}
