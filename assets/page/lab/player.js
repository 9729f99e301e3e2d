// Playing

let sound = null; // AudioContext, made with the first clip
let clips = {}; // letter -> AudioBuffer of the present pair
let heard = {}; // letter -> seconds listened to
let playing = null; // {source, letter or button, began, offset}
let paused = { letter: "A", at: 0 };
let keepPlace = false; // switching goes on from the same place; otherwise it restarts the clip
const RAMP = 0.005; // seconds of fade at each start and stop: a cut within a wave clicks

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
  const gain = sound.createGain();
  gain.gain.setValueAtTime(0, sound.currentTime);
  gain.gain.linearRampToValueAtTime(1, sound.currentTime + RAMP);
  source.connect(gain).connect(sound.destination);
  const mine = { ...what, source, gain: gain.gain, began: sound.currentTime, offset: at };
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
  fadeOut(mine);
  const at = place(mine);
  if (mine.letter) {
    heard[mine.letter] = (heard[mine.letter] || 0) + Math.max(0, at - mine.offset);
    paused = { letter: mine.letter, at };
  } else {
    rest(mine, at);
  }
}

function fadeOut(mine) {
  const now = sound.currentTime;
  mine.gain.cancelScheduledValues(now);
  mine.gain.setValueAtTime(Math.min(1, (now - mine.began) / RAMP), now);
  mine.gain.linearRampToValueAtTime(0, now + RAMP);
  mine.source.stop(now + RAMP);
}

function place(mine) {
  return Math.min(mine.offset + sound.currentTime - mine.began, mine.source.buffer.duration);
}

function listened(letter) {
  const now = playing && playing.letter === letter ? place(playing) - playing.offset : 0;
  return (heard[letter] || 0) + now;
}

// To a clip: from its start or, where the listener wants that, from where the other one is. Whether
// both sides keep step is not known here: it would say before the vote that their codes are equal.
function switchTo(letter) {
  if (!state || !state.trial || !clips[letter]) return;
  const other = playing && playing.letter && playing.letter !== letter;
  const at = keepPlace && other ? place(playing) : 0;
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
