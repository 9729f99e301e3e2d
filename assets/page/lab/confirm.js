// Deleting a comparison needs two presses: the first one changes the button's text to a question,
// the second one deletes.
const QUESTION = "Press again to delete it with its votes";

export class Confirm {
  #restore = null; // restores the button's own text while it asks

  // element: the part of the list of comparisons that contains the button.
  constructor({ element }) {
    const list = element.closest("#lab-keep");
    // Before gradio's own listener, which deletes.
    list.addEventListener("click", (event) => {
      const button = event.target.closest("#lab-delete");
      const isChosen = list.querySelector("#lab-kept input").value !== "";
      if (!button || !isChosen) return;
      if (this.#restore) {
        this.#restore();
        return;
      }
      event.stopPropagation();
      this.#ask(button);
    }, { capture: true });
  }

  #ask(button) {
    const label = button.textContent;
    const restore = () => {
      this.#restore = null;
      button.textContent = label;
      button.removeEventListener("blur", restore);
    };
    this.#restore = restore;
    button.textContent = QUESTION;
    button.focus(); // Safari focuses no button that is pressed.
    button.addEventListener("blur", restore);
  }
}
