// Another program on the same list, as Claude Code is one: creates, updates, links and deletes by its rules and locks
// for some seconds, and keeps a journal by which a checker can prove that nothing was lost, doubled or torn.
//
//   node foreign_writer.mjs --dir LIST --journal FILE [--seconds 5] [--seed 1] [--name node-1] [--stale-patch no]
//
// Prints {"ready":true}, waits for "go" on stdin, prints its counts at the end; SIGTERM ends it after the operation
// at hand. The journal has one line of JSON per finished operation:
//
//   {"op":"create","id":"7","fields":{…},"ok":true,"t0":…,"t1":…}     times: CLOCK_MONOTONIC, ns
//
// op      create | update | link | delete
// fields  create: subject, description, metadata. update: what was written (status, owner, metadata).
//         link: {"blocks": id}. delete: {}.
// ok      false: the task was gone, or ("error": "ELOCKED") a lock was held for all of its 2.9 s. A create or update
//         has then written nothing; a link may have one side, a delete may have left its id in other tasks.
//
// What makes it checkable: subjects are "<name> <n>", unique; every metadata key it sets is "<name>.<n>", set once and
// never removed, so each must be in the task's file at the end or the task be deleted; it deletes only its own tasks;
// it links only a lower id to a higher one, so never closes a cycle. `--stale-patch yes` computes metadata from a read
// made before the lock, as the original may: then another's change in between can be undone, and that is its own doing.

import { openSync, writeSync } from 'node:fs';
import { now, optionsFrom, say, started } from './barrier.mjs';
import { createTask, deleteTask, getTask, linkTasks, patchedMetadata, taskIds, updateTask } from './list.mjs';

const DEFAULTS = { dir: '', journal: '', seconds: '5', seed: '1', name: 'node-1', 'stale-patch': 'no' };
const NEXT_STATUS = { pending: 'in_progress', in_progress: 'completed', completed: 'pending' };
const OWNERS = ['ada', 'bob', 'cem'];

const options = optionsFrom(process.argv.slice(2), DEFAULTS);
const { dir, name } = options;
const stale = options['stale-patch'] === 'yes';
const journal = openSync(options.journal, 'a', 0o600);
const random = mulberry32(Number(options.seed));
const mine = [];
let serial = 0;

/** A small seeded generator: the same seed makes the same choices. */
function mulberry32(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

const below = (count) => Math.floor(random() * count);
const oneOf = (choices) => choices[below(choices.length)];
const nextSerial = () => (serial += 1);

async function create() {
  const n = nextSerial();
  const description = `Task ${n} of ${name}. ${'Läuft über mehrere Blöcke. '.repeat(below(40))}`;
  const fields = { subject: `${name} ${n}`, description, metadata: { [`${name}.${n}`]: n } };
  const id = await createTask(dir, fields);
  mine.push(id);
  return { id, fields, ok: true };
}

async function update(id) {
  const what = below(3);
  const key = `${name}.${nextSerial()}`;
  const owner = oneOf(OWNERS);
  const before = stale ? await getTask(dir, id) : null;
  let fields = {};
  const written = await updateTask(dir, id, (task) => {
    if (what === 0) fields = { status: NEXT_STATUS[task.status] };
    else if (what === 1) fields = { owner };
    else fields = { metadata: { [key]: serial } };
    if (what !== 2) return fields;
    return { metadata: patchedMetadata((before ?? task).metadata, fields.metadata) };
  });
  return { id, fields, ok: written !== null };
}

async function link(blocker, blocked) {
  return { id: blocker, fields: { blocks: blocked }, ok: await linkTasks(dir, blocker, blocked) };
}

async function remove(id) {
  return { id, fields: {}, ok: await deleteTask(dir, id) };
}

/** The next operation by the dice, and its task: about 3 creates, 5 updates and 1 link to each delete. */
async function chosen() {
  const dice = random();
  const ids = dice < 0.3 ? [] : (await taskIds(dir)).sort((a, b) => a - b);
  if (ids.length < 2) return { op: 'create', id: null, act: create };
  if (dice >= 0.9 && mine.length > 0) {
    const [id] = mine.splice(below(mine.length), 1);
    return { op: 'delete', id, act: () => remove(id) };
  }
  const at = below(ids.length - 1);
  const id = ids[at];
  if (dice < 0.8) return { op: 'update', id, act: () => update(id) };
  const later = ids[at + 1 + below(ids.length - 1 - at)];
  return { op: 'link', id, act: () => link(id, later) };
}

async function main() {
  const counts = { create: 0, update: 0, link: 0, delete: 0, failed: 0 };
  let running = true;
  process.on('SIGTERM', () => (running = false));
  await started();
  const end = now() + Number(options.seconds) * 1e9;
  while (running && now() < end) {
    const { op, id, act } = await chosen();
    const t0 = now();
    let result;
    try {
      result = await act();
    } catch (error) {
      if (error.code !== 'ELOCKED') throw error;
      result = { id, fields: {}, ok: false, error: error.code };
    }
    writeSync(journal, `${JSON.stringify({ op, ...result, t0, t1: now() })}\n`);
    counts[result.ok ? op : 'failed'] += 1;
  }
  say(counts);
}

await main();
