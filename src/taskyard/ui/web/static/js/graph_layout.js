/**
 * Positions of the graph's nodes, and the edges between them. Pure: levels and ranks come with the tasks.
 *
 * @typedef {import("./types.js").TaskView} TaskView
 * @typedef {{from: string, to: string, path: string, isCritical: boolean, isDone: boolean}} Edge
 * @typedef {{places: Map<string, {x: number, y: number}>, edges: Edge[], node: number, width: number, height: number}} Layout
 */

/** Node widths in pixels: as wide as all levels fit, within these bounds. */
const WIDTHS = { least: 148, most: 184 };
export const HEIGHT = 44;
const GAP = { x: 48, y: 16 };
const MARGIN = 24;

/** @param {TaskView[]} tasks @param {number} room pixels @returns {Layout} */
export function layout(tasks, room) {
  const levels = 1 + Math.max(0, ...tasks.map((task) => task.level));
  const fitting = Math.floor((room - 2 * MARGIN - (levels - 1) * GAP.x) / levels);
  const node = Math.min(Math.max(fitting, WIDTHS.least), WIDTHS.most);
  const places = new Map(tasks.map((task) => [task.id, at(task, node)]));
  const next = criticalSteps(tasks);
  const done = new Set(tasks.filter((task) => task.state === "done").map((task) => task.id));
  /** @type {Edge[]} */
  const edges = [];
  for (const task of tasks) {
    for (const blocker of task.blocked_by) {
      const [from, to] = [places.get(blocker), places.get(task.id)];
      if (!from || !to) continue;
      const isCritical = next.get(blocker) === task.id;
      edges.push({ from: blocker, to: task.id, path: curve(from, to, node), isCritical, isDone: done.has(blocker) });
    }
  }
  edges.sort((a, b) => Number(a.isCritical) - Number(b.isCritical)); // the critical ones on top
  const far = (/** @type {"x" | "y"} */ axis) => Math.max(0, ...[...places.values()].map((place) => place[axis]));
  return { places, edges, node, width: far("x") + node + MARGIN, height: far("y") + HEIGHT + MARGIN };
}

/** @param {TaskView} task @param {number} node */
function at({ level, rank }, node) {
  return { x: MARGIN + level * (node + GAP.x), y: MARGIN + rank * (HEIGHT + GAP.y) };
}

/** Successors on the critical path. @param {TaskView[]} tasks */
function criticalSteps(tasks) {
  const path = tasks
    .filter((task) => task.is_critical)
    .sort((a, b) => a.level - b.level || Number(a.id) - Number(b.id));
  return new Map(path.slice(1).map((task, index) => [path[index].id, task.id]));
}

/**
 * Where to scroll, so that as many as possible are visible.
 *
 * @param {[from: number, to: number][]} stretches to make visible
 * @param {number} room
 */
export function bestView(stretches, room) {
  const sights = stretches.map(([from]) => {
    const seen = stretches.filter(([start, end]) => start >= from && end <= from + room - 2 * MARGIN);
    return { count: seen.length, from, to: Math.max(...seen.map(([, end]) => end), from) };
  });
  const best = sights.sort((a, b) => b.count - a.count || b.from - a.from)[0]; // of equal ones, the furthest
  return best ? Math.max(0, (best.from + best.to - room) / 2) : 0;
}

/** @param {{x: number, y: number}} from @param {{x: number, y: number}} to @param {number} node */
function curve(from, to, node) {
  const [x1, y1, x2, y2] = [from.x + node, from.y + HEIGHT / 2, to.x - 5, to.y + HEIGHT / 2];
  const bend = Math.max(24, Math.min((x2 - x1) / 2, GAP.x));
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}
