// The estimator's view: ask, then show mathematics, words, curves, numbers and code.

import { ask, drop } from "./api.js";
import { blank, draw, escaped, line, outside, put } from "./charts.js";
import { $, $$, clearErrors, h, say, sentence, showError, shown } from "./dom.js";
import { follow, showAxis } from "./form.js";
import { math } from "./mathml.js";
import { state, writeAddress } from "./state.js";

const DELAY = 60;
const LONG = 180;
const LABELS = { published: "Published", theorem: "Theorem", variance: "Variance", interval: "Interval", note: "Note" };
const root = () => $("#view-estimator");
let names = [];
let timer;
let since = 0;
let code = {};

let latest;
let nearly = null;

export const currentNames = () => names;
export const currentEstimator = () => latest;
export const currentRequest = () => request();

/** Something changed: show it soon. */
export function changed() {
  clearTimeout(timer);
  since = performance.now();
  timer = setTimeout(update, DELAY);
}

function request() {
  const { formula, statistics, known, empty, vary, at, from, to } = state;
  return { formula, statistics, known, empty, vary, at, from, to };
}

/** Ask for the curve, show it, then ask for what takes longer. */
export async function update() {
  clearTimeout(timer);
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
  latest = answer;
  nearly = null;
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
    for (const kind of ["risk", "code", "near", "frontier"]) drop(kind);
    return;
  }
  updateRisk(asked);
  updateCode();
  updateBias(asked, answer.error);
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
    return;
  }
  if (!risk) return;
  if (risk.error) {
    for (const id of ["chart-bias", "chart-sd"]) blank(id, risk.error.message);
    $("#numbers").replaceChildren();
    return;
  }
  const whole = risk.axis.whole;
  const label = `true ${escaped(risk.axis.name)}`;
  const plugin = risk.clamped ? "plug-in, clamped" : "plug-in";
  const some = (values) => values.some((value) => value !== null);
  for (const [what, id] of [["bias", "chart-bias"], ["sd", "chart-sd"]]) {
    if (!some(risk.plugin[what]) && !some(risk.estimate[what])) {
      blank(id, what === "sd" ? "Neither has a finite standard deviation." : "The plug-in has no expectation here.");
      continue;
    }
    draw(id, (c) => ({
      traces: [
        ...(some(risk.plugin[what]) ? [line(plugin, risk.q, risk.plugin[what], c.plugin, { whole, dash: "dash", width: 2 })] : []),
        ...(some(risk.estimate[what]) ? [line("unbiased", risk.q, risk.estimate[what], c.ours, { whole, legendrank: 900 })] : []),
      ],
      layout: { xaxis: { title: { text: label } }, yaxis: what === "sd" ? { rangemode: "tozero" } : {} },
    }), `${what === "sd" ? "Standard deviation" : "Bias"} against the true ${risk.axis.name}; the numbers are in the table below.`);
  }
  const notes = [];
  if (!some(risk.plugin.bias)) notes.push("The plug-in f(x) has no expectation here.");
  else if (risk.clamped) notes.push("The plug-in is f(x) with x moved into the bounds first.");
  if (some(risk.estimate.bias) && !some(risk.estimate.sd)) notes.push("The estimator has no finite variance.");
  if (!risk.finished) notes.push("Computing took long: the curves have fewer points.");
  $("#risk-note").textContent = notes.join(" ");
  if (nearly) showNear();
  showNumbers(risk, plugin);
}

function showNumbers(risk, plugin) {
  const step = Math.max(1, Math.floor((risk.q.length - 1) / 10));
  const rows = risk.q.map((_, i) => i).filter((i) => i % step === 0);
  const cells = (tag, words) => words.map((word) => h(tag, tag === "th" ? { scope: "col" } : {}, word));
  $("#numbers").replaceChildren(h("table", {},
    h("thead", {}, h("tr", {}, ...cells("th", [`true ${risk.axis.name}`, "f", "bias, unbiased", `bias, ${plugin}`, "sd, unbiased", `sd, ${plugin}`]))),
    h("tbody", {}, ...rows.map((i) => h("tr", {}, ...cells("td", [risk.q[i], risk.truth[i], risk.estimate.bias[i], risk.plugin.bias[i], risk.estimate.sd[i], risk.plugin.sd[i]].map((v) => shown(v))))))));
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

/** Where there is no unbiased estimator: the best one with a little bias, then the frontier. */
function updateBias(asked, error) {
  const none = error?.kind === "none";
  $("#card-frontier").hidden = !none;
  if (none) {
    const input = $("#bias");
    if (document.activeElement !== input) input.value = state.bias;
    updateNear(asked);
    updateFrontier(asked);
  } else {
    drop("near");
    drop("frontier");
  }
}

/** Ask for the estimator whose bias stays below the bound allowed. */
export async function updateNear(asked = request()) {
  let near;
  try {
    near = await ask("near", { ...asked, bias: state.bias });
  } catch {
    return;
  }
  if (!near) return;
  const card = $("#card-frontier");
  $("#error-bias").replaceChildren();
  $("#bias").removeAttribute("aria-invalid");
  $("#frontier-copy").hidden = Boolean(near.error);
  nearly = near.error ? null : near;
  showNear();
  if (near.error) {
    $("#bias-note").textContent = "";
    showError(card, near.error, "bias");
    return;
  }
  $("#bias-label").textContent = near.relative ? "bias allowed, relative to f" : "bias allowed";
  $("#bias").placeholder = String(near.bias);
  $("#bias-note").textContent = `certified: at most ${shown(near.bound)}`;
  $("#frontier-code code").textContent = near.python;
}

async function updateFrontier(asked) {
  let answer;
  try {
    answer = await ask("frontier", asked);
  } catch {
    return;
  }
  if (!answer) return;
  $("#chart-frontier").hidden = !answer.points?.length;
  if (answer.points?.length) showFrontier(answer);
}

function showFrontier({ points, relative }) {
  const unit = relative ? ", relative to f" : "";
  const column = (i) => points.map((point) => point[i]);
  draw("chart-frontier", (c) => ({
    traces: [
      line("largest sd", column(0), column(1), c.ours, { mode: "lines+markers" }),
      line("average sd", column(0), column(2), c.ours, { mode: "lines+markers", dash: "dot", width: 2 }),
    ],
    layout: {
      xaxis: { type: "log", title: { text: `bias bound${unit}` }, tickvals: column(0),
        ticktext: column(0).map((b) => (relative ? `${shown(100 * b, 2)} %` : shown(b, 2))) },
      yaxis: { title: { text: `sd${unit}` }, rangemode: "tozero" },
    },
  }), "Standard deviation against the bound on the bias.");
}

/** Show the nearly unbiased estimator beside the plug-in, or take it away. */
function showNear() {
  const name = "nearly unbiased";
  const style = { whole: nearly?.axis.whole, legendrank: 900 };
  const at = (id, x, y) => put(id, name, x && ((c) => line(name, x, y, c.ours, style)));
  at("chart-curve", nearly?.curve.x, nearly?.curve.estimate);
  at("chart-bias", nearly?.risk.q, nearly?.risk.bias);
  at("chart-sd", nearly?.risk.q, nearly?.risk.sd);
}
