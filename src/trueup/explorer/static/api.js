// Requests to the page's own server. A newer request of the same kind replaces the one before.

import { $ } from "./dom.js";

const view = crypto.getRandomValues(new Uint32Array(3)).join("-");
const running = new Map();
let pending = 0;

/** Ask for a computation; resolves to its answer, or to null when a newer request replaced it. */
export async function ask(kind, request) {
  running.get(kind)?.abort();
  const control = new AbortController();
  running.set(kind, control);
  try {
    const answer = await fetchJson(`/api/${kind}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ ...request, view }),
      signal: control.signal,
    });
    return answer.error?.kind === "superseded" ? null : answer;
  } catch (error) {
    if (error.name === "AbortError") return null;
    throw error;
  } finally {
    if (running.get(kind) === control) running.delete(kind);
  }
}

/** Stop waiting for a kind of computation. */
export function drop(kind) {
  running.get(kind)?.abort();
}

/** Fetch JSON; a refusal is an answer with an error, and no answer at all shows the banner. */
export async function fetchJson(path, options) {
  working(1);
  try {
    const response = await fetch(path, options);
    offline(false);
    return await response.json();
  } catch (error) {
    if (error.name !== "AbortError") offline(true);
    throw error;
  } finally {
    working(-1);
  }
}

export function offline(gone) {
  $("#offline").hidden = !gone;
}

let shownLater;
function working(change) {
  pending += change;
  clearTimeout(shownLater);
  if (pending) shownLater = setTimeout(() => { $("#progress").hidden = false; }, 350);
  else $("#progress").hidden = true;
}
