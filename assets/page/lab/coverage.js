// The parts of a clip that were played. A part that was played twice counts once.

const TOUCHING = 0.01; // seconds between two intervals that count as one

export class Coverage {
  // `intervals`: [start, end] in seconds, no two of them touching.
  constructor(intervals = []) {
    this.intervals = intervals;
  }

  get seconds() {
    return this.intervals.reduce((sum, [start, end]) => sum + end - start, 0);
  }

  // The same with one more interval.
  with(start, end) {
    const apart = [];
    let [low, high] = [start, end];
    for (const [from, to] of this.intervals) {
      if (to < low - TOUCHING || from > high + TOUCHING) {
        apart.push([from, to]);
      } else {
        low = Math.min(low, from);
        high = Math.max(high, to);
      }
    }
    return new Coverage([...apart, [low, high]]);
  }
}
