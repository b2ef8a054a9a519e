/** Which rows to show: those that say the text somewhere, or with `!` before it those that do not. Pure. */

/**
 * A test for rows.
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

/** What of a task can be looked for. @param {import("./types.js").TaskView} task */
export function taskTexts(task) {
  return [task.id, task.subject, task.owner && `@${task.owner}`, task.doing, task.note, task.word, ...task.labels];
}

/** What of a job can be looked for. @param {import("./types.js").JobView} job */
export function jobTexts(job) {
  return [job.id, job.description, job.command, job.kind, job.word, job.last_line, job.agent && `@${job.agent}`];
}
