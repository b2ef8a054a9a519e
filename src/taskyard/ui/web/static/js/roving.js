/** Arrow keys move the focus to the nearest element in that direction; one element is in the tab order. */

/** @type {Record<string, [x: number, y: number]>} */
const WAYS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

/**
 * @param {HTMLElement} surface
 * @param {string} selector of the elements to move among
 */
export function rove(surface, selector) {
  surface.addEventListener("keydown", (event) => {
    const from = event.target instanceof Element ? event.target.closest(selector) : null;
    if (!from || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = goal(event.key, from, shownItems(surface, selector));
    if (!to) return;
    event.preventDefault();
    to.focus();
    to.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  surface.addEventListener("focusin", (event) => {
    const item = event.target instanceof Element ? event.target.closest(selector) : null;
    if (item) hold(surface, selector, item);
  });
}

/** Ensure that one element is in the tab order. @param {HTMLElement} surface @param {string} selector */
export function settle(surface, selector) {
  const held = surface.querySelector(`${selector}[tabindex="0"]`);
  if (held?.checkVisibility()) return;
  const first = shownItems(surface, selector)[0];
  if (first) hold(surface, selector, first);
}

/** @param {HTMLElement} surface @param {string} selector @param {Element} item */
function hold(surface, selector, item) {
  for (const other of surface.querySelectorAll(`${selector}[tabindex="0"]`)) {
    if (other !== item) other.setAttribute("tabindex", "-1");
  }
  item.setAttribute("tabindex", "0");
}

/** @param {HTMLElement} surface @param {string} selector @returns {HTMLElement[]} */
function shownItems(surface, selector) {
  const all = /** @type {HTMLElement[]} */ ([...surface.querySelectorAll(selector)]);
  return all.filter((item) => item.checkVisibility());
}

/** @param {string} key @param {Element} from @param {HTMLElement[]} items */
function goal(key, from, items) {
  if (key === "Home") return items[0];
  if (key === "End") return items.at(-1);
  const way = WAYS[key];
  if (!way) return undefined;
  const start = middle(from);
  let best = Infinity;
  /** @type {HTMLElement | undefined} */
  let found;
  for (const item of items) {
    if (item === from) continue;
    const distance = far(way, start, middle(item));
    if (distance < best) [best, found] = [distance, item];
  }
  return found;
}

/** The distance in a direction; sideways distance weighs more. @param {number[]} way @param {number[]} a @param {number[]} b */
function far([x, y], a, b) {
  const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
  const ahead = dx * x + dy * y;
  const aside = Math.abs(dx * y) + Math.abs(dy * x);
  return ahead <= 1 ? Infinity : ahead + aside * (x ? 2 : 8);
}

/** @param {Element} item */
function middle(item) {
  const box = item.getBoundingClientRect();
  return [box.left + box.width / 2, box.top + Math.min(box.height / 2, 12)];
}
