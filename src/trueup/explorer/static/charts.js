// Charts: plotly with the page's own colours, redrawn when the theme changes.

/* global Plotly */
import { $, h, shown } from "./dom.js";

const drawn = new Map();
const CONFIG = { displayModeBar: false, responsive: true, doubleClick: "reset", scrollZoom: false };

/** The value of a colour of the sheet, as the browser sees it now. */
function colour(name) {
  const probe = h("span", { hidden: true });
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

export function palette() {
  const names = ["ink", "soft", "line", "ours", "band", "plugin", "near", "truth", "outside", "card"];
  return Object.fromEntries(names.map((name) => [name, colour(name)]));
}

/** Draw a chart: `make(palette)` returns its traces and what its layout adds. */
export function draw(id, make, label) {
  const place = $(`#${id}`);
  place.classList.remove("empty", "old");
  if (!place.classList.contains("js-plotly-plot")) place.replaceChildren();
  place.setAttribute("aria-label", label);
  drawn.set(id, make);
  const colours = palette();
  const { traces, layout } = make(colours);
  Plotly.react(place, traces, merged(base(colours), layout), CONFIG);
}

/** Put a line into a chart, in place of the one of that name; without `make` only take it away.
 * A chart of the state before is left as it is. */
export function put(id, name, make) {
  const before = drawn.get(id);
  if ((!before && !make) || $(`#${id}`).classList.contains("old")) return;
  const label = $(`#${id}`).getAttribute("aria-label") ?? "";
  draw(id, (c) => {
    const { traces, layout } = before ? before(c) : { traces: [], layout: {} };
    return { traces: [...traces.filter((t) => t.name !== name), ...(make ? [make(c)] : [])], layout };
  }, label);
}

/** A chart as a picture, on the ground of its card. */
export function picture(id) {
  const place = $(`#${id}`);
  const { offsetWidth: width, offsetHeight: height } = place;
  const layout = { ...place.layout, paper_bgcolor: palette().card };
  return Plotly.toImage({ data: place.data, layout }, { format: "png", width, height, scale: 2 });
}

/** The lines of a chart as text: name, x and y, between tabs. */
export function numbers(id) {
  const lines = $(`#${id}`).data.filter((trace) => trace.hoverinfo !== "skip");
  return ["line\tx\ty", ...lines.flatMap(({ name, x, y }) => x.map((at, i) => `${name}\t${at}\t${y[i] ?? ""}`))].join("\n");
}

/** Empty a chart and say why. */
export function blank(id, words) {
  const place = $(`#${id}`);
  drawn.delete(id);
  if (place.classList.contains("js-plotly-plot")) Plotly.purge(place);
  place.classList.add("empty");
  place.classList.remove("old");
  place.setAttribute("aria-label", words);
  place.replaceChildren(words);
}

/** Draw everything again, in the colours of the theme. */
export function redraw() {
  const colours = palette();
  for (const [id, make] of drawn) {
    const { traces, layout } = make(colours);
    Plotly.react($(`#${id}`), traces, merged(base(colours), layout), CONFIG);
  }
}

function base(c) {
  const family = getComputedStyle(document.body).fontFamily;
  const axis = { gridcolor: c.line, zerolinecolor: c.line, linecolor: c.line, automargin: true,
    tickfont: { color: c.soft, size: 12 }, title: { font: { color: c.soft, size: 13 }, standoff: 8 },
    exponentformat: "none", separatethousands: true };
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family, color: c.ink, size: 13 },
    margin: { l: 48, r: 10, t: 8, b: 42 },
    xaxis: { ...axis, fixedrange: false, zeroline: false },
    yaxis: { ...axis, fixedrange: true },
    legend: { orientation: "h", x: 0, y: 1, xanchor: "left", yanchor: "bottom", font: { size: 12.5 },
      bgcolor: "rgba(0,0,0,0)", traceorder: "normal" },
    hovermode: "x unified", hoverlabel: { bgcolor: c.card, bordercolor: c.line, font: { color: c.ink } },
    dragmode: false, showlegend: true,
  };
}

function merged(below, above) {
  const out = { ...below };
  for (const [key, value] of Object.entries(above ?? {})) {
    const nested = value && typeof value === "object" && !Array.isArray(value);
    out[key] = nested ? merged(below[key] ?? {}, value) : value;
  }
  return out;
}

/** Shade what lies outside the bounds. */
export function outside(axis, c) {
  const shade = (x0, x1) => ({ type: "rect", xref: "x", yref: "paper", x0, x1, y0: 0, y1: 1,
    fillcolor: c.outside, line: { width: 0 }, layer: "below" });
  const shapes = [];
  if (axis.low !== null && axis.low > axis.from) shapes.push(shade(axis.from, axis.low));
  if (axis.high !== null && axis.high < axis.to) shapes.push(shade(axis.high, axis.to));
  return shapes;
}

/** A line, with dots where the values are whole numbers. */
export function line(name, x, y, colour, { dash = "solid", whole = false, width = 2.5, ...more } = {}) {
  const few = whole && x.length <= 60;
  return { name: escaped(name), x, y, mode: few ? "lines+markers" : "lines", type: "scatter",
    line: { color: colour, width: few ? 1.25 : width, dash }, marker: { color: colour, size: 5.5 },
    hovertemplate: "%{y:.4~g}", connectgaps: false, ...more };
}

/** Plotly reads a few tags in its texts: a name is only ever text. */
export function escaped(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

export { shown };
