// The task list and the inboxes as Claude Code keeps them, in Node: the yardstick of `bench` and the hands of
// `foreign_writer.mjs`. Same files, same locks, same waits, the same reads and writes in the same order, by what is
// known of it; nothing is added that would slow it down, and files are checked by hand-written code.

import { constants } from 'node:fs';
import { open, readdir, readFile, rename, unlink, writeFile } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import lockfile from 'proper-lockfile';

// 5, 10, 20, 40, 80, then 100 ms: about 2.9 s in all, then ELOCKED.
const WAITING = { retries: { retries: 30, factor: 2, minTimeout: 5, maxTimeout: 100 } };
const STATUSES = new Set(['pending', 'in_progress', 'completed']);
const IN_PLACE = constants.O_RDWR | constants.O_CREAT;

const taskFile = (list, id) => join(list, `${id}.json`);

/** Run `work` while holding proper-lockfile's lock of `file`, which must exist. */
async function locked(file, work) {
  const release = await lockfile.lock(file, WAITING);
  try {
    return await work();
  } finally {
    await release();
  }
}

/** Run `work` under the list lock: `.lock.lock`, the lock of the empty file `.lock`. */
async function listLocked(list, work) {
  const file = join(list, '.lock');
  await made(file);
  return locked(file, work);
}

