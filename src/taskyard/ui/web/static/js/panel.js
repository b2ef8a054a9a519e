/** The panel on the right: the details of the selected task or agent. */

import { age, now, setAge } from "./ages.js";
import { mailing, renewed, taskActs } from "./acts.js";
import { dress, el, glyph, refill } from "./dom.js";
import { clock } from "./words.js";

/** @typedef {import("./types.js").Chosen} Chosen */

/**
 * @typedef {{id: string, subject: string, word: string, glyph: string, token: string}} Neighbour
 * @typedef {{at: number, by: string | null, cause: string, note: string | null, words?: string}} Past
 * @typedef {{
 *   description: string, edges: {blocked_by: Neighbour[], blocks: Neighbour[]}, history: Past[],
 *   figures: import("./types.js").Figures, jobs?: string[],
 * }} TaskDetail
 */

export class Panel {
  #asked = 0;

  /** @param {import("./page.js").Page} page */
  constructor(page) {
    this.page = page;
    this.title = el("h2", {});
    this.head = el("p", { class: "kind" });
    this.acts = el("div", {});
    this.body = el("div", { class: "body" });
    const close = el(
      "button",
      { class: "close", type: "button", "aria-label": "Close", click: () => page.back() },
      "×",
    );
    this.element = el(
      "aside",
      { class: "panel", "aria-label": "Details" },
      close,
      this.head,
      this.title,
      this.acts,
      this.body,
    );
    page.follow((place, before) => this.#show(place.chosen?.id !== before.chosen?.id));
    page.store.view((_snapshot, changed) => {
      const { chosen } = page.place;
      const isNews = chosen && (chosen.kind === "task" ? changed.tasks : changed.people).has(chosen.id);
      if (isNews) this.#show(false);
    });
    this.#show(true);
  }

  /** @param {boolean} isOther another item is shown from now on */
  #show(isOther) {
    const { chosen } = this.page.place;
    const isShown = chosen !== null && chosen.kind !== "job";
    dress(this.element, { hidden: !isShown });
    this.#asked += 1;
    if (!isShown) return;
    if (isOther) refill(this.body);
    if (chosen.kind === "task") void this.#task(chosen.id);
    else this.#person(chosen.id);
  }

  /** @param {string} id */
  async #task(id) {
    const task = this.page.store.now.tasks[id];
    if (!task) return this.#gone(`Task ${id}`);
    this.#name(task, `${task.id} · ${task.word}`, task.subject);
    renewed(this.acts, `task ${task.id} ${task.state}`, () => taskActs(this.page, task));
    const asked = this.#asked;
    try {
      const detail = await this.page.api.get(`/api/tasks/${encodeURIComponent(id)}.json`, {
        list: this.page.place.list,
      });
      if (asked === this.#asked) refill(this.body, ...this.#detail(task, detail));
    } catch (error) {
      if (asked === this.#asked)
        refill(this.body, el("p", { class: "complaint" }, String(/** @type {any} */ (error).message)));
    }
    return undefined;
  }

  /** @param {import("./types.js").TaskView} task @param {TaskDetail} detail */
  #detail(task, detail) {
    const since = age();
    setAge(since, task.since);
    return [
      detail.description !== task.subject && el("p", { class: "text" }, detail.description),
      facts([
        ["owner", task.owner && `@${task.owner}`],
        [task.state === "done" ? "done for" : "for", task.since !== null && since],
        ["priority", task.priority],
        ["labels", task.labels.join(", ")],
        ["took", detail.figures?.jobs ? (detail.figures.words ?? "") : null],
      ]),
      this.#edges("Waits for", detail.edges.blocked_by),
      this.#edges("Blocks", detail.edges.blocks),
      this.#jobs(detail.jobs ?? []),
      past(detail.history),
    ];
  }

  /** @param {string} title @param {Neighbour[]} tasks */
  #edges(title, tasks) {
    if (!tasks.length) return null;
    const rows = tasks.map((task) =>
      el(
        "li",
        {},
        el(
          "button",
          { type: "button", class: "link", click: () => this.page.choose({ kind: "task", id: task.id }) },
          glyph(task),
          el("span", { class: "id" }, task.id),
          el("span", { class: "unseen" }, task.word),
          task.subject,
        ),
      ),
    );
    return el("section", {}, el("h3", {}, title), el("ul", { class: "edges" }, ...rows));
  }

  /** @param {string[]} ids */
  #jobs(ids) {
    const jobs = ids.map((id) => this.page.store.now.jobs[id]).filter(Boolean);
    if (!jobs.length) return null;
    const rows = jobs.map((job) => {
      const open = () => this.page.go({ view: "background", chosen: { kind: "job", id: job.id } });
      const text = [
        glyph(job),
        el("span", { class: "id" }, job.id),
        el("span", { class: "unseen" }, job.word),
        job.description,
      ];
      return el("li", {}, el("button", { type: "button", class: "link", click: open }, ...text));
    });
    return el("section", {}, el("h3", {}, "Jobs"), el("ul", { class: "edges" }, ...rows));
  }

  /** @param {string} name */
  #person(name) {
    const person = this.page.store.now.people[name];
    if (!person) return this.#gone(name);
    const since = age();
    setAge(since, person.since);
    this.#name(person, person.state, person.name);
    const task = person.task ? this.page.store.now.tasks[person.task] : null;
    renewed(this.acts, `person ${name}`, () => (this.page.about.allow_actions ? mailing(this.page, name) : el("div")));
    refill(
      this.body,
      person.doing && el("p", { class: "text" }, person.doing),
      facts([["for", person.since !== null && since]]),
      task && this.#edges("Task", [task]),
      this.#jobs(person.job ? [person.job] : []),
    );
    return undefined;
  }

  /** @param {{glyph: string, token: string}} look @param {string} kind @param {string} title */
  #name(look, kind, title) {
    refill(this.head, glyph(look), kind);
    this.title.textContent = title;
  }

  /** @param {string} what */
  #gone(what) {
    this.#name({ glyph: "", token: "muted" }, "", this.page.store.hasWord ? `${what} is not there any more.` : "…");
    renewed(this.acts, "", () => el("div"));
    refill(this.body);
  }
}

/** Names and values; those without a value are left out. @param {[string, import("./dom.js").Child][]} rows */
export function facts(rows) {
  const there = rows.filter(([, value]) => value !== null && value !== undefined && value !== false && value !== "");
  if (!there.length) return null;
  return el("dl", {}, ...there.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

/** @param {Past[]} history */
function past(history) {
  if (!history?.length) return null;
  const moment = now();
  const rows = history.map((one) =>
    el(
      "li",
      {},
      el("span", { class: "when" }, clock(one.at, moment)),
      el("span", {}, one.words ?? `${one.by ?? ""} ${one.cause}`, one.note && `: ${one.note}`),
    ),
  );
  return el("section", {}, el("h3", {}, "History"), el("ol", { class: "history" }, ...rows));
}
