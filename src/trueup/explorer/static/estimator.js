// The estimator's view: ask, then show mathematics, words, curves, numbers and code.

import { ask, drop } from "./api.js";
import { forgetBias, showNear, updateBias } from "./bias.js";
import { blank, draw, escaped, line, outside } from "./charts.js";
import { $, $$, clearErrors, h, say, sentence, showError, shown, table } from "./dom.js";
import { follow, showAxis } from "./form.js";
import { math } from "./mathml.js";
import { state, writeAddress } from "./state.js";

const DELAY = 60;
const LONG = 180;
const LABELS = { published: "Published", theorem: "Theorem", variance: "Variance", interval: "Interval", note: "Note" };
const RISKS = { rmse: "chart-rmse", bias: "chart-bias", sd: "chart-sd" };
const WORDS = { rmse: "Root mean square error", bias: "Bias", sd: "Standard deviation" };
const SHORT = { rmse: "error", bias: "bias", sd: "sd" };
const root = () => $("#view-estimator");
const OLD = ".chart, #numbers, #code"; // what the answers fill
let names = [];
let timer;
let since = 0;
let code = {};


export const currentNames = () => names;

/** Something changed: show it soon. */
export function changed() {
  leave();
  since = performance.now();
  timer = setTimeout(update, DELAY);
}

/** What is shown is of the state before: it is dimmed, cannot be taken along, and gets no new lines. */
function leave() {
  clearTimeout(timer);
  for (const kind of ["risk", "code"]) drop(kind);
  forgetBias();
  for (const place of $$(OLD, root())) place.classList.add("old");
}

function request() {
  const { formula, statistics, known, empty, vary, at, from, to } = state;
  return { formula, statistics, known, empty, vary, at, from, to };
}

/** Ask for the curve, show it, then ask for what takes longer. */
export async function update() {
  leave();
  const asked = request();
  $("#results").setAttribute("aria-busy", "true");
  writeAddress(names);
  let answer;
  try {
    answer = await ask("curve", asked);
  } catch {
    return;
  }
  if (!answer) return;
  clearErrors(root());
  if (answer.statistics) {
    names = answer.statistics.map((s) => s.name);
    follow(names);
    writeAddress(names);
    showAxis(names, answer.axis);
    showEstimator(answer);
    showCurve(answer);
  }
  if (answer.error && answer.error.kind !== "none") showError(root(), answer.error, "formula");
  if (!answer.statistics) say(`Error: ${answer.error.message}`);
  $("#results").setAttribute("aria-busy", "false");
  $("#results").classList.toggle("stale", !answer.statistics);
  $("#results").dataset.took = Math.round(performance.now() - since);
  if (!answer.statistics) {
    for (const chart of $$(".chart.empty", root())) chart.replaceChildren();
    $("#risk-note").textContent = "";
    return;
  }
  updateRisk(asked);
  updateCode();
  if (!asked.empty) updateBias(asked);
}

function showEstimator(answer) {
  const none = $("#none");
  none.hidden = !answer.error;
  $("#estimand").replaceChildren("of ", math(answer.estimand));
  if (answer.error) {
    $("#heading-estimator").firstChild.data = "No unbiased estimator ";
    none.replaceChildren(h("strong", {}, sentence(answer.error.message)), h("p", {}, sentence(answer.error.hint)));
    $("#math").replaceChildren();
    $("#explanation").replaceChildren();
    say("No unbiased estimator exists.");
    return;
  }
  $("#heading-estimator").firstChild.data = "Unbiased estimator ";
  const written = answer.explanation.filter(([label]) => label === "estimate").map(([, words]) => words);
  const short = written.join("").length <= 4 * LONG;
  $("#math").replaceChildren(...(answer.estimator ? [math(answer.estimator)]
    : short ? written.map((words) => h("p", { class: "words" }, words)) : ["The formula is too long to show; copy it as code below."]));
  const rows = new Map();
  for (const [label, words] of answer.explanation) {
    if (LABELS[label]) rows.set(label, [...(rows.get(label) ?? []), words]);
  }
  $("#explanation").replaceChildren(...[...rows].flatMap(([label, lines]) => [
    h("dt", {}, LABELS[label]), h("dd", {}, ...described(label, lines))]));
  say("The estimator was updated.");
}

/** The lines of one label; formulas as code, folded away where they are long. */
function described(label, lines) {
  if (label !== "variance" && label !== "published") return lines.map((words) => h("div", {}, words));
  const written = lines.map((words) => h("div", {}, h("code", {}, words)));
  if (lines.join("").length <= LONG) return written;
  return [h("details", {}, h("summary", {}, "unbiased; show the formula"), ...written)];
}

