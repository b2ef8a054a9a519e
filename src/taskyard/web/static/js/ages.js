/** Ages that grow while one looks: every `.age` in the page, once a second, by one clock. */

import { el } from "./dom.js";
import { duration } from "./words.js";

let skew = 0;

/** The server's clock is the one that counts. @param {number} serverNow epoch ms */
export function setClock(serverNow) {
  const found = serverNow - Date.now();
  skew = Math.abs(found) > 2_000 ? found : 0;
}

/** Epoch ms, by the server's clock. */
export function now() {
  return Date.now() + skew;
}

/** An age that grows from `since`. */
export function age() {
  return el("span", { class: "age" });
}

/**
 * Set what an age counts from, and where it ended.
 *
 * @param {HTMLElement} element
 * @param {number | null} since epoch ms; null: there is none
 * @param {number | null} [until] epoch ms; null: it goes on
 * @param {number} [less] ms that do not count
 */
export function setAge(element, since, until = null, less = 0) {
  element.dataset.since = since === null ? "" : String(since + less);
  element.dataset.until = until === null ? "" : String(until);
  tell(element, now());
}

/** Begin to count. */
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
