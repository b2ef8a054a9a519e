/** A snapshot and what became of it. Pure: the one given stays as it was, rows that did not change are the same objects. */

/** @typedef {import("./types.js").Snapshot} Snapshot */

/** What has rows by id. */
const TABLES = /** @type {const} */ (["tasks", "jobs", "people"]);

/**
 * Rows by id, without inherited names: an agent may be called `constructor` or `__proto__`.
 * @param {Record<string, any>} [rows] @returns {Record<string, any>}
 */
export function table(rows) {
  return Object.assign(Object.create(null), rows);
}

/** What a snapshot is after a change. @param {Snapshot} before @param {Partial<Snapshot>} change @returns {Snapshot} */
export function merged(before, change) {
  const after = { ...before, ...change };
  for (const name of TABLES) {
    const changed = change[name];
    if (!changed) continue;
    const rows = table(before[name]);
    for (const [id, row] of Object.entries(changed)) {
      if (row === null) delete rows[id];
      else rows[id] = row;
    }
    after[name] = rows;
  }
  return after;
}

/** A whole snapshot in which rows that show the same as before are the ones from before. @param {Snapshot} before @param {Snapshot} whole */
export function settled(before, whole) {
  const after = { ...whole };
  for (const name of TABLES) {
    const rows = table();
    for (const [id, row] of Object.entries(whole[name])) {
      const was = before[name][id];
      rows[id] = was && JSON.stringify(was) === JSON.stringify(row) ? was : row;
    }
    after[name] = rows;
  }
  return after;
}
