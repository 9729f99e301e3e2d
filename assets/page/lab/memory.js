// What outlives a reload: the comparison in the room, and what was done with its pair so far. It
// stays in this browser. Which tab of the page was in front is remembered for this window alone.
// dia_demo/ui/compare/reload.py reads both when the page opens.

const ROOM = "dia-room-1"; // {id, pair}
const FRONT = "dia-room-front-1";

// A browser that keeps nothing, as some do in private windows, raises an error.
function attempt(work) {
  try {
    return work();
  } catch {
    return null;
  }
}

// {id, pair} of the last `remember`, or null.
export function recall() {
  return attempt(() => JSON.parse(localStorage.getItem(ROOM)));
}

export function remember(id, pair) {
  attempt(() => localStorage.setItem(ROOM, JSON.stringify({ id, pair })));
}

export function forget() {
  attempt(() => localStorage.removeItem(ROOM));
}

export function rememberFront(isInFront) {
  attempt(() => sessionStorage.setItem(FRONT, String(isInFront)));
}
