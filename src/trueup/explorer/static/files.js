// The file's view: upload, say what is estimated and where it stands, debias, download.

import { ask, fetchJson, offline } from "./api.js";
import { chosenBias } from "./bias.js";
import { $, $$, clearErrors, h, say, showError } from "./dom.js";
import { currentNames } from "./estimator.js";
import { follow } from "./form.js";
import { math } from "./mathml.js";
import { setUpReport, showReport } from "./report.js";
import { state } from "./state.js";

const DELAY = 150;
const root = () => $("#view-file");
let largest = 0;
let upload = null;
let polling;
let timer;

export function setUpFiles(options, keep, change) {
  largest = options.upload;
  setUpReport();
  $("#largest").textContent = size(largest);
  $("#change").addEventListener("click", change);
  $("#file").addEventListener("change", (event) => { if (event.target.files[0]) send(event.target.files[0]); });
  $("#remove").addEventListener("click", remove);
  $("#formulas").addEventListener("input", (event) => { state.file.formulas = event.target.value; keep(); });
  $("#file-form").addEventListener("submit", (event) => { event.preventDefault(); debias(); });
  $("#file-form").addEventListener("input", (event) => { if (event.target.id !== "file") fileChanged(); });
  window.addEventListener("pagehide", () => {
    if (upload) fetch(`/api/files/${upload.id}`, { method: "DELETE", keepalive: true });
  });
  const drop = $("#drop");
  for (const [name, over] of [["dragover", true], ["dragleave", false], ["drop", false]]) {
    drop.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", over);
      if (name === "drop" && event.dataTransfer.files[0]) send(event.dataTransfer.files[0]);
    });
  }
}

/** Something else is asked for: what was said and made before is gone. */
export function fileChanged() {
  clearErrors(root());
  forgetResult();
  clearTimeout(timer);
  timer = setTimeout(showFile, DELAY);
}

function forgetResult() {
  clearTimeout(polling);
  for (const id of ["card-progress", "ready", "card-report"]) $(`#${id}`).hidden = true;
  if (upload) showRows(upload.table, "First rows");
}

/** What is asked of the file. */
function request() {
  const { statistics, known, empty } = state;
  const formulas = $("#formulas").value.trim() ? $("#formulas").value : `estimate = ${state.formula}`;
  const { bias, cells } = $("#allow-bias").checked ? chosenBias() : {};
  return { formulas, statistics, known, empty, ...(cells ? { cells } : { bias: bias === "" ? "0.05" : bias }) };
}

/** Show what will be estimated, and a choice of column for each statistic. */
export async function showFile() {
  const area = $("#formulas");
  if (document.activeElement !== area) area.value = state.file.formulas ?? "";
  area.placeholder = `estimate = ${state.formula}`;
  const { bias = "0.05", cells } = chosenBias();
  $("#allow").hidden = Boolean(state.empty);
  $("#allow span").textContent = cells ? `Allow quotients the bias that is best for ${cells} cells` : `Allow quotients a bias of ${bias || "0.05"} of their size`;
  const sums = $("#sums").value;
  $("#groups").hidden = $("#skipping").hidden = !sums;
  $("#intervals").hidden = sums === "total" || sums === "average";
  let answer;
  try {
    answer = await ask("columns", request());
  } catch {
    return;
  }
  if (!answer) return;
  clearErrors(root());
  $("#debias").disabled = Boolean(answer.error);
  if (answer.error) {
    $("#file-estimands").replaceChildren("nothing yet");
    $("#file-noise").replaceChildren();
    showError(root(), answer.error, "formulas");
    return;
  }
  $("#file-estimands").replaceChildren(...answer.formulas.map(({ name, estimand }) => h("span", { class: "of" }, `${name} = `, math(estimand))));
  $("#file-noise").replaceChildren(...answer.statistics.flatMap((s) => [
    h("dt", {}, s.name), h("dd", {}, h("code", {}, s.noise), `, true value in ${s.domain}`)]));
  const names = answer.statistics.map(({ name }) => name);
  follow(names.filter((name) => !currentNames().includes(name)), $("#file-statistics"));
  if (upload) showColumns(names);
}

function showColumns(statistics) {
  const names = upload.table.columns;
  const guess = (name) => names.find((c) => c === name) ?? names.find((c) => c.toLowerCase() === name.toLowerCase()) ?? "";
  const before = new Map($$("select", $("#columns")).map((s) => [s.dataset.field, s.value]));
  $("#columns").replaceChildren(...statistics.flatMap((name, i) => {
    const choice = (which, id, label, none, usual) => {
      const field = `${which}.${name}`;
      const select = h("select", { id, "data-field": field, "data-which": which, "data-name": name },
        h("option", { value: "" }, none), ...names.map((column) => h("option", { value: column }, toSee(column))));
      select.value = names.includes(before.get(field)) ? before.get(field) : usual;
      return [h("label", { for: id }, ...label), select, h("p", { class: "error", "data-error": field, "aria-live": "polite" })];
    };
    return [...choice("columns", `column-${i}`, [h("code", {}, name)], "choose…", guess(name)),
      ...choice("scales", `scale-${i}`, ["scale of ", h("code", {}, name)], "as stated, in every row", "")];
  }));
  $("#mapping").hidden = false;
}

/** The columns of which each value makes a group. */
function showGroups() {
  $("#by").replaceChildren(...upload.table.columns.map((column) =>
    h("label", { class: "check" }, h("input", { type: "checkbox", value: column }), toSee(column))));
}

