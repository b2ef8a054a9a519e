/**
 * Create elements from text only: nothing from outside is ever parsed as markup.
 *
 * @typedef {string | number | Node | null | undefined | false} Child
 * @typedef {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} Given
 */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Create an element. A function becomes a listener, false or null leaves an attribute out.
 *
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Given} [given]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  dress(made, given);
  fill(made, ...children);
  return made;
}

/**
 * Create an SVG element, likewise.
 *
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Given} [given]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function draw(tag, given = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  dress(made, given);
  fill(made, ...children);
  return made;
}

/** @param {Element} element @param {Given} given */
export function dress(element, given) {
  for (const [name, value] of Object.entries(given)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === null || value === undefined || value === false) element.removeAttribute(name);
    else {
      const text = value === true ? "" : String(value);
      if (element.getAttribute(name) !== text) element.setAttribute(name, text);
    }
  }
}

/** @param {Element} element @param {...Child} children */
export function fill(element, ...children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** Replace all children. @param {Element} element @param {...Child} children */
export function refill(element, ...children) {
  element.replaceChildren();
  fill(element, ...children);
}

/** Set a text, only if it differs. @param {Element} element @param {string | number} text */
export function say(element, text) {
  const wanted = String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

/** A state's glyph in its colour, like the word beside it. @param {{glyph: string, token: string}} look */
export function glyph(look) {
  return el("span", { class: `glyph t-${word(look.token)}`, "aria-hidden": "true" }, look.glyph);
}

/** Keep only characters that are valid in a class name. @param {string} text */
export function word(text) {
  return /^[a-z0-9_-]+$/i.test(text) ? text : "default";
}

/**
 * Update an existing glyph.
 *
 * @param {Element} element
 * @param {{glyph: string, token: string}} look
 */
export function reglyph(element, look) {
  say(element, look.glyph);
  dress(element, { class: `glyph t-${word(look.token)}` });
}
