/** A replacement for a stream by polling, used when all connections are taken. */

import { refusal } from "./api.js";

const EVERY_MS = 1_000;

export class Poll {
  #isOpen = true;
  #heardAt = Date.now();
  #seen = "";

  /** @param {import("./stream.js").Wish} wish @param {"snapshot" | "output"} event */
  constructor(wish, event) {
    this.wish = wish;
    this.event = event;
    void this.#run();
  }

  nudge() {}

  close() {
    this.#isOpen = false;
  }

  async #run() {
    while (this.#isOpen) {
      try {
        await this.#once();
      } catch (error) {
        const why = error instanceof Error ? error.message : "";
        const isRefused = [401, 403].includes(/** @type {any} */ (error)?.status);
        if (this.#isOpen) this.wish.become(isRefused ? "refused" : "reconnecting", this.#heardAt, why);
        if (isRefused) return;
      }
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  }

  async #once() {
    const headers = { Authorization: `Bearer ${this.wish.token}` };
    const answer = await fetch(this.wish.address(""), { headers, cache: "no-store", credentials: "omit" });
    if (!answer.ok) throw await refusal(answer);
    const { data } = await answer.json();
    if (!this.#isOpen) return;
    this.#heardAt = Date.now();
    this.wish.become("live", this.#heardAt, "");
    const isNews = this.event === "snapshot" ? data.id !== this.#seen : data.lines.length > 0 || data.is_over;
    if (isNews) this.wish.tell({ event: this.event, id: data.id ?? "", data });
    this.#seen = data.id ?? "";
  }
}
