// The file's view: upload, choose columns, debias, download.

import { fetchJson, offline } from "./api.js";
import { $, clearErrors, h, say, showError } from "./dom.js";
import { currentEstimator, currentRequest } from "./estimator.js";
import { math } from "./mathml.js";

const root = () => $("#view-file");
let largest = 0;
let upload = null;
let polling;

export function setUpFiles(options, change) {
  largest = options.upload;
  $("#largest").textContent = size(largest);
  $("#change").addEventListener("click", change);
  $("#file").addEventListener("change", (event) => { if (event.target.files[0]) send(event.target.files[0]); });
  $("#remove").addEventListener("click", remove);
  $("#file-form").addEventListener("submit", (event) => { event.preventDefault(); debias(); });
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

/** Show what will be estimated, and a choice of column for each statistic. */
export function showFile() {
  const answer = currentEstimator();
  const known = Boolean(answer?.statistics) && !answer.error;
  $("#file-estimand").replaceChildren(answer?.estimand ? math(answer.estimand) : "nothing yet");
  $("#file-noise").replaceChildren(...(answer?.statistics ?? []).flatMap((s) => [
    h("dt", {}, s.name), h("dd", {}, h("code", {}, s.noise), `, true value in ${s.domain}`)]));
  clearErrors(root());
  $("#debias").disabled = !known;
  if (!known) {
    showError(root(), answer?.error ?? { field: "", message: "There is no estimator yet.", hint: "Write a formula first." }, "formula");
  }
  if (upload) showColumns(answer?.statistics ?? []);
}

function showColumns(statistics) {
  const names = upload.table.columns;
  const guess = (name) => names.find((c) => c === name) ?? names.find((c) => c.toLowerCase() === name.toLowerCase()) ?? "";
  const before = new Map([...$("#columns").querySelectorAll("select")].map((s) => [s.dataset.field, s.value]));
  $("#columns").replaceChildren(...statistics.flatMap(({ name }, i) => {
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

/** Upload with a progress bar: fetch cannot tell how much has gone out. */
function send(file) {
  clearErrors(root());
  if (file.size > largest) {
    refuse({ field: "file", message: `The file has ${size(file.size)}, more than ${size(largest)}.`, hint: "Use trueup debias in a terminal, or trueup explore --max-upload." });
    return;
  }
  forget();
  $("#card-progress").hidden = false;
  bar("Uploading", 0, file.name);
  const sending = new XMLHttpRequest();
  sending.open("POST", `/api/files?name=${encodeURIComponent(file.name)}`);
  sending.setRequestHeader("Content-Type", "application/octet-stream");
  sending.responseType = "json";
  sending.upload.onprogress = (event) => bar("Uploading", event.loaded / event.total, file.name);
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
    table(upload.table, "First rows");
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
  const chosen = (which) => Object.fromEntries([...$("#columns").querySelectorAll(`[data-which=${which}]`)].map((s) => [s.dataset.name, s.value]));
  const { formula, statistics } = currentRequest();
  const body = JSON.stringify({ formula, statistics, columns: chosen("columns"), scales: chosen("scales"), output: $("#new-column").value });
  const answer = await fetchJson(`/api/files/${upload.id}`, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  if (answer.error && !answer.id) {
    showError(root(), answer.error, "file");
    return;
  }
  $("#ready").hidden = true;
  $("#card-progress").hidden = false;
  bar("Debiasing", 0, "");
  $("#debias").disabled = true;
  clearTimeout(polling);
  poll();
}

async function poll() {
  const mine = upload;
  if (!mine) return;
  const answer = await fetchJson(`/api/files/${mine.id}`);
  if (mine !== upload) return;
  if (answer.state === "running") {
    bar("Debiasing", answer.progress, "");
    polling = setTimeout(poll, 250);
    return;
  }
  $("#debias").disabled = false;
  if (answer.state !== "done") {
    $("#card-progress").hidden = true;
    showError(root(), answer.error, "file");
    return;
  }
  bar("Done", 1, answer.result.summary.join(" · "));
  const link = $("#download");
  link.href = `/api/files/${mine.id}/result`;
  link.textContent = `Download debiased-${mine.name}`;
  $("#ready").hidden = false;
  table(answer.result, "First rows, with the new columns", upload.table.columns.length);
  say("The file is debiased and can be downloaded.");
}

async function remove() {
  const gone = upload;
  forget();
  $("#file").focus();
  await fetch(`/api/files/${gone.id}`, { method: "DELETE" });
}

function forget() {
  clearTimeout(polling);
  if (upload) fetch(`/api/files/${upload.id}`, { method: "DELETE" });
  upload = null;
  $("#file").value = "";
  for (const id of ["chosen", "mapping", "card-preview", "card-progress", "ready"]) $(`#${id}`).hidden = true;
  $("#file-empty").hidden = false;
}

function bar(words, value, note) {
  $("#heading-progress").textContent = words;
  $("#bar").value = value;
  $("#bar-note").textContent = note;
}

function table({ columns, rows, count }, heading, old = columns.length) {
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
