// Loaded in the page's head. Only one player plays at a time on the whole page: one that starts
// pauses the others. A player is an object with a method `pause`. Media elements are detected
// automatically; a player that uses Web Audio announces each start:
// document.dispatchEvent(new CustomEvent("dia-play", { detail: player }));
(() => {
  let playing = null;

  function start(player) {
    if (playing && playing !== player) playing.pause();
    playing = player;
  }

  document.addEventListener("dia-play", (event) => start(event.detail));
  // Started with the browser's own controls.
  document.addEventListener("play", (event) => start(event.target), true);
  // Started by a script. gradio's players and those of earlier takes are not in the document, so
  // their events do not reach it.
  const { play } = HTMLMediaElement.prototype;
  HTMLMediaElement.prototype.play = function playAlone() {
    start(this);
    return play.call(this);
  };
})();