function showCurve({ curve, axis, range, error }) {
  const held = Object.entries(axis.held).map(([name, value]) => `${escaped(name)} = ${shown(value)}`);
  const bounded = axis.low !== null || axis.high !== null;
  const beyond = (i) => (axis.low !== null && curve.x[i] < axis.low) || (axis.high !== null && curve.x[i] > axis.high);
  draw("chart-curve", (c) => {
    const traces = [];
    if (curve.stderr && !axis.whole) {
      const [up, down] = [1, -1].map((sign) => curve.estimate.map((y, i) => (y === null || curve.stderr[i] === null ? null : y + sign * curve.stderr[i])));
      const edge = { x: curve.x, mode: "lines", type: "scatter", line: { width: 0 }, hoverinfo: "skip", showlegend: false };
      traces.push({ ...edge, y: down }, { ...edge, y: up, fill: "tonexty", fillcolor: c.band, name: "± standard error", showlegend: true, legendrank: 1002 });
    }
    traces.push(line("plug-in f(x)", curve.x, curve.plugin, c.plugin, { whole: axis.whole, width: 2, dash: "dash" }));
    if (bounded) {
      traces.push(line("plug-in, clamped", curve.x, curve.clamped.map((y, i) => (beyond(i) ? y : null)), c.plugin,
        { whole: axis.whole, width: 1.5, dash: "dot" }));
    }
    if (curve.estimate) {
      const bars = curve.stderr && axis.whole && curve.x.length <= 60
        ? { error_y: { type: "data", array: curve.stderr, color: c.band, thickness: 5, width: 0 } } : {};
      traces.push(line("unbiased", curve.x, curve.estimate, c.ours, { whole: axis.whole, legendrank: 900, ...bars }));
    }
    return { traces, layout: {
      xaxis: { title: { text: `published ${escaped(axis.name)}${held.length ? `   (${held.join(", ")})` : ""}` }, range: [axis.from, axis.to] },
      yaxis: range ? { range } : { autorange: true }, shapes: outside(axis, c),
    } };
  }, error ? `The plug-in against the published ${axis.name}.`
    : `Unbiased estimate and plug-in against the published ${axis.name}, from ${shown(axis.from)} to ${shown(axis.to)}.`);
}

async function updateRisk(asked) {
  let risk;
  try {
    risk = await ask("risk", asked);
  } catch {
    risk = { error: { message: "Not computed: no answer came." } };
  }
  if (!risk) return;
  $("#numbers").classList.remove("old");
  if (risk.error) {
    for (const id of Object.values(RISKS)) blank(id, risk.error.message);
    $("#numbers").replaceChildren();
    $("#risk-note").textContent = "";
    return;
  }
  const whole = risk.axis.whole;
  const label = `true ${escaped(risk.axis.name)}`;
  const plugin = risk.clamped ? "plug-in, clamped" : "plug-in";
  const some = (values) => values.some((value) => value !== null);
  for (const [what, id] of Object.entries(RISKS)) {
    if (!some(risk.plugin[what]) && !some(risk.estimate[what])) {
      blank(id, what === "bias" ? "The plug-in has no expectation here." : "Neither has a finite standard deviation.");
      continue;
    }
    draw(id, (c) => ({
      traces: [
        ...(some(risk.plugin[what]) ? [line(plugin, risk.q, risk.plugin[what], c.plugin, { whole, dash: "dash", width: 2 })] : []),
        ...(some(risk.estimate[what]) ? [line("unbiased", risk.q, risk.estimate[what], c.ours, { whole, legendrank: 900 })] : []),
      ],
      layout: { xaxis: { title: { text: label } }, yaxis: what === "bias" ? {} : { rangemode: "tozero" } },
    }), `${WORDS[what]} against the true ${risk.axis.name}; the numbers are in the table below.`);
  }
  const notes = [];
  if (!some(risk.plugin.bias)) notes.push("The plug-in f(x) has no expectation here.");
  else if (risk.clamped) notes.push("The plug-in is f(x) with x moved into the bounds first.");
  if (some(risk.estimate.bias) && !some(risk.estimate.sd)) notes.push("The estimator has no finite variance.");
  if (!risk.finished) notes.push("Computing took long: the curves have fewer points.");
  $("#risk-note").textContent = notes.join(" ");
  showNear();
  showNumbers(risk, plugin);
}

function showNumbers(risk, plugin) {
  const step = Math.max(1, Math.floor((risk.q.length - 1) / 10));
  const rows = risk.q.map((_, i) => i).filter((i) => i % step === 0);
  const both = Object.keys(RISKS).flatMap((what) => [risk.estimate[what], risk.plugin[what]]);
  const heads = Object.values(SHORT).flatMap((word) => [`${word}, unbiased`, `${word}, ${plugin}`]);
  $("#numbers").replaceChildren(table([`true ${risk.axis.name}`, "f", ...heads],
    rows.map((i) => [risk.q[i], risk.truth[i], ...both.map((values) => values[i])].map((v) => shown(v)))));
}

/** Ask for the code in the chosen dialect. */
export async function updateCode() {
  const { dialect, output } = state;
  let answer;
  try {
    answer = await ask("code", { ...request(), ...(dialect ? { dialect } : {}), ...(output ? { output } : {}) });
  } catch {
    return;
  }
  if (!answer) return;
  $("#code").classList.remove("old");
  code = answer.error ? { ...code, error: answer.error } : answer;
  showCode();
}

export function showCode() {
  const kind = state.code;
  $("#sql-options").hidden = kind !== "sql";
  const place = $("#card-code [data-error]");
  place.replaceChildren();
  $("#card-code").hidden = code.error?.kind === "none";
  if (code.error && code.error.kind !== "none") showError($("#card-code"), code.error, "dialect");
  if (kind === "sql" && code.sql === null) place.append(code.reason, h("span", { class: "hint" }, code.hint));
  $("#code code").textContent = code[kind] ?? "";
  $("#code").classList.toggle("wrapped", kind === "sql");
}
