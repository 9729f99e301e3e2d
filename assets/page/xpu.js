// The link beside the XPU toggle shows the section on the About tab.
element.querySelector("a").addEventListener("click", (event) => {
  event.preventDefault();
  document.querySelector("#tabs [role=tab][data-tab-id=about]").click();
  // The tab is built when it is opened for the first time.
  const show = () => {
    const heading = document.querySelector("#xpu-document h2");
    if (heading && heading.offsetParent) heading.scrollIntoView();
    else requestAnimationFrame(show);
  };
  show();
});
