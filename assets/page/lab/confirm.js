// What cannot be undone needs two presses: the first one changes the button's text to a question,
// the second one does it.
const QUESTIONS = {
  "lab-delete": ["Press again to delete it with its votes", "#lab-kept input"],
  "lab-panel-delete": ["Press again to delete it with its votes", "#lab-panel-tests input"],
  "lab-panel-reveal": ["Press again to end the test for all", "#lab-panel-tests input"],
};

export class Confirm {
  #restore = null; // restores the button's own text while it asks

  // element: a part of the list that contains the buttons.
  constructor({ element }) {
    const list = element.closest("#lab-keep, #lab-panel");
    // Before gradio's own listener, which acts.
    list.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      const [question, menu] = QUESTIONS[button?.id] ?? [];
      const isChosen = question && list.querySelector(menu).value !== "";
      if (!isChosen) return;
      if (this.#restore) {
        this.#restore();
        return;
      }
      event.stopPropagation();
      this.#ask(button, question);
    }, { capture: true });
  }

  #ask(button, question) {
    const label = button.textContent;
    const restore = () => {
      this.#restore = null;
      button.textContent = label;
      button.removeEventListener("blur", restore);
    };
    this.#restore = restore;
    button.textContent = question;
    button.focus(); // Safari focuses no button that is pressed.
    button.addEventListener("blur", restore);
  }
}
