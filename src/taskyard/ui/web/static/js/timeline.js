/** The timeline: a lane for each agent, then those of the jobs; now is at the right edge. */

import { now } from "./ages.js";
import { dress, el, glyph, say, word } from "./dom.js";
import { Rows, arrange } from "./rows.js";
import { rove, settle } from "./roving.js";
import { packed, scale } from "./timescale.js";
import { clock, duration, minute } from "./words.js";

/** @typedef {import("./types.js").Bar} Bar */
/** @typedef {import("./types.js").Timeline} Line */

const ROW = 28;

/** Least width of a bar in pixels: with its glyph, and with its text. */
const NARROWEST = 18;
const WITH_TEXT = 52;

/** Milliseconds for which changes are collected. */
const GATHER_MS = 200;

export class Timeline {
  /** @type {Line | null} */
  #line = null;
  /** @type {Set<number>} the gaps that were opened, by their start */
  #opened = new Set();
  #timer = 0;
  #asked = 0;

  /** @param {import("./page.js").Page} page */
  constructor(page) {
    this.page = page;
    /** @type {Rows<Bar, HTMLButtonElement>} */
    this.bars = new Rows((key) => this.#bar(key), showBar);
    /** @type {Rows<string, HTMLDivElement>} */
    this.lanes = new Rows(
      (name) => lane(name),
      () => {},
    );
    this.axis = el("div", { class: "axis", "aria-hidden": "true" });
    this.body = el("div", { class: "lanes" });
    this.folds = el("div", { class: "folds" });
    this.nowLine = el("div", { class: "now" }, el("span", {}, "now"));
    this.surface = el("div", { class: "surface" }, this.axis, this.body, this.folds, this.nowLine);
    this.empty = el("p", { class: "empty" }, "Nothing was worked on yet.");
    this.complaint = el("p", { class: "complaint", role: "alert" });
    this.element = el(
      "section",
      { class: "timeline", "aria-label": "Timeline" },
      this.complaint,
      this.empty,
      this.surface,
    );
    rove(this.surface, ".bar, .fold");
    page.store.view((_now, changed) => {
      if (changed.tasks.size || changed.jobs.size) this.#soon();
      else this.#draw();
    });
    new ResizeObserver(() => this.#draw()).observe(this.element);
    setInterval(() => this.#draw(), 2_000);
  }

  arrive() {
    void this.#load();
  }

  /** Clear everything for another list. */
  clear() {
    this.#line = null;
    this.#opened.clear();
  }

  #soon() {
    if (this.page.place.view !== "timeline" || this.#timer) return;
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      void this.#load();
    }, GATHER_MS);
  }

  async #load() {
    this.#asked += 1;
    const asked = this.#asked;
    try {
      const line = await this.page.api.get("/api/timeline.json", { list: this.page.place.list });
      if (asked !== this.#asked) return;
      this.#line = line;
      say(this.complaint, "");
    } catch (error) {
      say(this.complaint, /** @type {Error} */ (error).message);
    }
    this.#draw();
  }

  #draw() {
    const line = this.#line;
    if (this.page.place.view !== "timeline" || document.hidden) return;
    dress(this.empty, { hidden: !line || line.lanes.length > 0 });
    dress(this.surface, { hidden: !line || line.lanes.length === 0 });
    if (!line?.lanes.length) return;
    const moment = Math.max(now(), line.now);
    const names = Number.parseFloat(getComputedStyle(this.surface).paddingLeft);
    const gaps = line.gaps.map((gap) => (gap.end === line.now ? { ...gap, end: moment } : gap));
    const folded = gaps.filter((gap) => !this.#opened.has(gap.start));
    const width = Math.max(this.element.clientWidth - names - 56, 240);
    const drawn = scale(line.start, moment, folded, width);
    this.#lanes(line, drawn, moment);
    this.#axis(drawn);
    this.#folds(drawn);
    place(this.nowLine, drawn.width, 0);
    settle(this.surface, ".bar, .fold");
  }

  /** @param {Line} line @param {import("./timescale.js").Scale} drawn @param {number} moment */
  #lanes(line, drawn, moment) {
    /** @type {Set<string>} */
    const keys = new Set();
    const rows = line.lanes.map(({ name, bars }) => {
      const element = this.lanes.node(name, name);
      const track = /** @type {HTMLElement} */ (element.children[1]);
      const rowsOfBars = packed(bars, moment, NARROWEST / drawn.perMs);
      track.style.height = `${rowsOfBars.length * ROW}px`;
      const nodes = rowsOfBars.flatMap((row, level) =>
        row.map((bar) => {
          const key = `${bar.is_job ? "job" : "task"} ${bar.id} ${bar.start}`;
          keys.add(key);
          const node = this.bars.node(key, bar);
          const x = Math.min(drawn.at(bar.start), drawn.width - NARROWEST - 1); // no bar extends beyond now
          const width = Math.max(drawn.at(bar.end ?? moment) - x - 1, NARROWEST);
          place(node, x, width, level * ROW);
          node.classList.toggle("is-short", width < WITH_TEXT);
          node.classList.toggle("is-other", !this.page.matches([bar.id, bar.text, name, bar.state]));
          return node;
        }),
      );
      arrange(track, nodes);
      return element;
    });
    arrange(this.body, rows);
    this.bars.keep((key) => keys.has(key));
    this.lanes.keep((name) => line.lanes.some((one) => one.name === name));
  }

