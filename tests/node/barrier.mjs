// What every measured Node process shares: options, the start barrier, the answer.

import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

/** Nanoseconds of CLOCK_MONOTONIC: the same clock in every process of the machine. */
export const now = () => Number(process.hrtime.bigint());

/** Options from the command line: `--name value`, all text, defaults from `known`. */
export function optionsFrom(args, known) {
  const options = Object.fromEntries(Object.keys(known).map((name) => [name, { type: 'string' }]));
  return { ...known, ...parseArgs({ args, options }).values };
}

/** Say that we are warm, then wait for the line "go" on stdin. */
export async function started() {
  say({ ready: true });
  const lines = createInterface({ input: process.stdin });
  const [line] = await once(lines, 'line');
  if (line.trim() !== 'go') throw new Error('expected "go" on stdin');
  lines.close();
  process.stdin.destroy(); // so that the process ends by itself, once all it said is written
}

export function say(answer) {
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
