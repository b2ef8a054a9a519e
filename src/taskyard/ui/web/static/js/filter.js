/** Row filters: rows that contain a text, or with `!` before it those that do not. Pure. */

/**
 * Return a predicate for rows.
 *
 * @param {string} asked
 * @returns {(texts: (string | null | undefined)[]) => boolean}
 */
export function filter(asked) {
  const isInverse = asked.trimStart().startsWith("!");
  const text = asked.trim().replace(/^!/, "").trim().toLowerCase();
  if (!text) return () => true;
  return (texts) => texts.some((one) => one?.toLowerCase().includes(text)) !== isInverse;
}

/** The texts of a task that filters search. @param {import("./types.js").TaskView} task */
export function taskTexts(task) {
  return [task.id, task.subject, task.owner && `@${task.owner}`, task.doing, task.note, task.word, ...task.labels];
}

/** The texts of a job that filters search. @param {import("./types.js").JobView} job */
export function jobTexts(job) {
  return [job.id, job.description, job.command, job.kind, job.word, job.last_line, job.agent && `@${job.agent}`];
}
