/**
 * The place in the address: `#/graph/release-2/task/12`. Links and the back button work as usual.
 *
 * @typedef {import("./types.js").ViewName} ViewName
 * @typedef {import("./types.js").Chosen} Chosen
 * @typedef {{view: ViewName, list: string, chosen: Chosen | null}} Place
 */

/** @type {ViewName[]} */
export const VIEWS = ["board", "graph", "background", "timeline"];

/** @param {string} hash @returns {Place} */
export function parse(hash) {
  const parts = hash.replace(/^#\/?/, "").split("/").map(decoded);
  const view = VIEWS.find((name) => name === parts[0]) ?? "board";
  const kind = /** @type {Chosen["kind"] | undefined} */ (["task", "job", "person"].find((name) => name === parts[2]));
  return { view, list: parts[1] ?? "", chosen: kind && parts[3] ? { kind, id: parts[3] } : null };
}

/** @param {Place} place */
export function written({ view, list, chosen }) {
  const parts = [view, list, ...(chosen ? [chosen.kind, chosen.id] : [])];
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

/** @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}
