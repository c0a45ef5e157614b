// A little bias: how much is allowed, the best estimator with it, and what it buys.

import { ask, drop } from "./api.js";
import { draw, line, put } from "./charts.js";
import { $, clearErrors, h, showError, shown } from "./dom.js";
import { logarithmic, paired } from "./form.js";
import { state } from "./state.js";

const NAME = "nearly unbiased";
const DELAY = 300; // ms: programmes take longer than curves, so a slider comes to rest first
const TRADES = { bias: "bias allowed", cells: "cells added up" };
const LABELS = { bias: "largest bias of the nearly unbiased estimator", cells: "cells whose estimates are averaged or added up" };
let changed = () => {};
let asked = null;
let nearly = null;
let timer;
let unit = 1;

export function setUpBias(onChange) {
  changed = () => {
    onChange();
    clearTimeout(timer);
    timer = setTimeout(updateNear, DELAY);
  };
  showChoice();
}

const steps = () => (state.trade === "cells" ? logarithmic(1, 1e6) : logarithmic(0.001 * unit, unit));

/** Show the choice of the bias: a bound on it, or the number of cells that will be averaged. */
function showChoice() {
  const field = state.trade === "cells" ? "cells" : "bias";
  const choose = (event) => { state.trade = event.target.value; showChoice(); changed(); };
  $("#trade").replaceChildren(
    h("div", { class: "ways", role: "radiogroup", "aria-label": "How the bias is chosen" },
      ...Object.entries(TRADES).map(([value, word]) => h("label", {}, h("input", { type: "radio", name: "trade", value,
        checked: value === field, onchange: choose }), h("span", {}, word)))),
    paired({ name: "the estimator", label: LABELS[field], key: field, value: state[field], map: steps(),
      onInput: (text) => { state[field] = text; changed(); } }));
}

/** What the page asks for: the bias or the cells, whichever is chosen. */
export const chosenBias = () => (state.trade === "cells" ? { cells: state.cells || "100" } : { bias: state.bias });

/** Another formula: what was said of the one before is gone. */
export function forgetBias() {
  clearTimeout(timer);
  for (const kind of ["near", "frontier"]) drop(kind);
  asked = nearly = null;
  clearErrors($("#card-rmse"));
  $("#bias-note").textContent = "";
  for (const id of ["card-frontier", "trade"]) $(`#${id}`).hidden = true;
}

/** Ask for the best estimator with the bias allowed, then for the frontier. */
export function updateBias(request) {
  asked = request;
  clearTimeout(timer);
  timer = setTimeout(async () => {
    await updateNear();
    if (asked === request) await updateFrontier();
  }, DELAY);
}

async function updateNear() {
  const mine = asked;
  if (!mine) return;
  let near;
  try {
    near = await ask("near", { ...mine, ...chosenBias() });
  } catch {
    return;
  }
  if (!near || mine !== asked) return;
  clearErrors($("#card-rmse"));
  $("#bias-note").textContent = "";
  $("#trade").hidden = false;
  nearly = near.error ? null : near;
  showNear();
  $("#frontier-copy").hidden = !nearly;
  if (near.error) {
    showError($("#card-rmse"), near.error, state.trade);
    return;
  }
  $("#card-frontier").hidden = false;
  $("#frontier-code code").textContent = near.python;
  if (near.unit !== unit) {
    unit = near.unit;
    showChoice();
  }
  describe();
}

/** Say what is certified, and what is usual where nothing is chosen. */
function describe() {
  const amount = (value) => (nearly.relative ? `${shown(100 * value, 3)} %` : shown(value));
  const [slide, text] = $("#trade .slider").querySelectorAll("input");
  if (text.value === "") {
    text.placeholder = state.trade === "cells" ? "100" : String(nearly.bias);
    slide.value = steps().step(text.placeholder);
  }
  $("#bias-note").textContent = nearly.bound === 0 ? "It is unbiased: no bias makes it better."
    : `Certified: a bias of at most ${amount(nearly.bound)}${nearly.relative ? ` of ${nearly.measure}` : ""} at every true value.`;
}

async function updateFrontier() {
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
  const per = relative ? ", relative to f" : "";
  const column = (i) => points.map((point) => point[i]);
  draw("chart-frontier", (c) => ({
    traces: [
      line("largest sd", column(0), column(1), c.ours, { mode: "lines+markers" }),
      line("average sd", column(0), column(2), c.ours, { mode: "lines+markers", dash: "dot", width: 2 }),
    ],
    layout: {
      xaxis: { type: "log", title: { text: `bias bound${per}` }, tickvals: column(0),
        ticktext: column(0).map((b) => (relative ? `${shown(100 * b, 2)} %` : shown(b, 2))) },
      yaxis: { title: { text: `sd${per}` }, rangemode: "tozero" },
    },
  }), "Standard deviation against the bound on the bias.");
}

/** Show the nearly unbiased estimator beside the others, or take it away. */
export function showNear() {
  const style = { whole: nearly?.axis.whole, legendrank: 950, dash: "longdashdot", width: 2 };
  const at = (id, x, y) => put(id, NAME, x && ((c) => line(NAME, x, y, c.near, style)));
  at("chart-curve", nearly?.curve.x, nearly?.curve.estimate);
  for (const what of ["rmse", "bias", "sd"]) at(`chart-${what}`, nearly?.risk.q, nearly?.risk[what]);
}
