// Small things about the document: elements, errors beside fields, words for screen readers.

export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

/** Make an element; text is always text, never markup. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "checked" || name === "disabled" || name === "hidden") element[name] = value;
    else if (value !== undefined && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Words as a sentence: a capital first, unless it is a name in quotes or before a colon. */
export function sentence(words) {
  return /^\S+:/.test(words) ? words : words.charAt(0).toUpperCase() + words.slice(1);
}

/** Tell a screen reader. */
export function say(words) {
  $("#said").textContent = words;
}

/** Clear the errors of a view. */
export function clearErrors(root) {
  for (const place of $$("[data-error]", root)) place.replaceChildren();
  for (const field of $$("[aria-invalid]", root)) field.removeAttribute("aria-invalid");
}

/** Show an error beside the field that caused it, or beside the fallback. */
export function showError(root, error, fallback) {
  const named = (field) => $$("[data-error]", root).find((p) => p.dataset.error === field);
  const owner = error.field.includes(".") ? error.field.slice(0, error.field.lastIndexOf(".")) : "";
  const found = [error.field, owner, fallback].find((field) => field && named(field));
  const place = named(found);
  if (!place) return;
  const [first, ...drawing] = error.message.split("\n");
  place.replaceChildren(sentence(first));
  if (drawing.length) place.append(h("pre", {}, drawing.join("\n")));
  if (error.hint) place.append(h("span", { class: "hint" }, sentence(error.hint)));
  for (const field of $$("[data-field]", root)) { // an empty field is wrong only if it must be filled
    const wrong = field.value !== "" || error.kind === "missing";
    if (field.dataset.field === found && wrong) field.setAttribute("aria-invalid", "true");
  }
}

/** A table: heads, and rows of words or elements. */
export function table(heads, rows, attributes = {}) {
  return h("table", attributes, h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((cell) => h("td", {}, cell))))));
}

/** Make a row of tabs work: click, arrow keys, Home and End. */
export function tabs(list, chosen) {
  const all = $$('[role="tab"]', list);
  const select = (tab, focus) => {
    for (const other of all) {
      const on = other === tab;
      other.setAttribute("aria-selected", String(on));
      other.tabIndex = on ? 0 : -1;
    }
    if (focus) tab.focus();
    chosen(tab);
  };
  for (const tab of all) tab.addEventListener("click", () => select(tab, false));
  list.addEventListener("keydown", (event) => {
    const at = all.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    select(all[(to + all.length) % all.length], true);
  });
  return (tab) => select(tab, false);
}

/** Copy a text, and say so on the button. */
export async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea", { class: "unseen" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  const words = button.textContent;
  button.textContent = "Copied";
  say("Copied");
  setTimeout(() => { button.textContent = words; }, 1200);
}

/** A number for people: four digits, a real minus. */
export function shown(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e5 || size < 1e-4
    ? value.toExponential(2).replace("e+", "e")
    : String(Number(value.toPrecision(digits)));
  return text.replace("-", "−");
}
