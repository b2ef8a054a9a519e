/** Rows by id: nodes are reused, so that focus, scroll position and selection are kept. */

/**
 * Make `parent` contain exactly these nodes in this order, with as few moves as possible.
 *
 * @param {Element} parent
 * @param {Element[]} nodes
 */
export function arrange(parent, nodes) {
  const focused = document.activeElement;
  /** @type {Element | null} */
  let next = null;
  for (let place = nodes.length - 1; place >= 0; place -= 1) {
    const node = nodes[place];
    if (node.parentNode !== parent || node.nextSibling !== next) parent.insertBefore(node, next);
    next = node;
  }
  while (parent.firstChild && parent.firstChild !== next) parent.firstChild.remove();
  if (focused instanceof HTMLElement && focused !== document.activeElement && focused.isConnected) {
    focused.focus({ preventScroll: true });
  }
}

/**
 * Nodes by id, created on first use, updated when their row changed.
 *
 * @template Row
 * @template {Element} N
 */
export class Rows {
  /** @type {Map<string, N>} */
  #nodes = new Map();
  /** @type {Map<string, Row>} */
  #shown = new Map();

  /**
   * @param {(id: string) => N} make
   * @param {(node: N, row: Row) => void} show
   */
  constructor(make, show) {
    this.make = make;
    this.show = show;
  }

  /** The up-to-date node of a row; an unchanged one is not touched. @param {string} id @param {Row} row */
  node(id, row) {
    let node = this.#nodes.get(id);
    if (!node) {
      node = this.make(id);
      this.#nodes.set(id, node);
    }
    if (this.#shown.get(id) !== row) {
      this.#shown.set(id, row);
      this.show(node, row);
    }
    return node;
  }

  /** @param {string} id */
  known(id) {
    return this.#nodes.get(id);
  }

  /** Remove rows that are gone. @param {(id: string) => boolean} isThere */
  keep(isThere) {
    for (const [id, node] of this.#nodes) {
      if (isThere(id)) continue;
      node.remove();
      this.#nodes.delete(id);
      this.#shown.delete(id);
    }
  }

  /** Update all nodes at their next use: something other than the rows changed. */
  forget() {
    this.#shown.clear();
  }
}
