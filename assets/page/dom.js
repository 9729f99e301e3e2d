// Creates elements of the page. Scripts and names are set as text, never as HTML.

export function make(tag, name = "", text = "") {
  const node = document.createElement(tag);
  if (name) node.className = name;
  if (text) node.textContent = text;
  return node;
}

export function makeButton(name, text, press) {
  const node = make("button", name, text);
  node.type = "button";
  node.addEventListener("click", press);
  return node;
}

export function makeGroup(name, label, ...children) {
  const node = make("div", name);
  node.setAttribute("role", "group");
  node.setAttribute("aria-label", label);
  node.append(...children);
  return node;
}

// A checkbox or radio button inside its label.
export function makeChoice(type, name, text, checked, change) {
  const label = make("label", name);
  const input = make("input");
  input.type = type;
  input.checked = checked;
  input.addEventListener("change", () => change(input.checked));
  label.append(input, make("span", "", text));
  return label;
}

// One row of a list for each value. Rows are changed in place, so that the focus stays.
export function updateRows(list, values, makeRow, showRow) {
  while (list.children.length > values.length) list.lastElementChild.remove();
  values.forEach((value, index) => {
    showRow(list.children[index] ?? list.appendChild(makeRow(index)), value, index);
  });
}
