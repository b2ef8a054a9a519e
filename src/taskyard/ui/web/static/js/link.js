/**
 * A tab's connection to the worker that all tabs share; without a shared worker the tab has its own hub.
 *
 * @typedef {import("./hub.js").Topic} Topic
 * @typedef {import("./hub.js").Listener} Listener
 */

import { Hub } from "./hub.js";

const PING_MS = 10_000;

export class Link {
  #next = 0;
  /** @type {Map<number, {topic: Topic, listener: Listener, stop: () => void}>} */
  #wishes = new Map();
  /** @type {MessagePort | null} */
  #port = null;
  /** @type {Hub | null} */
  #hub = null;

  /** @param {string} token */
  constructor(token) {
    this.token = token;
    this.#port = sharedPort();
    if (this.#port) this.#begin(this.#port);
    else this.#hub = new Hub();
    addEventListener("online", () => this.#nudge());
    document.addEventListener("visibilitychange", () => !document.hidden && this.#nudge());
  }

  /** Subscribe to a topic, until the returned function is called. @param {Topic} topic @param {Listener} listener */
  listen(topic, listener) {
    const key = this.#next;
    this.#next += 1;
    const stop = this.#hub ? this.#hub.listen(topic, this.token, listener) : () => this.#post({ type: "stop", key });
    this.#wishes.set(key, { topic, listener, stop });
    this.#post({ type: "listen", key, topic, token: this.token });
    return () => {
      if (this.#wishes.delete(key)) stop();
    };
  }

  /** @param {MessagePort} port */
  #begin(port) {
    port.onmessage = ({ data }) => {
      if (data.type === "unknown") return this.#again();
      const listener = this.#wishes.get(data.key)?.listener;
      if (data.type === "told") listener?.tell(data.event, data.data);
      else if (data.type === "state") listener?.become(data.state, data.heardAt, data.why);
      return undefined;
    };
    setInterval(() => this.#post({ type: "ping" }), PING_MS);
    addEventListener("pagehide", () => this.#post({ type: "bye" }));
    addEventListener("pageshow", (event) => event.persisted && this.#again());
  }

  /** The worker dropped this tab while it was suspended: subscribe to everything again. */
  #again() {
    for (const [key, { topic }] of this.#wishes) this.#post({ type: "listen", key, topic, token: this.token });
  }

  #nudge() {
    this.#hub?.nudge();
    this.#post({ type: "nudge" });
  }

  /** @param {object} message */
  #post(message) {
    this.#port?.postMessage(message);
  }
}

/** @returns {MessagePort | null} */
function sharedPort() {
  try {
    const worker = new SharedWorker("/static/js/worker.js", { type: "module", name: "taskyard" });
    worker.port.start();
    return worker.port;
  } catch {
    return null;
  }
}
