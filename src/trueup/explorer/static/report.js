// The report on an uploaded file.

import { $ } from "./dom.js";

export function showReport(report) {
  $("#card-report").hidden = !report;
}
