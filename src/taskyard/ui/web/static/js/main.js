/** The entry point: assembles the page and keeps it up to date. */

import { setClock, startAges } from "./ages.js";
import { announceChanges } from "./announce.js";
import { Background } from "./background.js";
import { Board } from "./board.js";
import { dress, el, refill } from "./dom.js";
import { Filter } from "./filter_bar.js";
import { Graph } from "./graph.js";
import { Header } from "./header.js";
import { helpDialog, listenToKeys } from "./keys.js";
import { noticeSwitches, notifyOf } from "./notify.js";
import { Page } from "./page.js";
import { Panel } from "./panel.js";
import { Side } from "./side.js";
import { Timeline } from "./timeline.js";
import { askForToken, takeToken } from "./token.js";

/** @typedef {import("./types.js").ViewName} ViewName */

const app = /** @type {HTMLElement} */ (document.getElementById("app"));

/** Start with a token that the server accepts. */
async function begin() {
  const token = takeToken();
  addEventListener("hashchange", () => /^#token=/.test(location.hash) && location.reload());
  if (!token) return askForToken(app, "");
  const page = new Page(token);
  for (;;) {
    try {
      page.about = await page.api.get("/api/about.json");
      break;
    } catch (error) {
      const { status, message } = /** @type {import("./api.js").Refusal} */ (error);
      if (status === 401 || status === 403) return askForToken(app, message);
      refill(app, el("p", { class: "empty" }, message));
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  }
  setClock(page.about.now);
  if (!page.place.list) page.begin(page.about.list);
  return build(page);
}

/** @param {Page} page */
function build(page) {
  const header = new Header(page);
  const views = {
    board: new Board(page),
    graph: new Graph(page),
    background: new Background(page),
    timeline: new Timeline(page),
  };
  const filter = new Filter(page);
  const problems = el("ul", { class: "problems" });
  const main = el(
    "main",
    { id: "main", tabindex: -1 },
    filter.element,
    problems,
    ...Object.values(views).map((view) => view.element),
  );
  const help = keys(page, filter, main);
  const side = new Side(page);
  side.element
    .querySelector("footer")
    ?.append(
      el("button", { type: "button", class: "hint", click: () => filter.open() }, el("kbd", {}, "/"), "filter"),
      el("button", { type: "button", class: "hint", click: () => help.showModal() }, el("kbd", {}, "?"), "keys"),
    );
  const skip = el("button", { class: "skip", type: "button", click: () => main.focus() }, "Skip to the view");
  refill(app, skip, header.element, side.element, main, new Panel(page).element, help);
  page.store.view((snapshot) => {
    dress(problems, { hidden: snapshot.problems.length === 0 });
    if ([...problems.children].map((one) => one.textContent).join() !== snapshot.problems.join()) {
      refill(problems, ...snapshot.problems.map((problem) => el("li", {}, problem)));
    }
  });
  page.store.view(announceChanges);
  page.store.view(notifyOf);
  stay(page, header, views);
  startAges();
}

/**
 * Apply the address: show its view and subscribe to its list.
 *
 * @param {Page} page
 * @param {Header} header
 * @param {Record<ViewName, {element: HTMLElement, arrive(): void, clear?(): void}>} views
 */
function stay(page, header, views) {
  let stop = () => {};
  const show = () => {
    for (const [name, view] of Object.entries(views)) dress(view.element, { hidden: name !== page.place.view });
    views[page.place.view].arrive();
  };
  const listen = () => {
    stop();
    const { list } = page.place;
    views.timeline.clear?.();
    page.store.clear();
    stop = page.link.listen(
      { list },
      {
        tell: (event, data) => page.place.list === list && page.store.take(event, data),
        become: (state, heardAt, why) => {
          header.become(state, heardAt, why);
          if (state === "refused") askForToken(app, why);
        },
      },
    );
  };
  page.follow((place, before) => {
    if (place.list !== before.list) listen();
    if (place.view !== before.view || place.list !== before.list) show();
  });
  listen();
  show();
}

/** @param {Page} page @param {Filter} filter @param {HTMLElement} main */
function keys(page, filter, main) {
  const go = (/** @type {ViewName} */ view) => () => page.go({ view, chosen: null });
  const table = [
    { keys: ["b"], shown: "b", says: "Board", does: go("board") },
    { keys: ["g"], shown: "g", says: "Graph", does: go("graph") },
    { keys: ["o"], shown: "o", says: "Background and output", does: go("background") },
    { keys: ["t"], shown: "t", says: "Timeline", does: go("timeline") },
    { keys: ["/"], shown: "/", says: "Filter; ! before a text turns it round", does: () => filter.open() },
    { keys: ["?"], shown: "?", says: "These keys", does: () => help.showModal() },
  ];
  /** @type {[string, string][]} */
  const more = [
    ["↑ ↓ ← →", "To the next card, row, node or bar"],
    ["enter", "Open"],
    ["esc", "One step back"],
  ];
  const help = helpDialog(table, more, noticeSwitches());
  listenToKeys(table, () => {
    if (help.open) return help.close();
    if (filter.close()) return main.focus();
    if (page.place.chosen) return page.back();
    return main.focus();
  });
  return help;
}

void begin();
