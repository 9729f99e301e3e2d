// Playing

let sound = null; // AudioContext, made with the first clip
let clips = {}; // letter -> AudioBuffer of the present pair
let heard = {}; // letter -> seconds listened to
let playing = null; // {source, letter or button, began, offset}
let paused = { letter: "A", at: 0 };

async function decode(wav) {
  const bytes = Uint8Array.from(atob(wav), (char) => char.charCodeAt(0));
  sound ??= new AudioContext();
  return sound.decodeAudioData(bytes.buffer);
}

// `what` is {letter} of the present pair, or {button} of a clip that is heard again.
async function play(what, buffer, at) {
  stop();
  await sound.resume();
  const source = sound.createBufferSource();
  source.buffer = buffer;
  source.connect(sound.destination);
  const mine = { ...what, source, began: sound.currentTime, offset: at };
  playing = mine;
  source.onended = () => {
    if (playing !== mine) return;
    stop();
    paused.at = 0;
    drawPlayer();
  };
  source.start(0, at);
  drawPlayer();
}

// Ends what plays and counts the seconds it was listened to.
function stop() {
  if (!playing) return;
  const mine = playing;
  playing = null;
  mine.source.onended = null;
  mine.source.stop();
  const at = place(mine);
  if (mine.letter) {
    heard[mine.letter] = (heard[mine.letter] || 0) + Math.max(0, at - mine.offset);
    paused = { letter: mine.letter, at };
  } else {
    rest(mine, at);
  }
}

function place(mine) {
  return Math.min(mine.offset + sound.currentTime - mine.began, mine.source.buffer.duration);
}

function listened(letter) {
  const now = playing && playing.letter === letter ? place(playing) - playing.offset : 0;
  return (heard[letter] || 0) + now;
}

// To a clip: from its start, or, where both keep step in time, from where the other one is.
function switchTo(letter) {
  if (!state || !state.trial || !clips[letter]) return;
  const at = state.trial.aligned && playing && playing.letter !== letter ? place(playing) : 0;
  play({ letter }, clips[letter], Math.min(at, clips[letter].duration));
}

function toggle() {
  if (!state || !state.trial) return;
  if (playing) {
    stop();
    return drawPlayer();
  }
  const { letter, at } = paused;
  if (clips[letter]) play({ letter }, clips[letter], at < clips[letter].duration - 0.05 ? at : 0);
}
