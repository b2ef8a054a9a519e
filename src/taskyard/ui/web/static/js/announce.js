/** Announces changes to screen readers: few words, not too often. */

import { say } from "./dom.js";

/** @typedef {import("./types.js").Snapshot} Snapshot */

const GATHER_MS = 1_000;

/** Most changes announced one by one; of more, only the number. */
const MOST = 3;

/** @type {string[]} */
let waiting = [];

/** Announce a sentence. @param {string} sentence */
export function announce(sentence) {
  waiting.push(sentence);
  if (waiting.length === 1) setTimeout(speak, GATHER_MS);
}

function speak() {
  const place = document.getElementById("said");
  if (place) say(place, waiting.length > MOST ? `${waiting.length} changes` : waiting.join(". "));
  waiting = [];
}

/** Announce tasks and jobs in a new state. @param {Snapshot} now @param {import("./store.js").Changed} changed @param {Snapshot} before */
export function announceChanges(now, changed, before) {
  if (before.list !== now.list || !before.task_order.length) return;
  for (const id of changed.tasks) {
    const [task, was] = [now.tasks[id], before.tasks[id]];
    if (task && task.state !== was?.state) announce(`${task.id} ${task.subject}: ${task.word}`);
  }
  for (const id of changed.jobs) {
    const [job, was] = [now.jobs[id], before.jobs[id]];
    if (job && job.state !== was?.state) announce(`${job.description}: ${job.word}`);
  }
}
