/** The board: four columns, one of them for blocked tasks. */

import { adding } from "./acts.js";
import { makeCard, showCard } from "./card.js";
import { dress, el, say } from "./dom.js";
import { taskTexts } from "./filter.js";
import { Rows, arrange } from "./rows.js";
import { rove, settle } from "./roving.js";

/** @typedef {import("./types.js").TaskView} TaskView */
/** @typedef {TaskView["state"]} State */

/** @type {State[]} */
const COLUMNS = ["ready", "doing", "blocked", "done"];

/** Cards a column shows at first, and how many more each time. */
const FIRST = { ready: 60, doing: 60, blocked: 60, done: 8 };
const MORE = 60;

class Column {
  /** @param {State} state @param {() => void} changed */
  constructor(state, changed) {
    this.state = state;
    this.most = FIRST[state];
    this.count = el("span", { class: "count" });
    this.list = el("ul", { class: "cards" });
    this.more = el("button", { class: "more", type: "button", click: () => (this.#grow(), changed()) });
    this.element = el(
      "section",
      { class: `column is-${state}`, "aria-labelledby": `column-${state}` },
      el("h2", { id: `column-${state}` }, state, this.count),
      this.list,
      this.more,
    );
    this.tab = el("button", { type: "button" }, state, el("span", { class: "count" }));
  }

  #grow() {
    this.most += MORE;
  }

  /** @param {TaskView[]} tasks @param {Rows<TaskView, HTMLLIElement>} cards */
  show(tasks, cards) {
    arrange(
      this.list,
      tasks.slice(0, this.most).map((task) => cards.node(task.id, task)),
    );
    say(this.count, tasks.length);
    say(this.tab.children[0], tasks.length);
    say(this.more, `${tasks.length - this.most} more`);
    dress(this.more, { hidden: tasks.length <= this.most });
  }
}

export class Board {
  /** @param {import("./page.js").Page} page */
  constructor(page) {
    this.page = page;
    /** @type {Rows<TaskView, HTMLLIElement>} */
    this.cards = new Rows((id) => makeCard(id, (one, byKey) => page.open({ kind: "task", id: one }, byKey)), showCard);
    const again = () => this.#show(page.store.now);
    this.columns = COLUMNS.map((state) => new Column(state, again));
    this.columns.forEach((column, index) => column.tab.addEventListener("click", () => this.#turn(index)));
    this.tabs = el(
      "div",
      { class: "tabs", role: "group", "aria-label": "Columns" },
      ...this.columns.map((one) => one.tab),
    );
    this.columns[0].element.append(adding(page));
    this.table = el("div", { class: "columns" }, ...this.columns.map((one) => one.element));
    this.empty = el("p", { class: "empty" });
    this.element = el("section", { class: "board", "aria-label": "Board" }, this.tabs, this.empty, this.table);
    rove(this.table, ".card");
    this.#lights();
    this.#turn(1);
    page.store.view((snapshot) => this.#show(snapshot));
    page.follow(() => this.#mark());
  }

  arrive() {
    this.#show(this.page.store.now);
  }

  /** On a narrow screen, show one column. @param {number} chosen */
  #turn(chosen) {
    this.columns.forEach((column, index) => {
      column.element.classList.toggle("is-turned", index === chosen);
      dress(column.tab, { "aria-pressed": String(index === chosen) });
    });
    settle(this.table, ".card");
  }

  /** @param {import("./types.js").Snapshot} snapshot */
  #show(snapshot) {
    if (this.page.place.view !== "board") return;
    const tasks = snapshot.task_order
      .map((id) => snapshot.tasks[id])
      .filter((task) => this.page.matches(taskTexts(task)));
    const focused = document.activeElement; // moving a card to another column loses the focus
    for (const column of this.columns)
      column.show(
        tasks.filter((task) => task.state === column.state),
        this.cards,
      );
    if (focused instanceof HTMLElement && focused.isConnected && focused !== document.activeElement) focused.focus();
    this.cards.keep((id) => id in snapshot.tasks);
    say(this.empty, this.page.store.hasWord ? sentence(snapshot, tasks.length) : "Listening…");
    dress(this.empty, { hidden: !this.empty.textContent });
    this.#mark();
    settle(this.table, ".card");
  }

  #mark() {
    const { chosen } = this.page.place;
    for (const card of this.table.querySelectorAll(".card[aria-current]")) card.removeAttribute("aria-current");
    if (chosen?.kind === "task")
      dress(this.cards.known(chosen.id)?.children[0] ?? this.table, { "aria-current": "true" });
    this.table.removeAttribute("aria-current");
  }

  /** Highlight the blockers and dependents of a card on hover or focus. */
  #lights() {
    const light = (/** @type {Event} */ event) => {
      const card = event.target instanceof Element ? event.target.closest(".card") : null;
      const task = card && this.page.store.now.tasks[card.getAttribute("data-id") ?? ""];
      for (const lit of this.table.querySelectorAll(".is-blocker, .is-waiting"))
        lit.classList.remove("is-blocker", "is-waiting");
      if (!task) return;
      for (const id of task.blocked_by) this.cards.known(id)?.children[0].classList.add("is-blocker");
      for (const id of task.blocks) this.cards.known(id)?.children[0].classList.add("is-waiting");
    };
    for (const name of ["mouseover", "mouseleave", "focusin", "focusout"]) this.table.addEventListener(name, light);
  }
}

/** The text for an empty board. @param {import("./types.js").Snapshot} snapshot @param {number} shown */
function sentence(snapshot, shown) {
  const { total } = snapshot.counts;
  if (!total) return "No tasks yet. `taskyard task add` makes the first one.";
  if (!shown) return "No task fits the filter.";
  return snapshot.is_panel_shown ? "" : total === 1 ? "The one task is done." : `All ${total} tasks are done.`;
}
