/** The header: the list, its progress, the views, and whether the page is up to date. */

import { dress, el, refill, say } from "./dom.js";
import { VIEWS, written } from "./route.js";
import { duration } from "./words.js";

/** After this many milliseconds without an update, the page shows for how long. */
const STALE_MS = 40_000;

export class Header {
  /** @type {[state: string, heardAt: number, why: string]} */
  #line = ["reconnecting", Date.now(), ""];

  /** @param {import("./page.js").Page} page */
  constructor(page) {
    this.page = page;
    this.lists = el("select", {
      id: "lists",
      "aria-label": "List",
      change: () => page.go({ list: this.lists.value, chosen: null }),
    });
    this.bar = el("progress", { max: 1, value: 0, "aria-label": "Done" });
    this.share = el("span", { class: "share" });
    this.links = VIEWS.map((view) => el("a", { class: "view", href: "#" }, view[0].toUpperCase() + view.slice(1)));
    this.dot = el("span", { class: "dot", "aria-hidden": "true" });
    this.state = el("span", { class: "state" });
    this.element = el(
      "header",
      { class: "top" },
      el("h1", {}, "taskyard"),
      el("span", { class: "menu" }, this.lists),
      el("span", { class: "progress" }, this.bar, this.share),
      el("nav", { "aria-label": "Views" }, ...this.links),
      el("span", { class: "line", role: "status" }, this.dot, this.state),
    );
    page.store.view((snapshot) => this.#show(snapshot));
    page.follow(() => this.#place());
    setInterval(() => this.#tellState(), 1_000);
    this.#place();
  }

  /** @param {string} state @param {number} heardAt @param {string} why */
  become(state, heardAt, why) {
    this.#line = [state, heardAt, why];
    this.#tellState();
  }

  /** @param {import("./types.js").Snapshot} snapshot */
  #show({ counts, lists, attention }) {
    dress(this.bar, { max: counts.total || 1, value: counts.done });
    this.bar.value = counts.done;
    say(this.share, `${counts.done}/${counts.total}`);
    document.title = attention ? `(${attention}) taskyard` : "taskyard";
    const { list } = this.page.place;
    const names = lists.includes(list) || !list ? lists : [list, ...lists];
    const shown = [...this.lists.options].map((option) => option.value);
    if (shown.join("\n") !== names.join("\n"))
      refill(this.lists, ...names.map((name) => el("option", { value: name }, name)));
    if (this.lists.value !== list) this.lists.value = list;
  }

  #place() {
    const { view, list } = this.page.place;
    this.links.forEach((link, index) => {
      const isHere = VIEWS[index] === view;
      dress(link, { href: written({ view: VIEWS[index], list, chosen: null }), "aria-current": isHere && "page" });
    });
    if (this.lists.value !== list) this.lists.value = list;
  }

  #tellState() {
    const [state, heardAt, why] = this.#line;
    const silent = Date.now() - heardAt;
    const isStale = state === "reconnecting" && silent >= STALE_MS;
    const shown = isStale ? "stale" : state;
    dress(this.dot, { class: `dot is-${shown}` });
    say(this.state, isStale ? `stale ${duration(silent / 1000)}` : state);
    dress(this.element, { title: why || null });
  }
}
