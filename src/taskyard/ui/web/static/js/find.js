/** Find in the whole file, not only in the page: Enter for the next match, Shift+Enter for the previous. */

import { el, say } from "./dom.js";

export class Finder {
  /** @type {number | null} */
  #at = null;
  #asked = "";

  /** @param {import("./api.js").Api} api @param {import("./output.js").Output} output */
  constructor(api, output) {
    this.api = api;
    this.output = output;
    this.input = el("input", {
      type: "search",
      "aria-label": "Find in the output",
      placeholder: "find",
      autocomplete: "off",
    });
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") void this.#find(event.shiftKey);
    });
    this.input.addEventListener("input", () => this.#forget());
    this.told = el("span", { class: "told", role: "status" });
    this.element = el("span", { class: "find" }, this.input, this.told);
  }

  clear() {
    this.input.value = "";
    this.#forget();
  }

  #forget() {
    this.#at = null;
    say(this.told, "");
    highlight(null, "");
  }

  /** @param {boolean} isBack */
  async #find(isBack) {
    const { id } = this.output;
    const text = this.input.value;
    if (!id || !text) return;
    if (text !== this.#asked) [this.#asked, this.#at] = [text, null];
    const first = isBack ? this.output.lines.end + 1 : 0;
    const from = this.#at === null ? first : isBack ? this.#at : this.output.lines.behind(this.#at);
    say(this.told, "…");
    try {
      const path = `/api/jobs/${encodeURIComponent(id)}/find.json`;
      const { offset } = await this.api.get(path, { text, from, backwards: isBack ? 1 : 0 });
      const isOver = offset === null || (!isBack && offset === this.#at);
      say(this.told, isOver ? (this.#at === null ? "not found" : "no more") : "");
      if (isOver) return;
      this.#at = offset;
      highlight(await this.output.goTo(offset), text);
    } catch (error) {
      say(this.told, /** @type {Error} */ (error).message);
    }
  }
}

/** Highlight a text in a line, even if colours split it. @param {HTMLElement | null} line @param {string} text */
function highlight(line, text) {
  for (const other of document.querySelectorAll(".out.is-found")) other.classList.remove("is-found");
  line?.classList.add("is-found");
  if (!("highlights" in CSS)) return;
  CSS.highlights.delete("found");
  if (!line) return;
  const at = (line.textContent ?? "").toLowerCase().indexOf(text.toLowerCase());
  const [start, end] = [spot(line, at), spot(line, at + text.length)];
  if (at < 0 || !start || !end) return;
  const range = document.createRange();
  range.setStart(...start);
  range.setEnd(...end);
  CSS.highlights.set("found", new Highlight(range));
}

/** A character's text node and offset. @param {HTMLElement} line @param {number} at @returns {[Node, number] | null} */
function spot(line, at) {
  const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
  let left = at;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const length = node.nodeValue?.length ?? 0;
    if (left <= length) return [node, left];
    left -= length;
  }
  return null;
}
