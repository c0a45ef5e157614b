// Take a picture or a table along: buttons below every chart and every table.

import { numbers, picture } from "./charts.js";
import { $, $$, copy, h } from "./dom.js";

/** Put the buttons there; the sheet shows them when there is something to take. */
export function setUpSaving() {
  for (const { id } of $$(".chart")) {
    $(`#${id}`).after(h("div", { class: "keep" },
      button("Save picture", async () => {
        h("a", { href: await picture(id), download: `trueup-${id.slice(6)}.png` }).click();
      }),
      button("Copy numbers", (event) => copy(numbers(id), event.currentTarget))));
  }
  for (const place of $$(".scroll")) {
    place.after(h("div", { class: "keep" }, button("Copy table", (event) => copy(written(place), event.currentTarget))));
  }
}

function button(words, onclick) {
  return h("button", { type: "button", class: "plain", onclick }, words);
}

/** A table as text: cells between tabs, as spreadsheets take them. */
function written(place) {
  return $$("tr", place).map((row) => [...row.cells].map((cell) => cell.innerText.replaceAll(/\s+/g, " ")).join("\t")).join("\n");
}
