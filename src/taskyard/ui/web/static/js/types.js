/**
 * Types of the server's data. Nothing here runs.
 *
 * @typedef {{jobs: number, tokens: number, tools: number, cost_usd: number | null, duration_ms: number, words?: string}} Figures
 *
 * @typedef {{
 *   id: string, subject: string, state: "ready" | "doing" | "blocked" | "done", glyph: string, word: string, token: string,
 *   owner: string | null, is_mine: boolean, since: number | null, doing: string, note: string, waits_for: string[],
 *   blocked_by: string[], blocks: string[], priority: number | null, labels: string[], level: number, rank: number,
 *   is_critical: boolean, due: string | null, is_assigned: boolean,
 * }} TaskView
 *
 * @typedef {{word: string, glyph: string, token: string, at: number | null}} Step
 *
 * @typedef {{
 *   id: string, type: string, kind: string, description: string, state: string, glyph: string, word: string, token: string,
 *   command: string, depth: number, parent: string | null, started_at: number | null, ended_at: number | null,
 *   paused_ms: number, last_line: string, question: string, needs_input: boolean, takes_input: boolean,
 *   is_paused: boolean, is_disconnected: boolean, is_foreground: boolean, is_unseen: boolean, notified: boolean,
 *   task: string | null, agent: string | null, pid: number | null, output: string, total: Figures, steps: Step[],
 * }} JobView
 *
 * @typedef {{
 *   name: string, state: string, glyph: string, token: string, doing: string, task: string | null, since: number | null,
 *   job: string | null, colour: string | null, figures: Figures,
 * }} Person
 *
 * @typedef {{text: string, hint: string, waits: string, flash: string, flash_token: string, running: number, line: string}} Pill
 *
 * @typedef {{ready: number, doing: number, blocked: number, done: number, total: number}} Counts
 *
 * A whole snapshot; a change has some of its keys, and null for a removed row.
 * @typedef {{
 *   tasks: Record<string, TaskView>, task_order: string[], jobs: Record<string, JobView>, job_order: string[],
 *   people: Record<string, Person>, people_order: string[], list: string, counts: Counts, pill: Pill, headline: string,
 *   is_panel_shown: boolean, attention: number, problems: string[], is_disconnected: boolean, lists: string[],
 * }} Snapshot
 *
 * @typedef {[text: string, style: string]} Run
 *
 * Some lines of an output with their offsets; an unterminated last line (`partial`) is sent again with what was
 * added to it.
 * @typedef {{
 *   start: number, end: number, size: number, omitted: number, is_over: boolean, partial: boolean, restarted: boolean,
 *   offsets: number[], lines: Run[][],
 * }} Window
 *
 * @typedef {{id: string, is_job: boolean, text: string, state: string, glyph: string, token: string, start: number, end: number | null}} Bar
 * @typedef {{name: string, bars: Bar[]}} Lane
 * @typedef {{start: number, end: number}} Gap
 * @typedef {{start: number, now: number, lanes: Lane[], gaps: Gap[]}} Timeline
 *
 * @typedef {{version: string, allow_actions: boolean, list: string, now: number, server?: string}} About
 *
 * @typedef {"board" | "graph" | "background" | "timeline"} ViewName
 * @typedef {{kind: "task" | "job" | "person", id: string}} Chosen
 */

export {};
