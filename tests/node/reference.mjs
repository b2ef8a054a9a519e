// The yardstick: what `bench` measures Taskyard against.
//
//   node reference.mjs create --dir LIST [--n 500] [--desc TEXT]
//   node reference.mjs claim  --dir LIST [--n 100] [--agent NAME] [--busy-check yes] [--lean yes]
//   node reference.mjs list   --dir LIST [--rounds 5]
//   node reference.mjs cold   --dir LIST
//   node reference.mjs mail   --dir INBOXES [--n 500] [--agent NAME] [--to NAME]
//   node reference.mjs take   --dir INBOXES [--agent NAME]
//
// Each warms up (`--warm` operations), prints {"ready":true}, waits for "go" on stdin, and prints one line of JSON
// with t0 and t1 (CLOCK_MONOTONIC, ns) taken inside: the interpreter's start is outside. `cold` does not warm up and
// counts the loading of its own code, but not the interpreter's start.

import { mkdtemp, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { now, optionsFrom, say, started } from './barrier.mjs';

const DEFAULTS = { dir: '', n: '500', desc: 'What is to be done, in a sentence or two.', rounds: '5', agent: 'ada',
  to: 'lead', 'busy-check': 'no', lean: 'no', warm: '100' };

/** `operation`, again when the lock was held for all of its 2.9 s; counts how often that happened. */
async function persistently(operation, lost) {
  for (;;) {
    try {
      return await operation();
    } catch (error) {
      if (error.code !== 'ELOCKED') throw error;
      lost.count += 1;
    }
  }
}

/** Run `work` in a scratch folder beside `dir`, so that code and file system are warm and `dir` is untouched. */
async function warmUp(dir, work) {
  const scratch = await mkdtemp(join(dirname(dir), 'warm-'));
  try {
    await work(scratch);
  } finally {
    await rm(scratch, { recursive: true });
  }
}

/** Run `operation(i)` for i = 1 … n after the barrier and report the answers, the time and the longest wait. */
async function timed(n, operation) {
  const lost = { count: 0 };
  const answers = [];
  let longest = 0;
  await started();
  const t0 = now();
  let before = t0;
  for (let i = 1; i <= n; i += 1) {
    answers.push(await persistently(() => operation(i), lost));
    const after = now();
    longest = Math.max(longest, after - before);
    before = after;
  }
  return { t0, t1: before, longest, lock_errors: lost.count, answers };
}

async function create({ dir, n, desc, warm }) {
  const { createTask } = await import('./list.mjs');
  const draft = (i) => ({ subject: `Task ${i}`, description: desc });
  await warmUp(dir, async (scratch) => {
    for (let i = 0; i < Number(warm); i += 1) await createTask(scratch, draft(i));
  });
  say(await timed(Number(n), (i) => createTask(dir, draft(i))));
}

async function claim({ dir, n, agent, warm, lean, 'busy-check': busy }) {
  const { claimTask, claimTaskIfIdle, createTask, updateTask } = await import('./list.mjs');
  const claimed = busy === 'yes' ? claimTaskIfIdle : claimTask;
  const how = { lean: lean === 'yes' };
  await warmUp(dir, async (scratch) => {
    const id = await createTask(scratch, { subject: 'Warm up', description: 'w' });
    for (let i = 0; i < Number(warm); i += 1) await claimed(scratch, id, agent, how);
  });
  say(await timed(Number(n), async (i) => {
    const answer = await claimed(dir, String(i), agent, how);
    // With the busy check an agent must finish what it has before it gets more.
    if (busy === 'yes' && answer === 'ok') await updateTask(dir, String(i), () => ({ status: 'completed' }));
    return answer;
  }));
}

async function list({ dir, rounds }) {
  const { listTasks } = await import('./list.mjs');
  for (let i = 0; i < 3; i += 1) await listTasks(dir);
  await started();
  const times = [];
  let count = 0;
  for (let i = 0; i < Number(rounds); i += 1) {
    const t0 = now();
    count = (await listTasks(dir)).length;
    times.push(now() - t0);
  }
  say({ times, count });
}

async function cold({ dir }) {
  await started();
  const t0 = now();
  const { listTasks } = await import('./list.mjs');
  const count = (await listTasks(dir)).length;
  say({ t0, t1: now(), count });
}

async function mail({ dir, n, agent, to, desc, warm }) {
  const { sendMail } = await import('./list.mjs');
  await warmUp(dir, async (scratch) => {
    for (let i = 0; i < Number(warm); i += 1) await sendMail(scratch, agent, to, desc);
  });
  const { answers, ...times } = await timed(Number(n), (i) => sendMail(dir, agent, to, `${agent} ${i} ${desc}`));
  say(times);
}

async function take({ dir, agent }) {
  const { takeMail } = await import('./list.mjs');
  await started();
  const t0 = now();
  const texts = (await takeMail(dir, agent)).map((message) => message.text);
  say({ t0, t1: now(), texts });
}

const COMMANDS = { create, claim, list, cold, mail, take };
const [command, ...args] = process.argv.slice(2);
if (!Object.hasOwn(COMMANDS, command)) {
  process.stderr.write(`reference.mjs: expected one of ${Object.keys(COMMANDS).join(', ')}\n`);
  process.exit(2);
}
await COMMANDS[command](optionsFrom(args, DEFAULTS));