  /** @param {import("./timescale.js").Scale} drawn */
  #axis(drawn) {
    const marks = drawn.ticks.map(({ time, x }) => {
      const mark = el("span", { class: "tick" }, drawn.step < 60_000 ? clock(time, time) : minute(time));
      place(mark, x, 0);
      return mark;
    });
    this.axis.replaceChildren(...marks.filter((_mark, index) => drawn.width - drawn.ticks[index].x > 40));
  }

  /** @param {import("./timescale.js").Scale} drawn */
  #folds(drawn) {
    const shown = drawn.folded.map(({ gap, x, width }) => {
      const known = /** @type {HTMLElement | null} */ (this.folds.querySelector(`[data-start="${gap.start}"]`));
      const lasted = duration((gap.end - gap.start) / 1000);
      const open = () => (this.#opened.add(gap.start), this.#draw());
      const fold =
        known ??
        el(
          "button",
          { class: "fold", type: "button", tabindex: -1, "data-start": gap.start, click: open },
          el("span", {}),
        );
      say(fold.children[0], `⌇ ${lasted} ⌇`);
      dress(fold, { "aria-label": `${lasted} without work, open` });
      place(fold, x, width);
      return fold;
    });
    arrange(this.folds, shown);
  }

  /** @param {string} key */
  #bar(key) {
    const [kind, id] = key.split(" ");
    const open = (/** @type {MouseEvent} */ event) =>
      kind === "job"
        ? this.page.go({ view: "background", chosen: { kind, id } })
        : this.page.open({ kind: "task", id }, event.detail === 0);
    return el(
      "button",
      { class: "bar", type: "button", tabindex: -1, click: open },
      glyph({ glyph: "", token: "default" }),
      el("span", { class: "text" }),
    );
  }
}

/** @param {HTMLButtonElement} node @param {Bar} bar */
function showBar(node, bar) {
  const [mark, text] = node.children;
  say(mark, bar.glyph);
  say(text, bar.is_job ? bar.text : `${bar.id} ${bar.text}`);
  const words = `${bar.is_job ? "" : `${bar.id} `}${bar.text}, ${bar.state}, from ${minute(bar.start)}${bar.end ? ` to ${minute(bar.end)}` : ""}`;
  dress(node, {
    class: `bar is-${bar.state} of-${word(bar.token)}${bar.is_job ? " is-job" : ""}`,
    "aria-label": words,
    title: words,
  });
}

/** @param {string} name */
function lane(name) {
  return el(
    "div",
    { class: "lane", role: "group", "aria-label": name },
    el("span", { class: "who" }, name),
    el("div", { class: "track" }),
  );
}

/** @param {HTMLElement} element @param {number} x @param {number} width @param {number} [y] */
function place(element, x, width, y) {
  element.style.left = `${x.toFixed(1)}px`;
  if (width) element.style.width = `${width.toFixed(1)}px`;
  if (y !== undefined) element.style.top = `${y}px`;
}
