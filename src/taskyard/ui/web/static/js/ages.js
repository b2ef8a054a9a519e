/** Ages that keep counting: every `.age` in the page, updated once a second by one timer. */

import { el } from "./dom.js";
import { duration } from "./words.js";

let skew = 0;

/** Use the server's clock. @param {number} serverNow epoch ms */
export function setClock(serverNow) {
  const found = serverNow - Date.now();
  skew = Math.abs(found) > 2_000 ? found : 0;
}

/** Epoch ms, by the server's clock. */
export function now() {
  return Date.now() + skew;
}

/** An age that counts from `since`. */
export function age() {
  return el("span", { class: "age" });
}

/**
 * Set the start and the end of an age.
 *
 * @param {HTMLElement} element
 * @param {number | null} since epoch ms; null: there is none
 * @param {number | null} [until] epoch ms; null: still counting
 * @param {number} [less] ms to subtract
 */
export function setAge(element, since, until = null, less = 0) {
  element.dataset.since = since === null ? "" : String(since + less);
  element.dataset.until = until === null ? "" : String(until);
  tell(element, now());
}

/** Start the timer. */
export function startAges() {
  setInterval(() => {
    if (document.hidden) return;
    const moment = now();
    for (const element of document.querySelectorAll(".age")) tell(/** @type {HTMLElement} */ (element), moment);
  }, 1_000);
}

/** @param {HTMLElement} element @param {number} moment */
function tell(element, moment) {
  const { since, until } = element.dataset;
  const text = since ? duration(((until ? Number(until) : moment) - Number(since)) / 1000) : "";
  if (element.textContent !== text) element.textContent = text;
}
