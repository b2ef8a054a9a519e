/** A snapshot and what became of it. Pure: the one given stays as it was, rows that did not change are the same objects. */

/** @typedef {import("./types.js").Snapshot} Snapshot */

/** What has rows by id. */
const TABLES = /** @type {const} */ (["tasks", "jobs", "people"]);

/** What a snapshot is after a change. @param {Snapshot} before @param {Partial<Snapshot>} change @returns {Snapshot} */
export function merged(before, change) {
  const after = { ...before, ...change };
  for (const table of TABLES) {
    const changed = change[table];
    if (!changed) continue;
    /** @type {Record<string, any>} */
    const rows = { ...before[table] };
    for (const [id, row] of Object.entries(changed)) {
      if (row === null) delete rows[id];
      else rows[id] = row;
    }
    after[table] = rows;
  }
  return after;
}

/** A whole snapshot in which rows that show the same as before are the ones from before. @param {Snapshot} before @param {Snapshot} whole */
export function settled(before, whole) {
  const after = { ...whole };
  for (const table of TABLES) {
    /** @type {Record<string, any>} */
    const rows = {};
    for (const [id, row] of Object.entries(whole[table])) {
      const was = before[table][id];
      rows[id] = was && JSON.stringify(was) === JSON.stringify(row) ? was : row;
    }
    after[table] = rows;
  }
  return after;
}