/** Upload with a progress bar: fetch cannot tell how much has gone out. */
function send(file) {
  clearErrors(root());
  if (file.size > largest) {
    refuse({ field: "file", message: `“${file.name}” has ${size(file.size)}, more than ${size(largest)}.`, hint: "Take fewer columns or rows; trueup debias in a terminal has no such limit." });
    return;
  }
  forget();
  $("#card-progress").hidden = false;
  bar("Uploading", 0, [file.name]);
  const sending = new XMLHttpRequest();
  sending.open("POST", `/api/files?name=${encodeURIComponent(file.name)}`);
  sending.setRequestHeader("Content-Type", "application/octet-stream");
  sending.responseType = "json";
  sending.upload.onprogress = (event) => bar("Uploading", event.loaded / event.total, [file.name]);
  sending.onerror = () => offline(true);
  sending.onload = () => {
    $("#card-progress").hidden = true;
    const answer = sending.response;
    if (!answer || answer.error) {
      refuse(answer?.error ?? { field: "file", message: "The upload failed.", hint: "Try again." });
      return;
    }
    upload = answer;
    $("#chosen").hidden = false;
    $("#chosen-name").textContent = `${upload.name}, ${size(upload.size)}`;
    showRows(upload.table, "First rows");
    showGroups();
    say(`${upload.name} is uploaded.`);
    showFile();
  };
  sending.send(file);
}

function refuse(error) {
  $("#card-progress").hidden = true;
  showError(root(), error, "file");
  $("#file").value = "";
}

async function debias() {
  clearErrors(root());
  const chosen = (which) => Object.fromEntries($$(`[data-which=${which}]`, $("#columns")).map((s) => [s.dataset.name, s.value]));
  const { value: sums } = $("#sums");
  const by = $$("#by input:checked").map((box) => box.value);
  const body = JSON.stringify({ ...request(), columns: chosen("columns"), scales: chosen("scales"), sums, by, skip: $("#skip").checked,
    stderr: $("#stderr").checked, interval: $("#intervals").hidden ? "" : $("#interval").value, decimal: $("#decimal").value, nulls: $("#nulls").value });
  const answer = await fetchJson(`/api/files/${upload.id}`, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  if (answer.error && !answer.id) {
    showError(root(), answer.error, "file");
    return;
  }
  forgetResult();
  $("#card-progress").hidden = false;
  bar("Debiasing", 0, []);
  $("#debias").disabled = true;
  poll();
}

async function poll() {
  const mine = upload;
  if (!mine) return;
  const answer = await fetchJson(`/api/files/${mine.id}`);
  if (mine !== upload) return;
  if (answer.state === "running") {
    bar("Debiasing", answer.progress, []);
    polling = setTimeout(poll, 250);
    return;
  }
  $("#debias").disabled = false;
  if (answer.state !== "done") {
    $("#card-progress").hidden = true;
    showError(root(), answer.error, "file");
    return;
  }
  const { result } = answer;
  bar("Done", 1, result.summary);
  const link = $("#download");
  link.href = `/api/files/${mine.id}/result`;
  link.textContent = `Download debiased-${mine.name}`;
  $("#ready").hidden = false;
  showRows(result, result.kept === null ? "First rows, with the new columns" : "First groups", result.kept ?? upload.table.columns.length);
  showReport(result.report);
  say("The file is debiased and can be downloaded.");
}

function remove() {
  clearErrors(root());
  forget();
  $("#file").focus();
}

function forget() {
  clearTimeout(polling);
  if (upload) fetch(`/api/files/${upload.id}`, { method: "DELETE" });
  upload = null;
  $("#file").value = "";
  for (const id of ["chosen", "mapping", "card-preview", "card-progress", "card-report", "ready"]) $(`#${id}`).hidden = true;
  $("#file-empty").hidden = false;
}

function bar(words, value, notes) {
  $("#heading-progress").textContent = words;
  $("#bar").value = value;
  $("#bar-note").replaceChildren(...notes.map((note) => h("div", {}, note)));
}

function showRows({ columns, rows, count }, heading, old = columns.length) {
  $("#file-empty").hidden = true;
  $("#card-preview").hidden = false;
  $("#heading-preview").textContent = heading;
  const fresh = (i) => (i >= old ? { class: "new" } : {});
  $("#preview").replaceChildren(h("table", { class: "data" },
    h("thead", {}, h("tr", {}, ...columns.map((name, i) => h("th", { scope: "col", ...fresh(i) }, toSee(name))))),
    h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((cell, i) => h("td", fresh(i), i >= old ? rounded(cell) : cell)))))));
  $("#preview-note").textContent = count === null ? "" : `${count.toLocaleString()} rows in all.`;
}

/** A name in quotes where the page would swallow blanks: " emp" is not emp. */
function toSee(name) {
  return /^\s|\s$|\s\s/.test(name) ? `"${name.replaceAll(" ", "\u00a0")}"` : name;
}

/** A new number, short enough to read. */
function rounded(cell) {
  const value = Number(cell);
  return cell === "" || !Number.isFinite(value) ? cell : String(Number(value.toPrecision(6)));
}

function size(bytes) {
  const units = ["bytes", "kB", "MB", "GB"];
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit += 1; }
  return `${value >= 100 || unit === 0 ? Math.round(value) : Number(value.toPrecision(2))} ${units[unit]}`;
}
