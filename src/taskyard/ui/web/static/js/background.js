/** The background view: jobs on the left, the output of one on the right, its state steps on top. */

import { age, now, setAge } from "./ages.js";
import { answering, jobActs, renewed } from "./acts.js";
import { dress, el, glyph, refill, reglyph, say, word } from "./dom.js";
import { jobTexts } from "./filter.js";
import { Output, toggle } from "./output.js";
import { facts } from "./panel.js";
import { Rows, arrange } from "./rows.js";
import { rove, settle } from "./roving.js";
import { clock } from "./words.js";

/** @typedef {import("./types.js").JobView} JobView */

const NONE = "Nothing runs, and nothing ran lately. `taskyard run -d -- npm test` starts a job.";

export class Background {
  thin = matchMedia("(max-width: 760px)");
  /** @type {JobView | undefined} */
  #shown;

  /** @param {import("./page.js").Page} page */
  constructor(page) {
    this.page = page;
    /** @type {Rows<JobView, HTMLLIElement>} */
    this.rows = new Rows((id) => this.#row(id), showRow);
    this.list = el("ul", { class: "jobs rows", "aria-label": "Jobs" });
    this.none = el("p", { class: "empty" });
    this.output = new Output(page);
    const back = el("button", { type: "button", class: "back", click: () => page.choose(null) }, "‹ jobs");
    this.title = el("h2", {});
    this.steps = el("p", { class: "steps" });
    this.acts = el("div", {});
    this.question = el("div", { class: "question", hidden: true });
    this.facts = el("div", { class: "facts", hidden: true });
    this.output.strip.append(
      toggle("details", false, (isOn) => dress(this.facts, { hidden: !isOn })),
      this.output.finder.element,
    );
    this.output.element.prepend(this.output.strip, this.facts);
    const head = el("header", {}, this.title, this.acts);
    this.detail = el(
      "article",
      { class: "job", hidden: true },
      back,
      head,
      this.steps,
      this.question,
      this.output.element,
    );
    this.element = el(
      "section",
      { class: "background", "aria-label": "Background" },
      el("div", { class: "list" }, this.none, this.list),
      this.detail,
    );
    rove(this.list, ".row");
    page.store.view((snapshot) => this.#show(snapshot));
    page.follow((place) => place.view === "background" && this.#show(page.store.now));
  }

  arrive() {
    this.#show(this.page.store.now);
  }

  /** @param {string} id */
  #row(id) {
    const row = el(
      "button",
      {
        class: "row job",
        type: "button",
        "data-id": id,
        tabindex: -1,
        click: () => this.page.choose({ kind: "job", id }),
      },
      glyph({ glyph: "", token: "default" }),
      el("span", { class: "name" }),
      el("span", { class: "id" }, id),
      el("span", { class: "word" }),
      age(),
      el("span", { class: "doing" }),
    );
    return el("li", {}, row);
  }

  /** @param {import("./types.js").Snapshot} snapshot */
  #show(snapshot) {
    const { view, chosen } = this.page.place;
    if (view !== "background") return void this.output.show(null);
    const ids = snapshot.job_order.filter((id) => this.page.matches(jobTexts(snapshot.jobs[id])));
    arrange(
      this.list,
      ids.map((id) => this.rows.node(id, snapshot.jobs[id])),
    );
    this.rows.keep((id) => id in snapshot.jobs);
    dress(this.none, { hidden: ids.length > 0 });
    say(this.none, snapshot.job_order.length ? "No job fits the filter." : NONE);
    const id = chosen?.kind === "job" ? chosen.id : this.#first(ids);
    for (const row of this.list.querySelectorAll("[aria-current]")) row.removeAttribute("aria-current");
    const row = id && this.rows.known(id)?.children[0];
    if (row) dress(row, { "aria-current": "true" });
    settle(this.list, ".row");
    this.element.classList.toggle("is-open", id !== null);
    this.#detail(id, id ? snapshot.jobs[id] : undefined);
    return undefined;
  }

  /** If nothing is chosen and there is room beside the list: show the first job, until it is gone. @param {string[]} ids */
  #first(ids) {
    if (this.thin.matches) return null;
    if (!ids.includes(this.output.id ?? "")) return ids[0] ?? null;
    return this.output.id;
  }

