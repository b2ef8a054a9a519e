/** The dependency graph: drawn live, navigated with arrow keys along its edges. */

import { draw, dress, el, glyph, reglyph, say } from "./dom.js";
import { taskTexts } from "./filter.js";
import { HEIGHT, bestView, layout } from "./graph_layout.js";
import { Rows, arrange } from "./rows.js";

/** @typedef {import("./types.js").TaskView} TaskView */

export class Graph {
  isFollowing = true;
  #width = 0;

  /** @param {import("./page.js").Page} page */
  constructor(page) {
    this.page = page;
    /** @type {Rows<TaskView, SVGGElement>} */
    this.nodes = new Rows(
      (id) => this.#make(id),
      (node, task) => this.#showNode(node, task),
    );
    /** @type {Rows<import("./graph_layout.js").Edge, SVGPathElement>} */
    this.lines = new Rows(() => draw("path", {}), showEdge);
    this.edges = draw("g", { class: "edges" });
    this.tasks = draw("g", { class: "nodes" });
    this.svg = draw("svg", { role: "group", "aria-label": "What waits for what" }, arrows(), this.edges, this.tasks);
    this.follow = el(
      "button",
      { type: "button", class: "toggle", "aria-pressed": "true", click: () => this.#follow(!this.isFollowing) },
      "follow",
    );
    this.legend = el("p", { class: "legend" }, "The thick line is the longest way still to go.");
    this.scroll = el("div", { class: "scroll" }, this.svg);
    this.empty = el("p", { class: "empty" }, "No tasks yet.");
    this.element = el(
      "section",
      { class: "graph", "aria-label": "Graph" },
      el("div", { class: "strip" }, this.follow, this.legend),
      this.empty,
      this.scroll,
    );
    for (const name of ["wheel", "pointerdown", "touchstart"])
      this.scroll.addEventListener(name, () => this.#follow(false), { passive: true });
    this.svg.addEventListener("keydown", (event) => this.#walk(event));
    page.store.view((snapshot) => this.#show(snapshot));
    page.follow((place, before) => {
      if (place.list !== before.list) this.#follow(true); // an earlier scroll position was of another list
      this.#mark();
    });
    new ResizeObserver(() => this.#show(page.store.now)).observe(this.element);
  }

  arrive() {
    this.#show(this.page.store.now);
    if (this.isFollowing) this.#bringDoing();
  }

  /** @param {boolean} isFollowing */
  #follow(isFollowing) {
    this.isFollowing = isFollowing;
    dress(this.follow, { "aria-pressed": String(isFollowing) });
    if (isFollowing) this.#bringDoing();
  }

  /** @param {string} id */
  #make(id) {
    const open = (/** @type {any} */ event) => this.page.open({ kind: "task", id }, event.type === "keydown");
    return draw(
      "g",
      { class: "node", tabindex: -1, role: "button", "data-id": id, click: open },
      draw("rect", { height: HEIGHT, rx: 6 }),
      draw(
        "foreignObject",
        { height: HEIGHT },
        el(
          "div",
          { class: "text" },
          glyph({ glyph: "", token: "default" }),
          el("span", { class: "id" }, id),
          el("span", { class: "owner" }),
          el("span", { class: "subject" }),
          el("span", { class: "unseen" }),
        ),
      ),
    );
  }

  /** @param {SVGGElement} node @param {TaskView} task */
  #showNode(node, task) {
    const [box, frame] = node.children;
    const [text] = frame.children;
    const [mark, , owner, subject, words] = text.children;
    dress(box, { width: this.#width });
    dress(frame, { width: this.#width });
    dress(text, { title: task.subject });
    reglyph(mark, task);
    say(owner, task.state === "doing" && task.owner ? `@${task.owner}` : "");
    say(subject, task.subject);
    say(words, [task.word, task.note].filter(Boolean).join(", "));
    dress(node, { class: `node is-${task.state}${task.is_critical ? " is-critical" : ""}` });
  }

  /** @param {import("./types.js").Snapshot} snapshot */
  #show(snapshot) {
    if (this.page.place.view !== "graph") return;
    const tasks = snapshot.task_order.map((id) => snapshot.tasks[id]);
    const drawn = layout(tasks, this.scroll.clientWidth);
    if (drawn.node !== this.#width) this.nodes.forget();
    this.#width = drawn.node;
    dress(this.empty, { hidden: tasks.length > 0 });
    dress(this.legend, { hidden: !tasks.some((task) => task.is_critical) });
    dress(this.svg, { width: drawn.width, height: drawn.height, viewBox: `0 0 ${drawn.width} ${drawn.height}` });
    const focused = document.activeElement;
    arrange(
      this.edges,
      drawn.edges.map((edge) => this.#line(edge)),
    );
    this.lines.keep((key) => drawn.edges.some((edge) => `${edge.from}>${edge.to}` === key));
    const inOrder = [...tasks].sort((a, b) => a.level - b.level || a.rank - b.rank);
    arrange(
      this.tasks,
      inOrder.map((task) => this.nodes.node(task.id, task)),
    );
    this.nodes.keep((id) => id in snapshot.tasks);
    for (const task of tasks) {
      const place = drawn.places.get(task.id);
      const node = this.nodes.known(task.id);
      if (!place || !node) continue;
      dress(node, { transform: `translate(${place.x} ${place.y})` });
      node.classList.toggle("is-other", !this.page.matches(taskTexts(task)));
    }
    if (focused instanceof SVGElement && focused.isConnected && focused !== document.activeElement) focused.focus();
    this.#mark();
    if (this.isFollowing) this.#bringDoing();
  }

  /** @param {import("./graph_layout.js").Edge} edge */
  #line(edge) {
    const key = `${edge.from}>${edge.to}`;
    const line = this.lines.known(key) ?? this.lines.node(key, edge);
    showEdge(line, edge);
    return line;
  }

  #mark() {
    const { chosen } = this.page.place;
    for (const node of this.tasks.querySelectorAll("[aria-current]")) node.removeAttribute("aria-current");
    const node = chosen?.kind === "task" ? this.nodes.known(chosen.id) : null;
    if (node) dress(node, { "aria-current": "true" });
    const held = this.tasks.querySelector('[tabindex="0"]') ?? this.tasks.firstElementChild;
    held?.setAttribute("tabindex", "0");
  }

  /** Scroll so that as many tasks in progress as possible are visible. */
  #bringDoing() {
    const doing = [...this.tasks.querySelectorAll(".is-doing")].map((node) => node.getBoundingClientRect());
    if (!doing.length) return;
    const { scroll } = this;
    const view = scroll.getBoundingClientRect();
    const [x, y] = [scroll.scrollLeft - view.left, scroll.scrollTop - view.top];
    scroll.scrollTo({
      left: bestView(
        doing.map((box) => [box.left + x, box.right + x]),
        view.width,
      ),
      top: bestView(
        doing.map((box) => [box.top + y, box.bottom + y]),
        view.height,
      ),
    });
  }

  /** Left and right move along the edges, up and down within a level. @param {KeyboardEvent} event */
  #walk(event) {
    const node = event.target instanceof Element ? event.target.closest(".node") : null;
    const task = node && this.page.store.now.tasks[node.getAttribute("data-id") ?? ""];
    if (!task || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      return this.page.open({ kind: "task", id: task.id }, true);
    }
    const goal = this.#goal(event.key, task);
    if (goal === undefined) return;
    event.preventDefault();
    const to = goal && this.nodes.known(goal);
    if (!to) return;
    node.setAttribute("tabindex", "-1");
    to.setAttribute("tabindex", "0");
    to.focus();
    to.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.isFollowing = false;
    dress(this.follow, { "aria-pressed": "false" });
  }

  /** The task a key leads to: null none, undefined no such key. @param {string} key @param {TaskView} task */
  #goal(key, task) {
    const { tasks } = this.page.store.now;
    const near = (/** @type {TaskView[]} */ some) =>
      some.sort((a, b) => Math.abs(a.rank - task.rank) - Math.abs(b.rank - task.rank))[0]?.id ?? null;
    const all = Object.values(tasks);
    if (key === "ArrowRight") return near(all.filter((other) => other.blocked_by.includes(task.id)));
    if (key === "ArrowLeft") return near(task.blocked_by.map((id) => tasks[id]).filter(Boolean));
    if (key === "ArrowUp") return near(all.filter((other) => other.level === task.level && other.rank < task.rank));
    if (key === "ArrowDown") return near(all.filter((other) => other.level === task.level && other.rank > task.rank));
    return undefined;
  }
}

/** @param {SVGPathElement} line @param {import("./graph_layout.js").Edge} edge */
function showEdge(line, edge) {
  const state = edge.isCritical ? "is-critical" : edge.isDone ? "is-done" : "";
  dress(line, {
    d: edge.path,
    class: `edge ${state}`,
    "marker-end": `url(#arrow-${edge.isCritical ? "thick" : edge.isDone ? "done" : "thin"})`,
  });
}

function arrows() {
  const arrow = (/** @type {string} */ id) =>
    draw(
      "marker",
      {
        id: `arrow-${id}`,
        class: `arrow is-${id}`,
        viewBox: "0 0 8 8",
        refX: 6,
        refY: 4,
        markerWidth: 8,
        markerHeight: 8,
        markerUnits: "userSpaceOnUse",
        orient: "auto",
      },
      draw("path", { d: "M0 0L8 4L0 8z" }),
    );
  return draw("defs", {}, arrow("thin"), arrow("done"), arrow("thick"));
}
