/** One task as a card: its id, subject, owner and age, its activity or what it waits for. */

import { age, setAge } from "./ages.js";
import { dress, el, glyph, reglyph, say } from "./dom.js";

/** @typedef {import("./types.js").TaskView} TaskView */

/** @param {string} id @param {(id: string, byKey: boolean) => void} open */
export function makeCard(id, open) {
  const card = el(
    "button",
    { class: "card", type: "button", "data-id": id, tabindex: -1, click: (event) => open(id, event.detail === 0) },
    el(
      "span",
      { class: "head" },
      glyph({ glyph: "", token: "default" }),
      el("span", { class: "id" }, id),
      el("span", { class: "word unseen" }),
      el("span", { class: "owner" }),
      age(),
    ),
    el("span", { class: "subject" }),
    el("span", { class: "doing" }),
    el("span", { class: "labels" }),
  );
  return el("li", {}, card);
}

/** @param {HTMLLIElement} item @param {TaskView} task */
export function showCard(item, task) {
  const card = item.children[0];
  const [head, subject, doing, labels] = card.children;
  const [mark, , word, owner, since] = head.children;
  dress(card, { class: `card is-${task.state}${task.is_mine ? " is-mine" : ""}` });
  reglyph(mark, task);
  say(word, task.word);
  say(owner, task.owner ? `${task.is_assigned ? "→" : "@"}${task.owner}` : "");
  setAge(/** @type {HTMLElement} */ (since), task.since);
  say(subject, task.subject);
  say(doing, task.state === "done" ? "" : task.doing || task.note);
  const urgency = task.state === "done" ? [] : [task.priority !== null && `P${task.priority}`, task.due && `due ${task.due}`];
  say(labels, [...urgency.filter(Boolean), ...task.labels].join(" · "));
}
