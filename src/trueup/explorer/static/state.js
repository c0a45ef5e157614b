// What the page shows, and its form in the address, so that a view can be shared.
//
//   #f=s/n&n.family=discrete_laplace&n.scale=2&n.low=1&vary=n&at:s=20&tab=estimator
//
// A statistic's fields are NAME.FIELD; other groups use a colon. Only what was set is written.

/** A store of properties by name, without any that it has by birth, such as constructor. */
export const bare = (entries = {}) => {
  const store = Object.create(null);
  for (const [name, value] of Object.entries(entries)) put(store, name, value);
  return store;
};

export const state = {
  tab: "estimator",
  formula: "1/n",
  known: "",
  empty: "",
  statistics: bare(),
  vary: "",
  at: bare(),
  from: "",
  to: "",
  dialect: "",
  output: "",
  trade: "bias",
  bias: "",
  cells: "",
  code: "python",
  planned: "mean",
  plan: bare(),
  table: bare(),
  file: bare(),
};

const FIELDS = new Set(
  "family way scale epsilon delta rho sensitivity df width low high".split(" "));
const PLAIN = { f: "formula", known: "known", empty: "empty", tab: "tab", vary: "vary", from: "from", to: "to", dialect: "dialect",
  output: "output", code: "code", trade: "trade", bias: "bias", cells: "cells", planned: "planned" };
const GROUPS = new Set(["at", "plan", "table", "file"]);
const DEFAULTS = { tab: "estimator", code: "python", trade: "bias", planned: "mean" };

/** Read the state from the address; returns false when the address says nothing. */
export function readAddress() {
  const hash = location.hash.slice(1);
  if (!hash.includes("=")) return false;
  Object.assign(state, { statistics: bare(), at: bare(), plan: bare(), table: bare(), file: bare(), known: "", empty: "",
    vary: "", from: "", to: "", dialect: "", output: "", bias: "", cells: "", ...DEFAULTS });
  for (const [key, value] of new URLSearchParams(hash)) {
    const text = value.slice(0, 2000);
    const dot = key.lastIndexOf(".");
    const colon = key.indexOf(":");
    if (Object.hasOwn(PLAIN, key)) {
      state[PLAIN[key]] = text;
    } else if (colon > 0 && GROUPS.has(key.slice(0, colon))) {
      put(state[key.slice(0, colon)], key.slice(colon + 1), text);
    } else if (dot > 0 && FIELDS.has(key.slice(dot + 1))) {
      const name = key.slice(0, dot);
      if (!Object.hasOwn(state.statistics, name)) put(state.statistics, name, bare());
      put(state.statistics[name], key.slice(dot + 1), text.slice(0, 60));
    }
  }
  return true;
}

/** Set an own property, whatever its name. */
export function put(target, name, value) {
  Object.defineProperty(target, name, { value, writable: true, enumerable: true, configurable: true });
}

/** Write the state into the address, without a new entry in the history. */
export function writeAddress(names) {
  const query = new URLSearchParams();
  for (const [key, name] of Object.entries(PLAIN)) {
    if (state[name] && state[name] !== DEFAULTS[name]) query.set(key, state[name]);
  }
  for (const name of names) {
    for (const [field, value] of Object.entries(state.statistics[name] ?? {})) {
      if (value !== "") query.set(`${name}.${field}`, value);
    }
    if (state.at[name]) query.set(`at:${name}`, state.at[name]);
  }
  for (const group of ["plan", "table", "file"]) {
    for (const [field, value] of Object.entries(state[group])) {
      if (value !== "") query.set(`${group}:${field}`, value);
    }
  }
  history.replaceState(null, "", `#${query}`);
}
