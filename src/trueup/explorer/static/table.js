// The plan of a private table: measures, budget and weights in; errors by group size and the command out.

import { ask } from "./api.js";
import { draw, line } from "./charts.js";
import { $, clearErrors, h, say, showError, shown, table, tabs } from "./dom.js";
import { state } from "./state.js";

const USUAL = "n = count\nwage = mean(wage, 0, 120000)";
const KINDS = ["n = count", "wage = mean(wage, 0, 120000)", "sex = share(sex, ['f', 'm'])", "hours = sum(hours, 0, 60)", "pay = per_record(pay, root:3, 10)"];
const FIELDS = [
  { name: "epsilon", label: "budget ε", usual: "1" },
  { name: "size", label: "records in a group", usual: "100" },
  { name: "by", label: "groups by", usual: "state" },
  { name: "keys", label: "groups listed in", usual: "groups.csv" },
  { name: "unit", label: "whose privacy", usual: "", hint: "each row" },
  { name: "at_most", label: "rows of each", usual: "", hint: "1" },
  { name: "weights", label: "weights of the measures", usual: "", hint: "equal" },
];
const COLOURS = ["ours", "plugin", "near", "soft", "truth", "ink"];
const DASHES = ["solid", "dash", "longdashdot", "dot", "dashdot", "longdash"];
const root = () => $("#plan-table");
let changed = () => {};
let timer;
let asked = "";
let plan = null;
let form = "command";

export function setUpTable(onChange) {
  changed = (name, value) => {
    state.table[name] = value;
    onChange();
    clearTimeout(timer);
    timer = setTimeout(showTable, 250);
  };
  $("#measures").addEventListener("input", (event) => changed("measures", event.target.value));
  $("#kinds").append(...KINDS.map((line) => h("button", { type: "button", onclick: () => {
    const area = $("#measures");
    const lines = area.value.split("\n").filter((before) => before.trim());
    const taken = (name) => lines.some((before) => before.split("=")[0].trim() === name);
    const [name, ...measure] = line.split(" ");
    let own = name;
    for (let i = 2; taken(own); i += 1) own = `${name}${i}`;
    area.value = [...lines, [own, ...measure].join(" ")].join("\n");
    area.dispatchEvent(new Event("input"));
  } }, `+ ${line.split(/[ (]/)[2]}`)));
  $("#table-fields").append(...FIELDS.map(({ name, label, usual, hint }) => h("div", name === "weights" ? { class: "whole" } : {},
    h("label", { for: `table-${name}` }, label),
    h("input", { id: `table-${name}`, type: "text", maxlength: "200", placeholder: hint ?? usual, "data-field": name,
      "aria-describedby": `table-${name}-error`, oninput: (event) => changed(name, event.target.value) }),
    h("p", { class: "error", id: `table-${name}-error`, "data-error": name, "aria-live": "polite" }))));
  $("#use-weights").addEventListener("click", () => {
    $("#table-weights").value = plan.weights;
    changed("weights", plan.weights);
  });
  tabs($('[aria-label="Form of the plan"]'), (tab) => {
    form = tab.dataset.form;
    $("#release-panel").setAttribute("aria-labelledby", tab.id);
    showCommand();
  });
}

/** Ask for the plan, unless it is there already. */
export async function showTable() {
  const request = {};
  for (const [name, usual] of [["measures", USUAL], ...FIELDS.map((field) => [field.name, field.usual])]) {
    const input = $(name === "measures" ? "#measures" : `#table-${name}`);
    if (document.activeElement !== input) input.value = state.table[name] ?? usual;
    request[name] = input.value;
  }
  if (JSON.stringify(request) === asked) return;
  asked = JSON.stringify(request);
  const results = $("#table-results");
  results.setAttribute("aria-busy", "true");
  let answer;
  try {
    answer = await ask("table", request);
  } catch {
    asked = "";
    return;
  }
  if (!answer) return;
  results.setAttribute("aria-busy", "false");
  results.classList.toggle("stale", Boolean(answer.error));
  clearErrors(root());
  if (answer.error) {
    showError(root(), answer.error, "measures");
    say(`Error: ${answer.error.message}`);
    return;
  }
  plan = answer;
  show();
}

function show() {
  const { measures, sizes } = plan;
  $("#table-errors").replaceChildren(table(["records", ...sizes.map((n) => n.toLocaleString("en"))],
    measures.map(({ name, method, errors }) => [h("div", {}, name, h("small", {}, method)), ...errors.map((e) => shown(e, 3))]),
    { class: "options" }));
  const rows = measures.map(({ name }) => `${name} ${shown(plan.proposed[name], 3)} (now ${shown(plan.given[name], 3)})`);
  const size = plan.size.toLocaleString("en");
  $("#proposal").textContent = `Weights proposed for groups of ${size}: ${plan.weights}. Standard errors: ${rows.join(", ")}.`;
  $("#use-weights").disabled = measures.every(({ name }) => plan.proposed[name] === plan.given[name]);
  $("#release-privacy").textContent = plan.privacy;
  showCommand();
  draw("chart-table", (c) => ({
    traces: measures.map(({ name, curve }, i) => line(name, plan.counts, curve, c[COLOURS[i % 6]], { dash: DASHES[i % 6] })),
    layout: { xaxis: { type: "log", dtick: 1, title: { text: "records in the group (total of a per-record sum)" } },
      yaxis: { type: "log", dtick: 1, title: { text: "standard error" } } },
  }), "Standard error of each measure against the number of records in the group.");
  say("The plan of the table was updated.");
}

function showCommand() {
  $("#release-code code").textContent = plan?.[form] ?? "";
}
