// In the page's head. Only one thing plays at a time on the whole page: what starts to play pauses
// what played before. A player is anything with a method `pause`. Media elements are noticed by
// themselves; a player of Web Audio announces itself whenever it starts:
// document.dispatchEvent(new CustomEvent("dia-play", { detail: player }));
(() => {
  let playing = null;

  function start(player) {
    if (playing && playing !== player) playing.pause();
    playing = player;
  }

  document.addEventListener("dia-play", (event) => start(event.detail));
  // From the browser's own controls.
  document.addEventListener("play", (event) => start(event.target), true);
  // From a script. gradio's players and those of earlier takes are not part of the document, so
  // their events do not reach it.
  const { play } = HTMLMediaElement.prototype;
  HTMLMediaElement.prototype.play = function playAlone() {
    start(this);
    return play.call(this);
  };
})();
