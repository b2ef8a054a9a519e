/** The lines of an output that are in the page: a bounded window into a file of any size. */

import { el, word } from "./dom.js";

/** Most lines in the page. */
export const MOST_LINES = 5_000;

export class Lines {
  /** The offset of the first line, and the offset to continue from after the last. */
  start = 0;
  end = 0;

  constructor() {
    this.element = el("div", { class: "lines" });
  }

  get count() {
    return this.element.childElementCount;
  }

  /** Show these lines and no others. @param {import("./types.js").Window} window */
  reset(window) {
    this.element.replaceChildren(...drawn(window));
    this.start = window.start;
    this.end = window.end;
    this.#cut("top");
  }

  /** Append new output; return how many lines are new. @param {import("./types.js").Window} window */
  append(window) {
    let added = window.lines.length;
    const last = /** @type {HTMLElement | null} */ (this.element.lastElementChild);
    if (added && last && Number(last.dataset.offset) === window.offsets[0]) {
      last.remove(); // it was unterminated: it comes again, with what was added
      added -= 1;
    }
    this.element.append(...drawn(window));
    this.end = window.end;
    this.#cut("top");
    return added;
  }

  /** Insert earlier output; true if lines at the end were dropped. @param {import("./types.js").Window} window */
  prepend(window) {
    this.element.prepend(...drawn(window));
    this.start = window.start;
    return this.#cut("bottom");
  }

  /** The line that begins at an offset. @param {number} offset @returns {HTMLElement | null} */
  at(offset) {
    return this.element.querySelector(`[data-offset="${offset}"]`);
  }

  /** The offset of the line after the one at an offset. @param {number} offset */
  behind(offset) {
    const next = /** @type {HTMLElement | null | undefined} */ (this.at(offset)?.nextElementSibling);
    return next ? Number(next.dataset.offset) : this.end;
  }

  /** Drop lines beyond the limit. @param {"top" | "bottom"} side */
  #cut(side) {
    let isCut = false;
    while (this.count > MOST_LINES) {
      const gone = /** @type {HTMLElement} */ (
        side === "top" ? this.element.firstElementChild : this.element.lastElementChild
      );
      if (side === "bottom") this.end = Number(gone.dataset.offset);
      gone.remove();
      isCut = true;
    }
    if (isCut && side === "top")
      this.start = Number(/** @type {HTMLElement} */ (this.element.firstElementChild).dataset.offset);
    return isCut;
  }
}

/** @param {import("./types.js").Window} window */
function drawn({ offsets, lines }) {
  return lines.map((runs, index) => el("div", { class: "out", "data-offset": offsets[index] }, ...runs.map(run)));
}

/** @param {import("./types.js").Run} run */
function run([text, style]) {
  return style ? el("span", { class: style.split(" ").map(word).join(" ") }, text) : text;
}
