/**
 * Where the nodes of the graph stand, and the lines between them. Pure: levels and ranks come with the tasks.
 *
 * @typedef {import("./types.js").TaskView} TaskView
 * @typedef {{from: string, to: string, path: string, isCritical: boolean, isDone: boolean}} Edge
 * @typedef {{places: Map<string, {x: number, y: number}>, edges: Edge[], width: number, height: number}} Layout
 */

export const NODE = { width: 184, height: 44 };
const GAP = { x: 56, y: 16 };
const MARGIN = 24;

/** @param {TaskView[]} tasks @returns {Layout} */
export function layout(tasks) {
  const places = new Map(tasks.map((task) => [task.id, at(task)]));
  const next = criticalSteps(tasks);
  const done = new Set(tasks.filter((task) => task.state === "done").map((task) => task.id));
  /** @type {Edge[]} */
  const edges = [];
  for (const task of tasks) {
    for (const blocker of task.blocked_by) {
      const [from, to] = [places.get(blocker), places.get(task.id)];
      if (!from || !to) continue;
      const isCritical = next.get(blocker) === task.id;
      edges.push({ from: blocker, to: task.id, path: curve(from, to), isCritical, isDone: done.has(blocker) });
    }
  }
  edges.sort((a, b) => Number(a.isCritical) - Number(b.isCritical)); // the thick ones on top
  const far = (/** @type {"x" | "y"} */ axis) => Math.max(0, ...[...places.values()].map((place) => place[axis]));
  return { places, edges, width: far("x") + NODE.width + MARGIN, height: far("y") + NODE.height + MARGIN };
}

/** @param {TaskView} task */
function at({ level, rank }) {
  return { x: MARGIN + level * (NODE.width + GAP.x), y: MARGIN + rank * (NODE.height + GAP.y) };
}

/** Which task follows which on the longest way. @param {TaskView[]} tasks */
function criticalSteps(tasks) {
  const path = tasks.filter((task) => task.is_critical).sort((a, b) => a.level - b.level || Number(a.id) - Number(b.id));
  return new Map(path.slice(1).map((task, index) => [path[index].id, task.id]));
}

/** @param {{x: number, y: number}} from @param {{x: number, y: number}} to */
function curve(from, to) {
  const [x1, y1, x2, y2] = [from.x + NODE.width, from.y + NODE.height / 2, to.x - 5, to.y + NODE.height / 2];
  const bend = Math.max(24, Math.min((x2 - x1) / 2, GAP.x));
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}
