// The example for programs, with the address of this page.
const example = element.querySelector("[data-example]");
example.textContent = example.dataset.example.replace("{address}", document.baseURI);
