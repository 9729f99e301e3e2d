// Loaded in the page's head. Files that the server has written: their addresses, their download, and
// the format of audio, which this browser remembers.
(() => {
  const STORED = "dia-audio-format";
  const MENU = "select.audio-format";
  let format = null; // null: the server's default
  try {
    format = localStorage.getItem(STORED);
  } catch {
    // Storage is blocked: the choice lasts as long as the page.
  }

  function addressOf(file) {
    const path = file.split("/").map(encodeURIComponent).join("/");
    return new URL(`gradio_api/file=${path}`, document.baseURI);
  }

  function show(menu) {
    const names = [...menu.options].map((option) => option.value);
    if (names.includes(format)) menu.value = format;
    else format = null;
  }

  document.addEventListener("change", ({ target }) => {
    if (!(target instanceof Element) || !target.matches(MENU)) return;
    format = target.value;
    try {
      localStorage.setItem(STORED, format);
    } catch {
      // See above.
    }
    for (const menu of document.querySelectorAll(MENU)) show(menu);
  });

  window.diaFiles = {
    addressOf,
    download(file) {
      const link = document.createElement("a");
      link.href = addressOf(file);
      link.download = file.split(/[\\/]/).at(-1);
      link.click();
    },
    get format() {
      return format;
    },
    // A new menu gets the choice of the others.
    showFormat(element) {
      for (const menu of element.querySelectorAll(MENU)) show(menu);
    },
  };
})();