  /** @param {string | null} id @param {JobView | undefined} job */
  #detail(id, job) {
    const isOther = id !== this.output.id;
    dress(this.detail, { hidden: id === null });
    void this.output.show(id);
    if (isOther && id) this.#look(id);
    if (job === this.#shown && !isOther) return;
    this.#shown = job;
    if (!job) return void refill(this.title, id && this.page.store.hasWord ? `${id} is not there any more.` : "…");
    refill(this.title, job.description, el("span", { class: "id" }, job.id));
    refill(this.steps, ...strip(job));
    renewed(this.acts, `${job.id} ${job.is_paused} ${job.is_foreground} ${job.ended_at}`, () =>
      jobActs(this.page, job),
    );
    this.#ask(job, isOther);
    this.#facts(job);
    return undefined;
  }

  /** Opening a job marks its end as seen. @param {string} id */
  #look(id) {
    this.page.api.get(`/api/jobs/${encodeURIComponent(id)}.json`).then(
      ({ figures }) => {
        const job = this.page.store.now.jobs[id];
        if (job && this.output.id === id) this.#facts(job, figures?.words);
      },
      () => {},
    );
  }

  /** @param {JobView} job @param {boolean} isOther */
  #ask(job, isOther) {
    const mayAnswer = job.takes_input && this.page.about.allow_actions;
    const isAsked = job.needs_input || mayAnswer;
    dress(this.question, { hidden: !isAsked, class: `question${job.needs_input ? " is-waiting" : ""}` });
    if (!isOther && isAsked && this.question.dataset.of === `${job.id} ${job.question}`) return;
    this.question.dataset.of = `${job.id} ${job.question}`;
    const asks =
      job.needs_input && el("p", { class: "t-warn" }, job.question || `${job.description} waits for an answer.`);
    refill(this.question, asks, mayAnswer && answering(this.page, job.id));
  }

  /** @param {JobView} job @param {string} [took] */
  #facts(job, took) {
    const kept = took ?? this.facts.dataset.took ?? "";
    this.facts.dataset.took = kept;
    const rows = facts([
      ["command", job.command && el("code", {}, job.command)],
      ["kind", job.kind],
      ["for task", job.task],
      ["by", job.agent && `@${job.agent}`],
      ["pid", job.pid],
      ["output", job.output && el("code", {}, job.output)],
      ["took", kept],
    ]);
    this.facts.replaceChildren(rows ?? "");
  }
}

/** `pending ─▶ running ─▶ ✗ failed (exit 1)   started 14:01:12 · 41s · notified ✓`. @param {JobView} job */
function strip(job) {
  const parts = job.steps.flatMap((step, index) => [
    index > 0 && el("span", { class: "to", "aria-label": "then" }, "──▶"),
    el(
      "span",
      { class: `step t-${word(step.token)}` },
      index === job.steps.length - 1 ? `${step.glyph} ${step.word}` : step.word,
    ),
  ]);
  const lasted = age();
  setAge(lasted, job.started_at, job.ended_at, job.paused_ms);
  const told = job.notified ? " · notified ✓" : "";
  const times =
    job.started_at !== null &&
    el("span", { class: "times" }, `started ${clock(job.started_at, now())} · `, lasted, told);
  return [...parts, times];
}

/** @param {HTMLLIElement} item @param {JobView} job */
function showRow(item, job) {
  const row = item.children[0];
  const [mark, name, , state, since, doing] = row.children;
  reglyph(mark, job);
  say(name, job.description);
  say(state, job.word);
  dress(state, { class: `word t-${word(job.token)}` });
  setAge(/** @type {HTMLElement} */ (since), job.started_at, job.ended_at, job.paused_ms);
  say(doing, job.needs_input ? job.question || job.last_line : job.ended_at === null ? job.last_line : "");
  dress(row, { class: `row job is-${job.state} depth-${Math.min(job.depth, 6)}${job.is_unseen ? " is-unseen" : ""}` });
}
