/** The lines of an output that are on the page: a window into a file of any size, at most so many of them. */

import { el, word } from "./dom.js";

/** Lines on the page. */
export const MOST_LINES = 5_000;

export class Lines {
  /** Where the first line begins, and where to read on after the last. */
  start = 0;
  end = 0;

  constructor() {
    this.element = el("div", { class: "lines" });
  }

  get count() {
    return this.element.childElementCount;
  }

  /** These and no others. @param {import("./types.js").Window} window */
  reset(window) {
    this.element.replaceChildren(...drawn(window));
    this.start = window.start;
    this.end = window.end;
    this.#cut("top");
  }

  /** What came since; how many of the lines are new. @param {import("./types.js").Window} window */
  append(window) {
    let added = window.lines.length;
    const last = /** @type {HTMLElement | null} */ (this.element.lastElementChild);
    if (added && last && Number(last.dataset.offset) === window.offsets[0]) {
      last.remove(); // it had no end yet: it comes again, with what was added to it
      added -= 1;
    }
    this.element.append(...drawn(window));
    this.end = window.end;
    this.#cut("top");
    return added;
  }

  /** What came before; true if lines at the end had to go. @param {import("./types.js").Window} window */
  prepend(window) {
    this.element.prepend(...drawn(window));
    this.start = window.start;
    return this.#cut("bottom");
  }

  /** The line that begins at an offset. @param {number} offset @returns {HTMLElement | null} */
  at(offset) {
    return this.element.querySelector(`[data-offset="${offset}"]`);
  }

  /** Where the line after the one at an offset begins. @param {number} offset */
  behind(offset) {
    const next = /** @type {HTMLElement | null | undefined} */ (this.at(offset)?.nextElementSibling);
    return next ? Number(next.dataset.offset) : this.end;
  }

  /** Let go what is too much. @param {"top" | "bottom"} side */
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
