// The form of the estimator: the formula, a card for each statistic, the axis.

import { $, $$, h } from "./dom.js";
import { bare, put, state } from "./state.js";

const EXAMPLES = [
  { label: "1/n", formula: "1/n", statistics: { n: { family: "laplace", way: "scale", scale: "2", low: "5" } } },
  { label: "s/n", formula: "s/n", statistics: { s: { family: "laplace", way: "scale", scale: "2" },
    n: { family: "discrete_laplace", way: "scale", scale: "2", low: "5" } } },
  { label: "log(n)", formula: "log(n)", statistics: { n: { family: "laplace", way: "epsilon", epsilon: "0.5", sensitivity: "1", low: "5" } } },
  { label: "n > 5", formula: "where(n > 5, 1, 0)", statistics: { n: { family: "discrete_laplace", way: "scale", scale: "1", low: "0", high: "15" } } },
  { label: "s/n, s ≤ n", formula: "s/n", known: "0 <= s <= n", statistics: { s: { family: "discrete_laplace", way: "scale", scale: "2" },
    n: { family: "discrete_laplace", way: "scale", scale: "2", low: "1" } } },
  { label: "q²", formula: "q**2", statistics: { q: { family: "gaussian", way: "scale", scale: "2" } } },
  { label: "|q|", formula: "abs(q)", statistics: { q: { family: "laplace", way: "scale", scale: "2" } } },
];
const FURTHER = ["known", "empty"];
const WAYS = { scale: "scale", epsilon: "ε", rho: "ρ" };
const WAYS_SPOKEN = { scale: "by its scale", epsilon: "by epsilon and sensitivity", rho: "by rho" };

let families = {};
let changed = () => {};
let count = 0;

/** Build the parts of the form that never change. */
export function setUp(options, onChange) {
  families = options.families;
  changed = onChange;
  const formula = $("#formula");
  formula.addEventListener("input", () => { state.formula = formula.value; changed(); });
  for (const name of FURTHER) $(`#${name}`).addEventListener("input", (event) => { state[name] = event.target.value; changed(); });
  $("#form").addEventListener("submit", (event) => event.preventDefault());
  $("#examples").append(...EXAMPLES.map((example) => h("button", {
    type: "button", onclick: () => {
      Object.assign(state, { formula: example.formula, known: example.known ?? "", empty: "", vary: "", from: "", to: "", at: bare() });
      state.statistics = bare(structuredClone(example.statistics));
      refresh(Object.keys(state.statistics));
      changed();
    },
  }, example.label)));
}

export const firstView = () => {
  const { formula, statistics } = structuredClone(EXAMPLES[0]);
  return { formula, statistics: bare(statistics) };
};

/** Show the state: the formula and a card for each of these statistics. */
export function refresh(names) {
  const formula = $("#formula");
  if (formula.value !== state.formula) formula.value = state.formula;
  for (const name of FURTHER) if ($(`#${name}`).value !== state[name]) $(`#${name}`).value = state[name];
  $("#statistics").replaceChildren(...names.map(card));
}

/** Keep cards in step with the formula's statistics, without touching those in use. */
export function follow(names, place = $("#statistics")) {
  const cards = new Map([...place.children].map((c) => [c.dataset.name, c]));
  if (names.length === cards.size && names.every((name) => cards.has(name))) return;
  place.replaceChildren(...names.map((name) => cards.get(name) ?? card(name)));
}

function fieldsOf(name) {
  if (!Object.hasOwn(state.statistics, name)) {
    put(state.statistics, name, { family: "laplace", way: "scale", scale: "2" });
  }
  const given = state.statistics[name];
  if (!Object.hasOwn(families, given.family ?? "")) given.family = "laplace";
  const ways = families[given.family].ways;
  if (!Object.hasOwn(ways, given.way ?? "")) given.way = Object.keys(ways)[0];
  for (const field of ways[given.way]) given[field.name] ??= field.default;
  return given;
}

function card(name) {
  const given = fieldsOf(name);
  const family = families[given.family];
  const again = () => {
    const next = card(name);
    place.replaceWith(next);
    changed();
    return next;
  };
  const select = h("select", { "aria-label": `Noise of ${name}`, "data-field": name, onchange: (event) => {
    const kept = state.statistics[name];
    put(state.statistics, name, { family: event.target.value, way: kept.way, low: kept.low, high: kept.high,
      scale: kept.scale, epsilon: kept.epsilon, sensitivity: kept.sensitivity });
    for (const [key, value] of Object.entries(state.statistics[name])) if (value === undefined) delete state.statistics[name][key];
    $("select", again()).focus();
  } }, ...Object.entries(families).map(([key, f]) => {
    const option = h("option", { value: key }, f.label);
    option.selected = key === given.family;
    return option;
  }));
  const place = h("fieldset", { class: "card statistic", "data-name": name },
    h("legend", {}, name, h("small", {}, "is published with noise")),
    h("div", { class: "choices" }, select, ways(name, given, family, again)),
    h("p", { class: "error", "data-error": name, "aria-live": "polite" }),
    ...family.ways[given.way].map((field) => parameter(name, field, given)),
    h("hr", { class: "divide" }),
    bound(name, "low", "is known to be at least", given, family.whole),
    bound(name, "high", "is known to be at most", given, family.whole));
  return place;
}

