/**
 * A time axis on which stretches without work are folded to a few pixels. Pure.
 *
 * @typedef {{start: number, end: number}} Stretch
 * @typedef {{
 *   at: (time: number) => number, folded: {gap: Stretch, x: number, width: number}[],
 *   ticks: {time: number, x: number}[], step: number, perMs: number, width: number,
 * }} Scale
 */

/** The width of a folded gap, in pixels. */
export const FOLD = 64;

/** Steps between ticks, in seconds. */
const STEPS = [1, 2, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 7_200, 21_600, 86_400, 604_800];

/** Least distance between ticks, in pixels. */
const APART = 80;

/**
 * @param {number} start epoch ms
 * @param {number} end
 * @param {Stretch[]} gaps to fold, in order
 * @param {number} width pixels
 * @returns {Scale}
 */
export function scale(start, end, gaps, width) {
  const idle = gaps.reduce((sum, gap) => sum + gap.end - gap.start, 0);
  const busy = Math.max(end - start - idle, 1_000);
  const room = Math.max(width - gaps.length * FOLD, 120);
  const perMs = room / busy;
  const at = (/** @type {number} */ time) => {
    let x = (Math.min(Math.max(time, start), end) - start) * perMs;
    for (const gap of gaps) {
      if (time <= gap.start) break;
      const inside = Math.min(time, gap.end) - gap.start;
      x += (inside / (gap.end - gap.start)) * FOLD - inside * perMs;
    }
    return x;
  };
  const folded = gaps.map((gap) => ({ gap, x: at(gap.start), width: FOLD }));
  const step = (STEPS.find((seconds) => seconds * 1000 * perMs >= APART) ?? 2_592_000) * 1000;
  return { at, folded, ticks: ticks(start, end, gaps, step, at), step, perMs, width: room + gaps.length * FOLD };
}

/**
 * @param {number} start
 * @param {number} end
 * @param {Stretch[]} gaps
 * @param {number} step ms
 * @param {(time: number) => number} at
 */
function ticks(start, end, gaps, step, at) {
  const offset = new Date(start).getTimezoneOffset() * 60_000;
  const found = [];
  let reached = -Infinity;
  let time = Math.ceil((start - offset) / step) * step + offset;
  while (time < end && found.length < 200) {
    const gap = gaps.find((one) => time > one.start && time < one.end);
    if (gap) {
      time = Math.max(time + step, Math.ceil((gap.end - offset) / step) * step + offset);
      continue;
    }
    const x = at(time);
    if (x - reached >= APART / 2) found.push({ time, x });
    reached = x;
    time += step;
  }
  return found;
}

/**
 * Arrange the bars of one lane in rows, so that they do not overlap.
 *
 * @template {{start: number, end: number | null}} B
 * @param {B[]} bars sorted by start
 * @param {number} now
 * @param {number} [least] minimum length of each, in ms
 * @returns {B[][]}
 */
export function packed(bars, now, least = 0) {
  /** @type {B[][]} */
  const rows = [];
  /** @type {number[]} */
  const ends = [];
  for (const bar of bars) {
    let row = ends.findIndex((end) => end <= bar.start);
    if (row < 0) row = ends.length;
    (rows[row] ??= []).push(bar);
    ends[row] = Math.max(bar.end ?? now + 1, bar.start + least);
  }
  return rows;
}
