/**
 * A job's output, live: follows the end, stops on scrolling up, loads earlier lines, and searches the file.
 *
 * @typedef {import("./types.js").Window} Window
 */

import { el, dress, say } from "./dom.js";
import { Finder } from "./find.js";
import { Lines, MOST_LINES } from "./output_lines.js";
import { size } from "./words.js";

/** Lines of the first window and of each older one. */
const FIRST = 1_000;
const OLDER = 500;

/** Distance in pixels that counts as being at an edge. */
const NEAR = 24;

export class Output {
  /** @type {string | null} */
  id = null;
  isFollowing = true;
  #news = 0;
  #isAtTail = true;
  #isLoading = false;
  #stop = () => {};
  #turn = Promise.resolve();

  /** @param {import("./page.js").Page} page */
  constructor(page) {
    this.page = page;
    this.lines = new Lines();
    this.omitted = el("p", { class: "omitted" });
    this.empty = el("p", { class: "empty" }, "No output yet.");
    this.scroll = el(
      "div",
      {
        class: "output",
        tabindex: 0,
        role: "log",
        "aria-live": "off",
        "aria-label": "Output",
        scroll: () => this.#scrolled(),
      },
      this.omitted,
      this.empty,
      this.lines.element,
    );
    this.follow = toggle("follow", true, (isOn) => (isOn ? void this.toEnd() : this.#hold()));
    this.wrap = toggle("wrap", false, (isOn) => this.scroll.classList.toggle("is-wrapped", isOn));
    this.save = el("button", { type: "button", class: "toggle", click: () => void this.#download() }, "download");
    this.news = el("button", { type: "button", class: "news", hidden: true, click: () => void this.toEnd() });
    this.finder = new Finder(page.api, this);
    this.complaint = el("p", { class: "complaint", role: "alert" });
    this.strip = el("div", { class: "strip" }, this.follow, this.wrap, this.save);
    this.element = el("div", { class: "printed" }, this.strip, this.complaint, this.scroll, this.news);
  }

  /** Show the output of another job; null: of none. @param {string | null} id */
  async show(id) {
    if (id === this.id) return;
    this.#stop();
    this.id = id;
    this.lines.reset({ ...NONE });
    this.finder.clear();
    this.isFollowing = true;
    say(this.complaint, "");
    if (id) await this.toEnd();
  }

  /** Go to the end and follow it. */
  async toEnd() {
    this.#set(true);
    if (this.id && (!this.#isAtTail || !this.lines.count)) await this.#tail(this.id);
    this.#bottom();
  }

  /** Show the lines from an offset on, with some before. @param {number} offset */
  async goTo(offset) {
    const { id } = this;
    if (!id) return null;
    this.#set(false);
    if (!this.lines.at(offset)) {
      const after = await this.#window(id, { after: offset, lines: FIRST });
      const before = await this.#window(id, { before: offset, lines: OLDER });
      if (id !== this.id || !after || !before) return null;
      this.lines.reset(after);
      this.#isAtTail = isLast(after);
      this.lines.prepend(before);
      this.#tellOmitted(before);
    }
    const line = this.lines.at(offset);
    line?.scrollIntoView({ block: "center" });
    return line;
  }

  /** @param {string} id */
  async #tail(id) {
    const window = await this.#window(id, { tail: FIRST });
    if (!window || id !== this.id) return;
    this.lines.reset(window);
    this.#isAtTail = true;
    this.#tellOmitted(window);
    this.#bottom();
    this.#stop();
    this.#stop = this.page.link.listen(
      { job: id, after: this.lines.end },
      {
        tell: (event, data) => event === "output" && this.#queue(id, data),
        become: () => {},
      },
    );
  }

  /** Process windows one after the other, so that they are shown in order. @param {string} id @param {Window} window */
  #queue(id, window) {
    this.#turn = this.#turn.then(() => this.#take(id, window)).catch(() => {});
  }

  /** @param {string} id @param {Window} window */
  async #take(id, window) {
    if (id !== this.id) return;
    if (window.restarted) return void (await this.#tail(id));
    if (!this.#isAtTail) return this.#count(window.lines.length);
    let news = window;
    if (window.start !== this.lines.end) {
      if (window.end <= this.lines.end && !window.partial) return; // requested by another tab, shown here already
      const missing = await this.#window(id, { after: this.lines.end, lines: MOST_LINES });
      if (!missing || id !== this.id) return;
      if (!isLast(missing) && this.isFollowing) return void (await this.#tail(id));
      this.#isAtTail = isLast(missing);
      news = missing;
    }
    const added = this.lines.append(news);
    dress(this.empty, { hidden: this.lines.count > 0 });
    if (this.isFollowing) this.#bottom();
    else this.#count(added);
  }

  /** @param {number} added */
  #count(added) {
    this.#news += added;
    say(this.news, `↓ ${this.#news} new ${this.#news === 1 ? "line" : "lines"}`);
    dress(this.news, { hidden: this.#news === 0 });
  }

  #hold() {
    this.#set(false);
  }

  /** @param {boolean} isFollowing */
  #set(isFollowing) {
    this.isFollowing = isFollowing;
    dress(this.follow, { "aria-pressed": String(isFollowing) });
    if (isFollowing) {
      this.#news = 0;
      dress(this.news, { hidden: true });
    }
  }

  #bottom() {
    this.scroll.scrollTop = this.scroll.scrollHeight;
    this.#lastTop = this.scroll.scrollTop;
  }

  #lastTop = 0;

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroll;
    const isUp = scrollTop < this.#lastTop - 1;
    this.#lastTop = scrollTop;
    const isAtEnd = scrollHeight - clientHeight - scrollTop <= NEAR;
    if (isUp && !isAtEnd) this.#set(false);
    else if (isAtEnd && this.#isAtTail && !this.isFollowing && !isUp) this.#set(true);
    if (scrollTop < NEAR && this.lines.start > 0) void this.#older();
    if (isAtEnd && !this.#isAtTail) void this.#newer();
  }

  async #older() {
    await this.#load({ before: this.lines.start, lines: OLDER }, (window) => {
      if (!window.lines.length) return void (this.lines.start = 0);
      const first = /** @type {HTMLElement | null} */ (this.lines.element.firstElementChild);
      const before = first?.offsetTop ?? 0;
      if (this.lines.prepend(window)) this.#isAtTail = false;
      this.#tellOmitted(window);
      this.scroll.scrollTop += (first?.offsetTop ?? 0) - before; // keep the visible lines in place
      this.#lastTop = this.scroll.scrollTop;
    });
  }

  async #newer() {
    await this.#load({ after: this.lines.end, lines: OLDER }, (window) => {
      this.lines.append(window);
      this.#isAtTail = isLast(window);
    });
  }

  /** @param {Record<string, number>} asked @param {(window: Window) => void} take */
  async #load(asked, take) {
    const { id } = this;
    if (this.#isLoading || !id) return;
    this.#isLoading = true;
    const window = await this.#window(id, asked);
    this.#isLoading = false;
    if (window && id === this.id) take(window);
  }

  /** @param {string} id @param {Record<string, number>} asked @returns {Promise<Window | null>} */
  async #window(id, asked) {
    try {
      const window = await this.page.api.get(`/api/jobs/${encodeURIComponent(id)}/output.json`, asked);
      say(this.complaint, "");
      return window;
    } catch (error) {
      if (id === this.id) say(this.complaint, /** @type {Error} */ (error).message);
      return null;
    }
  }

  /** @param {Window} window */
  #tellOmitted(window) {
    say(this.omitted, window.omitted ? `… ${size(window.omitted)} omitted …` : "");
    dress(this.empty, { hidden: this.lines.count > 0 });
  }

  async #download() {
    const { id } = this;
    if (!id) return;
    try {
      const address = URL.createObjectURL(await this.page.api.file(`/api/jobs/${encodeURIComponent(id)}/output.txt`));
      el("a", { href: address, download: `${id}.txt` }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
    } catch (error) {
      say(this.complaint, /** @type {Error} */ (error).message);
    }
  }
}

/** @type {Window} */
const NONE = {
  start: 0,
  end: 0,
  size: 0,
  omitted: 0,
  is_over: false,
  partial: false,
  restarted: false,
  offsets: [],
  lines: [],
};

/** Whether no output follows a window; its unterminated last line counts as part of it. @param {Window} window */
function isLast(window) {
  return window.end >= window.size || window.partial;
}

/** @param {string} name @param {boolean} isOn @param {(isOn: boolean) => void} turn */
export function toggle(name, isOn, turn) {
  const button = el("button", { type: "button", class: "toggle", "aria-pressed": String(isOn) }, name);
  button.addEventListener("click", () => {
    const next = button.getAttribute("aria-pressed") !== "true";
    dress(button, { "aria-pressed": String(next) });
    turn(next);
  });
  return button;
}