function ways(name, given, family, again) {
  const all = Object.keys(family.ways);
  if (all.length < 2) return h("span");
  const group = `way-${count++}`;
  return h("div", { class: "ways", role: "radiogroup", "aria-label": `How the noise of ${name} is given` },
    ...all.map((way) => h("label", {}, h("input", { type: "radio", name: group, checked: way === given.way,
      "aria-label": WAYS_SPOKEN[way], onchange: () => {
        given.way = way;
        $(".ways input:checked", again()).focus();
      } }), h("span", { "aria-hidden": "true" }, WAYS[way]))));
}

/** A slider and a number that follow each other; `map` turns slider steps into numbers and back. */
export function paired({ name, field, label, value, map, check, onInput, key = `${name}.${field}` }) {
  const id = `field-${count++}`;
  const text = h("input", { type: "text", id, inputmode: "decimal", maxlength: "60", value: value ?? "",
    "data-field": key, "aria-describedby": `${id}-error`, disabled: Boolean(check) && !check.on,
    oninput: () => { slide.value = map.step(text.value); onInput(text.value); } });
  const slide = h("input", { type: "range", min: "0", max: "200", "aria-label": `${label} of ${name}, slider`,
    disabled: Boolean(check) && !check.on,
    oninput: () => { text.value = map.number(Number(slide.value)); spoken(); onInput(text.value); } });
  const spoken = () => slide.setAttribute("aria-valuetext", text.value);
  slide.value = map.step(value);
  spoken();
  const head = check
    ? h("div", { class: "check" }, check.box(text, slide), h("label", { for: id }, label))
    : h("label", { for: id }, label);
  return h("div", { class: "slider" }, head, slide, text,
    h("p", { class: "error", id: `${id}-error`, "data-error": key, "aria-live": "polite" }));
}

/** Slider steps that are even in the logarithm, from the one number to the other. */
export function logarithmic(from, to) {
  const [low, high] = [Math.log(from), Math.log(to)];
  return {
    step: (text) => Math.round(200 * (Math.log(numeric(text) || from) - low) / (high - low)),
    number: (step) => String(Number(Math.exp(low + (high - low) * step / 200).toPrecision(2))),
  };
}

function parameter(name, field, given) {
  return paired({ name, field: field.name, label: field.label, value: given[field.name],
    map: logarithmic(field.low, field.high), onInput: (text) => { given[field.name] = text; changed(); } });
}

function bound(name, side, label, given, whole) {
  const reach = side === "low" ? [-20, 80] : [0, 200];
  const unit = whole ? 1 : 0.5;
  const on = (given[side] ?? "") !== "";
  const usual = side === "low" ? "1" : "100";
  const set = (text) => { given[side] = text; changed(); };
  return paired({ name, field: side, label, value: given[side],
    map: {
      step: (text) => Math.round(200 * ((numeric(text) ?? reach[0]) - reach[0]) / (reach[1] - reach[0])),
      number: (step) => String(Math.round((reach[0] + (reach[1] - reach[0]) * step / 200) / unit) * unit),
    },
    check: { on, box: (text, slide) => h("input", { type: "checkbox", checked: on,
      "aria-label": `${name} has ${side === "low" ? "a lower" : "an upper"} bound`, onchange: (event) => {
        const used = event.target.checked;
        text.disabled = slide.disabled = !used;
        text.value = used ? text.value || usual : "";
        text.dispatchEvent(new Event("input"));
        if (used) text.focus();
      } }) },
    onInput: set });
}

/** Read a number as the server would, or nothing. */
function numeric(text) {
  const parts = String(text ?? "").trim().replace("−", "-").split("/");
  const value = parts.length === 2 ? Number(parts[0]) / Number(parts[1]) : Number(parts[0]);
  return parts[0] !== "" && Number.isFinite(value) ? value : undefined;
}

/** Show the axis: which statistic runs, where the others are held, from where to where. */
export function showAxis(names, axis) {
  const place = $("#axis");
  const known = place.dataset.names === names.join("\n");
  const set = (change) => (event) => { change(event.target.value); changed(); };
  if (!known) {
    place.dataset.names = names.join("\n");
    const field = (key, label, value, change) => {
      const id = `field-${count++}`;
      return [h("label", { for: id }, label), h("input", { id, type: "text", inputmode: "decimal",
        maxlength: "60", "data-field": key, value: value ?? "", oninput: set(change) }),
        h("p", { class: "error", "data-error": key, "aria-live": "polite" })];
    };
    const select = h("select", { id: "vary", onchange: set((value) => { state.vary = value; state.from = state.to = "";
      place.dataset.names = ""; }) }, ...names.map((name) => h("option", { value: name }, name)));
    place.replaceChildren(h("div", { class: "held" },
      ...(names.length > 1 ? [h("label", { for: "vary" }, "runs over"), select] : []),
      ...field("from", "from", state.from, (value) => { state.from = value; }),
      ...field("to", "to", state.to, (value) => { state.to = value; }),
      ...names.filter((name) => name !== axis.name).flatMap((name) =>
        field(`at.${name}`, `${name} held at`, state.at[name], (value) => put(state.at, name, value)))));
  }
  const select = $("#vary");
  if (select) select.value = axis.name;
  const held = new Map(Object.entries(axis.held));
  for (const input of $$("input", place)) {
    const key = input.dataset.field;
    const value = key.startsWith("at.") ? held.get(key.slice(3)) : axis[key];
    input.placeholder = String(value ?? "");
  }
}
