/**
 * Shares connections: all listeners of one list, or of one job's output, use the same stream.
 * A browser opens at most six connections to a server; when all streams are in use, further topics are polled.
 *
 * @typedef {{list: string} | {job: string, after: number}} Topic
 * @typedef {{
 *   tell: (event: string, data: any) => void,
 *   become: (state: import("./stream.js").State, heardAt: number, why: string) => void,
 * }} Listener
 */

import { address } from "./api.js";
import { merged } from "./merge.js";
import { Poll } from "./poll.js";
import { Stream } from "./stream.js";

/** Most streams at a time; two connections stay free for requests. */
export const MOST_STREAMS = 4;

/** One topic: its source, its listeners, its last data. */
class Channel {
  /** @type {Set<Listener>} */
  listeners = new Set();
  /** @type {import("./types.js").Snapshot | null} */
  snapshot = null;
  /** @type {[import("./stream.js").State, number, string]} */
  state = ["reconnecting", Date.now(), ""];
  /** @type {{close(): void, nudge(): void} | null} */
  source = null;
  isStreamed = false;

  /** @param {Topic} topic @param {string} token */
  constructor(topic, token) {
    this.topic = topic;
    this.token = token;
    this.offset = "job" in topic ? topic.after : 0;
  }

  /** @param {boolean} isStreamed */
  open(isStreamed) {
    this.source?.close();
    this.isStreamed = isStreamed;
    const wish = {
      address: () => (isStreamed ? this.#address("/api/stream") : this.#pollAddress()),
      token: this.token,
      tell: this.#take.bind(this),
      become: this.#become.bind(this),
    };
    this.source = isStreamed ? new Stream(wish) : new Poll(wish, "job" in this.topic ? "output" : "snapshot");
  }

  #pollAddress() {
    if ("list" in this.topic) return this.#address("/api/snapshot.json");
    return address(`/api/jobs/${encodeURIComponent(this.topic.job)}/output.json`, { after: this.offset });
  }

  /** @param {string} path */
  #address(path) {
    const { topic } = this;
    return address(path, "list" in topic ? { list: topic.list } : { job: topic.job, after: this.offset });
  }

  /** @param {import("./stream.js").Event} told */
  #take({ event, data }) {
    if (event === "snapshot") this.snapshot = data;
    else if (event === "change") {
      if (!this.snapshot) throw new Error("a change before any snapshot");
      this.snapshot = merged(this.snapshot, data);
    } else if (event === "output") this.offset = data.end;
    else if (event === "error") throw new Error(String(data.error?.message));
    for (const listener of this.listeners) listener.tell(event, data);
    if (event === "output" && data.is_over) this.source?.close(); // no more output will follow
  }

  /** @param {import("./stream.js").State} state @param {number} heardAt @param {string} why */
  #become(state, heardAt, why) {
    const isNew = state !== this.state[0] || why !== this.state[2];
    this.state = [state, heardAt, why];
    if (isNew) for (const listener of this.listeners) listener.become(...this.state);
  }
}

export class Hub {
  /** @type {Map<string, Channel>} */
  #channels = new Map();

  /**
   * Subscribe to a topic; what is known already is delivered at once.
   *
   * @param {Topic} topic
   * @param {string} token
   * @param {Listener} listener
   * @returns {() => void} unsubscribes
   */
  listen(topic, token, listener) {
    const key = JSON.stringify([token, "list" in topic ? "list" : "job", "list" in topic ? topic.list : topic.job]);
    let channel = this.#channels.get(key);
    if (!channel) {
      channel = new Channel(topic, token);
      this.#channels.set(key, channel);
      channel.listeners.add(listener);
      channel.open(this.#streams() < MOST_STREAMS);
    } else {
      channel.listeners.add(listener);
      if (channel.state[0] === "refused") channel.open(channel.isStreamed);
      if (channel.snapshot) listener.tell("snapshot", channel.snapshot);
      listener.become(...channel.state);
    }
    return () => this.#leave(key, listener);
  }

  /** The user returned to the page: reconnect broken streams now. */
  nudge() {
    for (const channel of this.#channels.values()) channel.source?.nudge();
  }

  /** @param {string} key @param {Listener} listener */
  #leave(key, listener) {
    const channel = this.#channels.get(key);
    if (!channel?.listeners.delete(listener) || channel.listeners.size) return;
    channel.source?.close();
    this.#channels.delete(key);
    const waiting = [...this.#channels.values()].find((other) => !other.isStreamed);
    if (waiting && this.#streams() < MOST_STREAMS) waiting.open(true);
  }

  #streams() {
    return [...this.#channels.values()].filter((channel) => channel.isStreamed).length;
  }
}
