// The plan of a mean: budget, records and bounds in; mechanisms, splits and errors out.

import { ask } from "./api.js";
import { draw, line } from "./charts.js";
import { $, $$, clearErrors, h, say, showError, shown } from "./dom.js";
import { state } from "./state.js";
import { setUpTable, showTable } from "./table.js";

const FIELDS = [
  { name: "epsilon", label: "budget ε", usual: "1" },
  { name: "count", label: "records, about", usual: "200" },
  { name: "low", label: "smallest value", usual: "0" },
  { name: "high", label: "largest value", usual: "1" },
  { name: "least", label: "records, at least", usual: "1" },
  { name: "target", label: "useful below an sd of", usual: "" },
];
const COLOURS = ["ours", "plugin", "soft", "truth", "ink"];
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];
const root = () => $("#plan-mean");
let timer;
let asked = "";

export function setUpPlan(changed) {
  $("#plan-form").addEventListener("submit", (event) => event.preventDefault());
  setUpTable(changed);
  $("#planned").addEventListener("change", (event) => {
    state.planned = event.target.value;
    changed();
    showPlan();
  });
  $("#plan-fields").append(...FIELDS.map(({ name, label, usual }) => h("div", {},
    h("label", { for: `plan-${name}` }, label),
    h("input", { id: `plan-${name}`, type: "text", inputmode: "decimal", maxlength: "60", value: state.plan[name] ?? usual,
      placeholder: name === "target" ? "a tenth of the range" : usual, "data-field": `plan.${name}`,
      "aria-describedby": `plan-${name}-error`, oninput: (event) => {
        state.plan[name] = event.target.value;
        changed();
        clearTimeout(timer);
        timer = setTimeout(showMean, 250);
      } }),
    h("p", { class: "error", id: `plan-${name}-error`, "data-error": `plan.${name}`, "aria-live": "polite" }))));
}

/** Show the plan of a mean or of a table. */
export function showPlan() {
  const ofTable = state.planned === "table";
  for (const input of $$("#planned input")) input.checked = (input.value === "table") === ofTable;
  for (const [id, hidden] of [["plan-mean", ofTable], ["plan-results", ofTable], ["plan-table", !ofTable], ["table-results", !ofTable]]) {
    $(`#${id}`).hidden = hidden;
  }
  return ofTable ? showTable() : showMean();
}

/** Ask for the plan of a mean, unless it is there already. */
async function showMean() {
  const request = {};
  for (const { name, usual } of FIELDS) {
    const input = $(`#plan-${name}`);
    if (document.activeElement !== input) input.value = state.plan[name] ?? usual;
    request[name] = input.value;
  }
  if (JSON.stringify(request) === asked) return;
  asked = JSON.stringify(request);
  $("#plan-results").setAttribute("aria-busy", "true");
  let plan;
  try {
    plan = await ask("plan", request);
  } catch {
    asked = "";
    return;
  }
  if (!plan) return;
  $("#plan-results").setAttribute("aria-busy", "false");
  $("#plan-results").classList.toggle("stale", Boolean(plan.error));
  clearErrors(root());
  if (plan.error) {
    showError(root(), plan.error, "plan.epsilon");
    say(`Error: ${plan.error.message}`);
    return;
  }
  show(plan, request);
}

/** A mechanism, and below it how it splits the budget. */
function named(option) {
  return h("div", {}, option.name, h("small", {}, option.split));
}

function show(plan, request) {
  const [best, second] = plan.options.filter((o) => o.offered); // private, whatever the records
  $("#best").textContent = best.name;
  const ahead = second && best.sd ? ` The next best, ${second.name}, has ${shown(second.sd / best.sd, 3)} times its error.` : "";
  $("#best-words").textContent = `With about ${request.count} records its error has a standard deviation of at most ${shown(best.sd, 3)}.${ahead}`;
  const bound = plan.options.some((o) => o.wrong_bound !== null);
  const head = ["mechanism", "sd of the mean", "sd of the count", `sd < ${shown(plan.target)} from`, "bias, bound wrong"];
  const cells = (tag, words) => words.slice(0, bound ? 5 : 4).map((word) => h(tag, tag === "th" ? { scope: "col" } : {}, word));
  $("#options").replaceChildren(h("table", { class: "options" },
    h("thead", {}, h("tr", {}, ...cells("th", head))),
    h("tbody", {}, ...plan.options.map((o) => h("tr", o === best ? { class: "best" } : {}, ...cells("td", [
      named(o), shown(o.sd, 3), shown(o.sd_count, 3),
      o.useful_from === null ? "never" : `n = ${o.useful_from.toLocaleString()}`, shown(o.wrong_bound, 3)]))))));
  $("#options-note").textContent = `Standard deviations are exact, the worst over means ${plan.means.map((m) => shown(m)).join(", ")}.${bound ? " The last column is the bias of the mean if there are only half as many records as promised." : ""}`;
  $("#plan-code code").textContent = plan.python;
  draw("chart-plan", (c) => ({
    traces: plan.options.map((o, i) => line(o.name, plan.counts, plan.curves[o.name], c[COLOURS[i % 5]], { dash: DASHES[i % 5], width: o === best ? 3 : 2 })),
    layout: { xaxis: { type: "log", dtick: 1, title: { text: "records" } },
      yaxis: { type: "log", dtick: 1, title: { text: "sd of the mean" } } },
  }), "Standard deviation of the mean against the number of records, for each mechanism.");
  say(`Best: ${best.name}.`);
}
