/** Applies changes to a snapshot. Pure: the input is not modified, unchanged rows stay the same objects. */

/** @typedef {import("./types.js").Snapshot} Snapshot */

/** Parts of a snapshot with rows by id. */
const TABLES = /** @type {const} */ (["tasks", "jobs", "people"]);

/**
 * Rows by id, without inherited names: an agent may be called `constructor` or `__proto__`.
 * @param {Record<string, any>} [rows] @returns {Record<string, any>}
 */
export function table(rows) {
  return Object.assign(Object.create(null), rows);
}

/** Apply a change to a snapshot. @param {Snapshot} before @param {Partial<Snapshot>} change @returns {Snapshot} */
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

/** Return a whole snapshot that reuses the row objects of `before` where they are equal. @param {Snapshot} before @param {Snapshot} whole */
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
