/** The sidebar: agents and their activity, background jobs, and what this page may do. */

import { age, setAge } from "./ages.js";
import { dress, el, glyph, reglyph, say } from "./dom.js";
import { jobTexts } from "./filter.js";
import { Rows, arrange } from "./rows.js";
import { rove, settle } from "./roving.js";

/** Most jobs shown here; the background view shows all. */
const MOST_JOBS = 12;

/** The colours of team members; other values are ignored. */
const TEAM_COLOURS = new Set(["red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan"]);

export class Side {
  /** @param {import("./page.js").Page} page */
  constructor(page) {
    this.page = page;
    /** @type {Rows<import("./types.js").Person, HTMLLIElement>} */
    this.people = new Rows((name) => this.#row("person", name), showPerson);
    /** @type {Rows<import("./types.js").JobView, HTMLLIElement>} */
    this.jobs = new Rows((id) => this.#row("job", id), showJob);
    this.now = el("ul", { class: "rows" });
    this.background = el("ul", { class: "rows" });
    this.nobody = el("p", { class: "none" }, "No agent is at work.");
    this.nothing = el("p", { class: "none" }, "Nothing runs.");
    this.running = el("span", {});
    this.waits = el("span", { class: "t-warn" });
    this.pill = el("span", { class: "pill" }, this.running, " ", this.waits);
    this.more = el("a", { class: "more", href: "#" });
    this.headline = el("span", { class: "headline" });
    this.summary = el("summary", {}, this.headline);
    this.note = el("p", { class: "note" });
    this.element = el(
      "details",
      { class: "side" },
      this.summary,
      el("section", { "aria-labelledby": "now" }, el("h2", { id: "now" }, "Now"), this.now, this.nobody),
      el(
        "section",
        { "aria-labelledby": "background" },
        el("h2", { id: "background" }, "Background", this.pill),
        this.background,
        this.nothing,
        this.more,
      ),
      el("footer", {}, this.note),
    );
    this.element.open = true;
    rove(this.element, ".row");
    page.store.view((snapshot) => this.#show(snapshot));
    this.#fold(matchMedia("(max-width: 760px)"));
  }

  /** On a narrow screen it is one line, which can be opened. @param {MediaQueryList} narrow */
  #fold(narrow) {
    const set = () => {
      this.element.open = !narrow.matches;
    };
    narrow.addEventListener("change", set);
    set();
  }

  /** @param {"person" | "job"} kind @param {string} id */
  #row(kind, id) {
    const open = () =>
      kind === "job" ? this.page.go({ view: "background", chosen: { kind, id } }) : this.page.choose({ kind, id });
    const row = el(
      "button",
      { class: "row", type: "button", tabindex: -1, click: open },
      glyph({ glyph: "", token: "default" }),
      el("span", { class: "name" }),
      el("span", { class: "word unseen" }),
      age(),
      el("span", { class: "doing" }),
    );
    return el("li", {}, row);
  }

  /** @param {import("./types.js").Snapshot} snapshot */
  #show(snapshot) {
    const { matches } = this.page;
    arrange(
      this.now,
      snapshot.people_order.map((name) => this.people.node(name, snapshot.people[name])),
    );
    this.people.keep((name) => name in snapshot.people);
    const jobs = snapshot.job_order.filter((id) => matches(jobTexts(snapshot.jobs[id])));
    arrange(
      this.background,
      jobs.slice(0, MOST_JOBS).map((id) => this.jobs.node(id, snapshot.jobs[id])),
    );
    this.jobs.keep((id) => id in snapshot.jobs);
    dress(this.nobody, { hidden: snapshot.people_order.length > 0 });
    dress(this.nothing, { hidden: jobs.length > 0 });
    dress(this.more, { hidden: jobs.length <= MOST_JOBS, href: `#/background/${encodeURIComponent(snapshot.list)}` });
    say(this.more, `${jobs.length - MOST_JOBS} more`);
    say(this.running, snapshot.pill.text);
    say(this.waits, snapshot.pill.waits);
    say(this.headline, [snapshot.headline, snapshot.pill.line].filter(Boolean).join(" · ") || "No agent is at work.");
    say(this.note, this.page.about.allow_actions ? "" : "Read-only. taskyard web --allow-actions also acts.");
    settle(this.element, ".row");
  }
}

/** @param {HTMLLIElement} item @param {import("./types.js").Person} person */
function showPerson(item, person) {
  const [mark, name, word, since, doing] = item.children[0].children;
  reglyph(mark, person);
  say(name, person.name);
  dress(name, { class: TEAM_COLOURS.has(person.colour ?? "") ? `name is-team-${person.colour}` : "name" });
  say(word, person.state);
  setAge(/** @type {HTMLElement} */ (since), person.since);
  say(doing, person.doing || person.state);
  dress(item.children[0], { class: `row is-${person.state}` });
}

/** @param {HTMLLIElement} item @param {import("./types.js").JobView} job */
function showJob(item, job) {
  const [mark, name, word, since, doing] = item.children[0].children;
  const isOver = job.ended_at !== null;
  reglyph(mark, job);
  say(name, job.description);
  say(word, job.word);
  setAge(/** @type {HTMLElement} */ (since), job.started_at, job.ended_at, job.paused_ms);
  say(doing, isOver ? "" : job.question || job.last_line || job.word);
  dress(item.children[0], { class: `row job is-${job.state}` });
}