/** See that the empty `file` exists, which a lock needs; before every lock, as the original does. */
async function made(file) {
  try {
    await writeFile(file, '', { flag: 'wx', mode: 0o644 });
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
}

const messagesIn = async (file) => JSON.parse((await readFile(file, 'utf8')) || '[]');

/** Write over what is there: no truncation first, so a reader may see both texts mixed. */
async function writeInPlace(file, text, flags = IN_PLACE) {
  const bytes = Buffer.from(text, 'utf8');
  const handle = await open(file, flags, 0o644);
  try {
    await handle.write(bytes, 0, bytes.length, 0);
    await handle.truncate(bytes.length);
  } finally {
    await handle.close();
  }
}

async function mark(list) {
  try {
    return Number.parseInt((await readFile(join(list, '.highwatermark'), 'utf8')).trim(), 10) || 0;
  } catch (error) {
    if (error.code === 'ENOENT') return 0;
    throw error;
  }
}

async function raiseMark(list, id) {
  if (id > (await mark(list))) await writeInPlace(join(list, '.highwatermark'), String(id));
}

async function highestId(list) {
  let highest = await mark(list);
  for (const name of await readdir(list)) {
    if (!name.endsWith('.json')) continue;
    const id = Number.parseInt(name, 10);
    if (id > highest) highest = id;
  }
  return highest;
}

// Absent optionals are absent: JSON.stringify leaves out what is undefined.
function textOf({ id, subject, description, activeForm, owner, status, blocks, blockedBy, metadata }) {
  return JSON.stringify({ id, subject, description, activeForm, owner, status, blocks, blockedBy, metadata }, null, 2);
}

const isText = (value) => typeof value === 'string';
const isTextOrAbsent = (value) => value === undefined || isText(value);
const isIds = (value) => Array.isArray(value) && value.every(isText);

/** `text` as a task; null for what the original does not see: torn, incomplete, of a wrong type. */
export function parsedTask(text) {
  let task;
  try {
    task = JSON.parse(text);
  } catch {
    return null;
  }
  if (task === null || typeof task !== 'object') return null;
  const sound =
    isText(task.id) && isText(task.subject) && isText(task.description) && STATUSES.has(task.status) &&
    isTextOrAbsent(task.owner) && isTextOrAbsent(task.activeForm) && isIds(task.blocks) && isIds(task.blockedBy) &&
    (task.metadata === undefined || (task.metadata !== null && typeof task.metadata === 'object'));
  return sound ? task : null;
}

export async function getTask(list, id) {
  try {
    return parsedTask(await readFile(taskFile(list, id), 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'EISDIR') return null;
    throw error;
  }
}

/** The ids that have a file, in no order. */
export async function taskIds(list) {
  return (await readdir(list)).filter((name) => /^[1-9]\d*\.json$/.test(name)).map((name) => name.slice(0, -5));
}

export async function listTasks(list) {
  const names = (await readdir(list)).filter((name) => name.endsWith('.json'));
  const tasks = await Promise.all(names.map((name) => getTask(list, name.slice(0, -5))));
  return tasks.filter((task) => task !== null);
}

/** Create a task and answer its id. */
export async function createTask(list, { subject, description, activeForm, metadata }) {
  return listLocked(list, async () => {
    const id = String((await highestId(list)) + 1);
    const task = { id, subject, description, activeForm, status: 'pending', blocks: [], blockedBy: [], metadata };
    await writeInPlace(taskFile(list, id), textOf(task));
    return id;
  });
}

/**
 * Change one task under its own lock: `patch(task)` answers the fields to set.
 * Answers the task as written, or null if there is none.
 */
export async function updateTask(list, id, patch) {
  const file = taskFile(list, id);
  try {
    return await locked(file, async () => {
      const task = await getTask(list, id);
      if (task === null) return null;
      const changed = { ...task, ...patch(task) };
      // No O_CREAT: an update must not bring back what was deleted between the read and here.
      await writeInPlace(file, textOf(changed), constants.O_RDWR);
      return changed;
    });
  } catch (error) {
    if (error.code === 'ENOENT') return null;
    throw error;
  }
}

/** `metadata` with `changes` merged in; null deletes a key. */
export function patchedMetadata(metadata, changes) {
  const patched = { ...metadata, ...changes };
  for (const key of Object.keys(patched)) if (patched[key] === null) delete patched[key];
  return patched;
}

/** Make `blocker` block `blocked`: the two tasks' locks, one after the other. */
export async function linkTasks(list, blocker, blocked) {
  const added = (ids, id) => (ids.includes(id) ? ids : [...ids, id]);
  const first = await updateTask(list, blocker, (task) => ({ blocks: added(task.blocks, blocked) }));
  const second = await updateTask(list, blocked, (task) => ({ blockedBy: added(task.blockedBy, blocker) }));
  return first !== null && second !== null;
}

/** Delete a task: mark raised, file unlinked without a lock, then the id stripped from each other task. */
export async function deleteTask(list, id) {
  await raiseMark(list, Number(id));
  try {
    await unlink(taskFile(list, id));
  } catch (error) {
    if (error.code === 'ENOENT') return false;
    throw error;
  }
  const without = (ids) => ids.filter((other) => other !== id);
  for (const task of await listTasks(list)) {
    if (!task.blocks.includes(id) && !task.blockedBy.includes(id)) continue;
    await updateTask(list, task.id, (now) => ({ blocks: without(now.blocks), blockedBy: without(now.blockedBy) }));
  }
  return true;
}

/** Why `agent` may not have `task`, or null; `others` brings the tasks among which its blockers are. */
async function refusal(task, agent, others) {
  if (task === null) return 'not_found';
  if (task.owner && task.owner !== agent) return 'already_claimed';
  if (task.status === 'completed') return 'already_resolved';
  const open = new Set((await others(task)).filter((other) => other.status !== 'completed').map((other) => other.id));
  return task.blockedBy.some((id) => open.has(id)) ? 'blocked' : null;
}

/** The tasks that `task` waits for: all that a claim has to read, and less than the original reads. */
async function blockersOf(list, task) {
  return (await Promise.all(task.blockedBy.map((id) => getTask(list, id)))).filter((blocker) => blocker !== null);
}

/**
 * Claim under the task's own lock; answers 'ok' or why not.
 * As the original does, who may have the task looks for its blockers among all tasks; a `lean` one reads only those.
 */
export async function claimTask(list, id, agent, { lean = false } = {}) {
  if ((await getTask(list, id)) === null) return 'not_found';
  const file = taskFile(list, id);
  return locked(file, async () => {
    const task = await getTask(list, id);
    const reason = await refusal(task, agent, (of) => (lean ? blockersOf(list, of) : listTasks(list)));
    if (reason !== null) return reason;
    await writeInPlace(file, textOf({ ...task, owner: agent }));
    return 'ok';
  });
}

/** Claim under the list lock, refused while the agent owns other open work. */
export async function claimTaskIfIdle(list, id, agent) {
  return listLocked(list, async () => {
    const tasks = await listTasks(list);
    const task = tasks.find((each) => each.id === id) ?? null;
    const reason = await refusal(task, agent, () => tasks);
    if (reason !== null) return reason;
    const isOpenWork = (each) => each.owner === agent && each.id !== id && each.status !== 'completed';
    if (tasks.some(isOpenWork)) return 'agent_busy';
    await updateTask(list, id, () => ({ owner: agent }));
    return 'ok';
  });
}

/** Append to an inbox: the whole array read, extended and put back by rename, under `<agent>.json.lock`. */
export async function sendMail(inboxes, from, to, text) {
  const file = join(inboxes, `${to}.json`);
  await made(file);
  await locked(file, async () => {
    const messages = await messagesIn(file);
    const timestamp = new Date().toISOString();
    messages.push({ from, text, timestamp, msgV: 1, msg_id: randomUUID(), type: 'message', read: false });
    const temporary = `${file}.${process.pid}.tmp`;
    await writeFile(temporary, JSON.stringify(messages, null, 2), { mode: 0o644 });
    await rename(temporary, file);
  });
}

/** Everything in an inbox; what is read is removed from it. */
export async function takeMail(inboxes, agent) {
  const file = join(inboxes, `${agent}.json`);
  return locked(file, async () => {
    const messages = await messagesIn(file);
    const temporary = `${file}.${process.pid}.tmp`;
    await writeFile(temporary, '[]', { mode: 0o644 });
    await rename(temporary, file);
    return messages;
  });
}
