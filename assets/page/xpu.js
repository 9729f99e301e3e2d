// The link under the XPU toggle opens docs/xpu.md below it.
element.querySelector("a").addEventListener("click", (event) => {
  event.preventDefault();
  const fold = document.querySelector("#xpu-document button.label-wrap");
  if (!fold.classList.contains("open")) fold.click();
  fold.focus();
  fold.scrollIntoView({ block: "nearest" });
});
