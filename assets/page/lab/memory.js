// What survives a reload: the comparison in the room and the progress of its pair, stored in this
// browser; and the selected tab of the page, stored for this window. dia_demo/ui/compare/reload.py
// reads both when the page opens.

const ROOM = "dia-room-1"; // {id, pair}
const FRONT = "dia-room-front-1";

// Storage may be disabled, for example in private windows; then access raises an error.
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
