/**
 * State that the parts of the page share: the current place, the store, the API client.
 *
 * @typedef {import("./types.js").Chosen} Chosen
 * @typedef {import("./route.js").Place} Place
 */

import { Api } from "./api.js";
import { filter } from "./filter.js";
import { Link } from "./link.js";
import { parse, written } from "./route.js";
import { Store } from "./store.js";

export class Page {
  store = new Store();
  /** @type {Place} */
  place = parse(location.hash);
  /** @type {import("./types.js").About} */
  about = { version: "", allow_actions: false, list: "", now: Date.now() };
  filterText = "";
  /** @type {Element | null} */
  cameFrom = null;
  matches = filter("");
  /** @type {Set<(place: Place, before: Place) => void>} */
  #followers = new Set();

  /** @param {string} token */
  constructor(token) {
    this.api = new Api(token);
    this.link = new Link(token);
    addEventListener("hashchange", () => this.#arrive(parse(location.hash)));
  }

  /** Subscribe to changes of the place. @param {(place: Place, before: Place) => void} follower */
  follow(follower) {
    this.#followers.add(follower);
  }

  /** Use a list, if the address names none. @param {string} list */
  begin(list) {
    this.place = { ...this.place, list };
    history.replaceState(null, "", written(this.place));
  }

  /** Go to another view or list; the back button returns. @param {Partial<Place>} there */
  go(there) {
    const place = { ...this.place, ...there };
    if (written(place) === location.hash) return;
    history.pushState(null, "", written(place));
    this.#arrive(place);
  }

  /** Open an item beside the view; null closes it. @param {Chosen | null} chosen */
  choose(chosen) {
    const place = { ...this.place, chosen };
    history.replaceState(null, "", written(place));
    this.#arrive(place);
  }

  /** Open an item; by key, also move the focus there. @param {Chosen} chosen @param {boolean} byKey */
  open(chosen, byKey) {
    this.cameFrom = document.activeElement;
    this.choose(chosen);
    if (byKey) /** @type {HTMLElement | null} */ (document.querySelector(".panel .close"))?.focus();
  }

  /** Close the panel, and restore the focus. */
  back() {
    this.choose(null);
    if (this.cameFrom instanceof HTMLElement || this.cameFrom instanceof SVGElement) this.cameFrom.focus();
    this.cameFrom = null;
  }

  /** @param {string} text */
  setFilter(text) {
    this.filterText = text;
    this.matches = filter(text);
    this.store.again();
  }

  /** @param {Place} place */
  #arrive(place) {
    const before = this.place;
    this.place = { ...place, list: place.list || before.list };
    for (const follower of this.#followers) follower(this.place, before);
  }
}
