// Start: what the page offers, what the address says, tabs, theme, links to copy.

import { fetchJson } from "./api.js";
import { setUpBias } from "./bias.js";
import { redraw } from "./charts.js";
import { $, $$, copy, h, tabs } from "./dom.js";
import { changed, currentNames, showCode, update, updateCode } from "./estimator.js";
import { fileChanged, setUpFiles, showFile } from "./files.js";
import { firstView, refresh, setUp } from "./form.js";
import { setUpPlan, showPlan } from "./plan.js";
import { setUpSaving } from "./save.js";
import { readAddress, state, writeAddress } from "./state.js";

const VIEWS = ["estimator", "file", "plan"];

function showTab(name) {
  state.tab = VIEWS.includes(name) ? name : "estimator";
  for (const view of VIEWS) $(`#view-${view}`).hidden = view !== state.tab;
  document.title = { estimator: "trueup", file: "trueup: a file", plan: "trueup: plan" }[state.tab];
  writeAddress(currentNames());
  if (state.tab === "file") showFile();
  if (state.tab === "plan") showPlan();
  window.dispatchEvent(new Event("resize"));
}

function setUpTheme() {
  const dark = () => getComputedStyle(document.documentElement).colorScheme === "dark"
    || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  $("#theme").addEventListener("click", () => {
    const theme = dark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    try { localStorage.setItem("trueup-theme", theme); } catch { /* for this visit only */ }
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

function setUpCode(options) {
  const fill = (select, words) => select.append(...words.map((word) => h("option", { value: word }, word)));
  fill($("#dialect"), options.dialects);
  fill($("#output"), options.outputs);
  for (const name of ["dialect", "output"]) {
    const select = $(`#${name}`);
    if (state[name]) select.value = state[name];
    select.addEventListener("change", () => { state[name] = select.value; writeAddress(currentNames()); updateCode(); });
  }
  const choose = tabs($('[aria-label="Language"]'), (tab) => {
    state.code = tab.dataset.code;
    $("#code-panel").setAttribute("aria-labelledby", tab.id);
    writeAddress(currentNames());
    showCode();
  });
  const chosen = $(`#code-${["python", "sql", "command"].includes(state.code) ? state.code : "python"}`);
  choose(chosen);
}

async function start() {
  const options = await fetchJson("/api/options");
  const keep = () => writeAddress(currentNames());
  setUp(options, () => { changed(); if (state.tab === "file") fileChanged(); });
  if (!readAddress()) Object.assign(state, firstView());
  setUpTheme();
  setUpCode(options);
  setUpBias(keep);
  const choose = tabs($('[aria-label="Views"]'), (tab) => showTab(tab.id.slice(4)));
  setUpFiles(options, keep, () => { choose($("#tab-estimator")); $("#formula").focus(); });
  setUpPlan(keep);
  setUpSaving();
  const show = async () => {
    const tab = VIEWS.includes(state.tab) ? state.tab : "estimator";
    refresh(Object.keys(state.statistics));
    await update();
    choose($(`#tab-${tab}`));
  };
  $("#share").addEventListener("click", (event) => copy(location.href, event.currentTarget));
  for (const button of $$("[data-copy]")) {
    button.addEventListener("click", () => copy($(`#${button.dataset.copy}`).textContent, button));
  }
  window.addEventListener("hashchange", () => { if (readAddress()) show(); });
  await show();
  document.documentElement.dataset.ready = "true";
}

start();
