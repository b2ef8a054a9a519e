/**
 * The current snapshot, and the listeners of its changes.
 *
 * @typedef {import("./types.js").Snapshot} Snapshot
 * @typedef {{tasks: Set<string>, jobs: Set<string>, people: Set<string>}} Changed
 * @typedef {(now: Snapshot, changed: Changed, before: Snapshot) => void} Viewer
 */

import { merged, settled, table } from "./merge.js";

/** @type {Snapshot} */
export const NOTHING = {
  tasks: table(),
  task_order: [],
  jobs: table(),
  job_order: [],
  people: table(),
  people_order: [],
  list: "",
  counts: { ready: 0, doing: 0, blocked: 0, done: 0, total: 0 },
  pill: { text: "", hint: "", waits: "", flash: "", flash_token: "default", running: 0, line: "" },
  headline: "",
  is_panel_shown: false,
  attention: 0,
  problems: [],
  is_disconnected: false,
  lists: [],
};

export class Store {
  /** @type {Set<Viewer>} */
  #viewers = new Set();
  now = NOTHING;
  hasWord = false;

  /** @param {Viewer} viewer */
  view(viewer) {
    this.#viewers.add(viewer);
  }

  /** Clear everything for another list. */
  clear() {
    this.hasWord = false;
    this.#become({ ...NOTHING, lists: this.now.lists });
  }

  /** @param {string} event @param {any} data */
  take(event, data) {
    this.hasWord = true;
    if (event === "snapshot") this.#become(settled(this.now, { ...NOTHING, ...data }));
    else if (event === "change") this.#become(merged(this.now, data));
  }

  /** Notify listeners again: the display depends on more than the snapshot. */
  again() {
    this.#tell(this.now, { tasks: new Set(), jobs: new Set(), people: new Set() });
  }

  /** @param {Snapshot} after */
  #become(after) {
    const before = this.now;
    this.now = after;
    this.#tell(before, {
      tasks: differing(before.tasks, after.tasks),
      jobs: differing(before.jobs, after.jobs),
      people: differing(before.people, after.people),
    });
  }

  /** @param {Snapshot} before @param {Changed} changed */
  #tell(before, changed) {
    for (const viewer of this.#viewers) viewer(this.now, changed, before);
  }
}

/** The ids of rows added, removed or changed. @param {Record<string, any>} before @param {Record<string, any>} after */
function differing(before, after) {
  const found = new Set(Object.keys(after).filter((id) => after[id] !== before[id]));
  for (const id of Object.keys(before)) if (!(id in after)) found.add(id);
  return found;
}
