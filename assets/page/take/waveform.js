// The picture of a take's sound on a canvas. It grows while the sound arrives.

const PEAKS = 50; // a second
const BAR = 3; // pixels from one bar to the next, one of them empty
const QUIETEST = 0.02; // of the height, so that silence is seen as well

export class Waveform {
  #canvas;
  #peaks = [];
  #seen = 0; // samples in `#peaks`
  #drawn = ""; // what the canvas shows

  constructor(canvas) {
    this.#canvas = canvas;
  }

  clear() {
    this.#peaks = [];
    this.#seen = 0;
    this.#drawn = "";
  }

  // samples: all of the take so far; those after the ones seen before are read.
  add(samples, rate) {
    if (!rate) return;
    const size = Math.round(rate / PEAKS);
    for (; this.#seen + size <= samples.length; this.#seen += size) {
      let peak = 0;
      for (let index = 0; index < size; index += 2) {
        peak = Math.max(peak, Math.abs(samples[this.#seen + index]));
      }
      this.#peaks.push(peak);
    }
  }

  // position: heard, total: of the whole take, both in seconds.
  draw(position, total) {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const scale = window.devicePixelRatio || 1;
    if (!width) return;
    const { color, accentColor } = getComputedStyle(this.#canvas);
    const shown = [
      width, height, scale, color, accentColor, this.#peaks.length, position.toFixed(2), total,
    ].join();
    if (shown === this.#drawn) return;
    this.#drawn = shown;
    if (this.#canvas.width !== Math.round(width * scale)) {
      this.#canvas.width = Math.round(width * scale);
      this.#canvas.height = Math.round(height * scale);
    }
    const context = this.#canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    const loudest = Math.max(0.1, ...this.#peaks);
    const perBar = (total * PEAKS * BAR) / width;
    for (let x = 0; x < width; x += BAR) {
      const index = (x / BAR) * perBar;
      const peaks = this.#peaks.slice(index, Math.max(index + perBar, index + 1));
      const hasArrived = total > 0 && peaks.length > 0;
      const part = hasArrived ? Math.max(QUIETEST, Math.max(...peaks) / loudest) : QUIETEST;
      context.fillStyle = hasArrived && x / width < position / total ? accentColor : color;
      context.globalAlpha = hasArrived ? 1 : 0.4;
      context.fillRect(x, ((1 - part) * height) / 2, BAR - 1, part * height);
    }
  }
}
