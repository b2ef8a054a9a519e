/**
 * Parses server-sent events from text chunks, wherever they are split.
 *
 * @typedef {{event: string, id: string, data: string}} Told
 */

export class Parser {
  #rest = "";
  #event = "";
  #id = "";
  /** @type {string[]} */
  #data = [];

  /** The events that this chunk completes. @param {string} piece @returns {Told[]} */
  feed(piece) {
    /** @type {Told[]} */
    const found = [];
    const text = this.#rest + piece;
    const whole = text.endsWith("\r") ? text.length - 1 : text.length; // its \n may come with the next chunk
    const lines = text.slice(0, whole).split(/\r\n|\n|\r/);
    this.#rest = (lines.pop() ?? "") + text.slice(whole);
    for (const line of lines) {
      const told = this.#line(line);
      if (told) found.push(told);
    }
    return found;
  }

  /** @param {string} line @returns {Told | null} */
  #line(line) {
    if (line === "") return this.#end();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#event = value;
    else if (field === "data") this.#data.push(value);
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    return null;
  }

  /** @returns {Told | null} */
  #end() {
    const told = { event: this.#event || "message", id: this.#id, data: this.#data.join("\n") };
    const isEmpty = this.#data.length === 0;
    this.#event = "";
    this.#data = [];
    return isEmpty ? null : told;
  }
}
