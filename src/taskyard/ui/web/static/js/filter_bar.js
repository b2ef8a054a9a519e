/** The filter input; hidden until it is needed. */

import { dress, el } from "./dom.js";

export class Filter {
  /** @param {import("./page.js").Page} page */
  constructor(page) {
    this.page = page;
    this.input = el("input", {
      type: "search",
      "aria-label": "Filter",
      placeholder: "text, or !text for all others",
      autocomplete: "off",
      spellcheck: "false",
      input: () => page.setFilter(this.input.value),
    });
    this.element = el(
      "div",
      { class: "filter", role: "search", hidden: true },
      el("span", { "aria-hidden": "true" }, "/"),
      this.input,
    );
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === "ArrowDown") this.#leave(event);
    });
  }

  open() {
    dress(this.element, { hidden: false });
    this.input.focus();
    this.input.select();
  }

  /** Close it; true if it was open. */
  close() {
    if (this.element.hidden) return false;
    this.input.value = "";
    this.page.setFilter("");
    dress(this.element, { hidden: true });
    return true;
  }

  /** Move the focus to the first remaining row. @param {Event} event */
  #leave(event) {
    event.preventDefault();
    const first = /** @type {HTMLElement | null} */ (
      document.querySelector(`main > :not([hidden]) [tabindex="0"]:not(.output)`)
    );
    first?.focus();
  }
}
