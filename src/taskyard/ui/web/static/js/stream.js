/**
 * One event stream that reconnects by itself: with the last event id, with growing delays (backoff),
 * and also when the connection only seems to be open.
 *
 * @typedef {"live" | "reconnecting" | "refused"} State
 * @typedef {{event: string, id: string, data: any}} Event
 * @typedef {{
 *   address: (lastId: string) => string, token: string,
 *   tell: (event: Event) => void, become: (state: State, heardAt: number, why: string) => void,
 * }} Wish
 */

import { refusal } from "./api.js";
import { Parser } from "./sse.js";

/** Without data for this many milliseconds the connection is considered lost. Heartbeats come every 15 s. */
export const SILENCE_MS = 40_000;

/** The first and the longest delay before a reconnect, in milliseconds. */
const FIRST_MS = 250;
const LONGEST_MS = 15_000;

export class Stream {
  #lastId = "";
  #heardAt = Date.now();
  #tries = 0;
  #isOpen = true;
  #abort = new AbortController();
  #hurry = () => {};

  /** @param {Wish} wish */
  constructor(wish) {
    this.wish = wish;
    void this.#run();
  }

  /** Reconnect now. */
  nudge() {
    this.#hurry();
  }

  close() {
    this.#isOpen = false;
    this.#abort.abort();
    this.#hurry();
  }

  async #run() {
    while (this.#isOpen) {
      let why = "";
      try {
        await this.#once();
      } catch (error) {
        why = error instanceof Error ? error.message : "";
        if (/** @type {any} */ (error)?.status === 401 || /** @type {any} */ (error)?.status === 403) {
          if (this.#isOpen) this.wish.become("refused", this.#heardAt, why);
          return;
        }
      }
      if (!this.#isOpen) return;
      this.wish.become("reconnecting", this.#heardAt, why);
      await this.#pause();
    }
  }

  /** Read events until the connection breaks. */
  async #once() {
    this.#abort = new AbortController();
    /** @type {Record<string, string>} */
    const headers = { Authorization: `Bearer ${this.wish.token}`, Accept: "text/event-stream" };
    if (this.#lastId) headers["Last-Event-ID"] = this.#lastId;
    let watch = this.#watched();
    try {
      const answer = await fetch(this.wish.address(this.#lastId), {
        headers,
        signal: this.#abort.signal,
        cache: "no-store",
        credentials: "omit",
      });
      if (!answer.ok || !answer.body) throw await refusal(answer);
      this.#heard();
      const parser = new Parser();
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(watch);
        watch = this.#watched();
        this.#heard();
        for (const told of parser.feed(value)) this.#take(told);
      }
    } finally {
      clearTimeout(watch);
    }
  }

  #watched() {
    const abort = this.#abort;
    return setTimeout(() => abort.abort(), SILENCE_MS);
  }

  #heard() {
    this.#heardAt = Date.now();
    this.wish.become("live", this.#heardAt, "");
  }

  /** @param {import("./sse.js").Told} told */
  #take(told) {
    if (!this.#isOpen) return;
    this.wish.tell({ event: told.event, id: told.id, data: JSON.parse(told.data) });
    this.#lastId = told.id; // only now: an event that could not be processed is requested again
    this.#tries = 0;
  }

  #pause() {
    const longest = Math.min(FIRST_MS * 2 ** this.#tries, LONGEST_MS);
    this.#tries += 1;
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(null), longest * (0.5 + Math.random() / 2));
      this.#hurry = () => {
        clearTimeout(timer);
        resolve(null);
      };
    });
  }
}
