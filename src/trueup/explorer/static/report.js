// The report on a file: expected errors by the size of the cells, and which estimator wins from where.

import { draw, line } from "./charts.js";
import { $, h, shown, table } from "./dom.js";

const KINDS = { unbiased: ["unbiased", "ours", "solid"], nearly_unbiased: ["nearly unbiased", "near", "longdashdot"], clipped: ["clipped", "plugin", "dash"], naive: ["naive", "soft", "dot"] };
let decisions = [];

export function setUpReport() {
  $("#report-column").addEventListener("change", (event) => show(decisions[event.target.value]));
}

/** Show the report, one new column at a time; without one only take it away. */
export function showReport(report) {
  $("#card-report").hidden = !report;
  if (!report) return;
  decisions = report.decisions;
  $("#report-column").replaceChildren(...decisions.map(({ name }, i) => h("option", { value: i }, name)));
  $("#report-choice").hidden = decisions.length < 2;
  $("#report").hidden = !decisions.length;
  $("#report-words").replaceChildren(...(decisions.length ? [] : [h("li", {}, report.reason)]));
  if (decisions.length) show(decisions[0]);
}

function show({ size, rows, rival, conclusions }) {
  const count = (n) => n.toLocaleString("en");
  const wins = (row) => (row.break_even !== null ? count(row.break_even) : row.unbiased === null || row[rival] === null ? "–" : "never");
  $("#report-table").replaceChildren(table(
    [size, "cells", "value", ...Object.values(KINDS).map(([word]) => word), "unbiased wins from", "too noisy"],
    rows.map((row) => [row.sizes, count(row.cells), shown(row.value, 3), ...Object.keys(KINDS).map((kind) => shown(row[kind], 3)), wins(row), count(row.too_noisy)])));
  $("#report-words").replaceChildren(...conclusions.map((words) => h("li", {}, words)));
  const classes = rows.filter((row) => row.sizes !== "all");
  draw("chart-report", (c) => ({
    traces: Object.entries(KINDS).filter(([kind]) => classes.some((row) => row[kind] !== null)).map(([kind, [word, colour, dash]]) =>
      line(word, classes.map((row) => row.sizes), classes.map((row) => row[kind]), c[colour], { dash, mode: "lines+markers" })),
    layout: { xaxis: { type: "category", title: { text: `true ${size}` } }, yaxis: { type: "log", tickformat: "~g", title: { text: "expected error of one cell" } } },
  }), `Expected error of one cell against its size ${size}; the numbers are in the table.`);
}
