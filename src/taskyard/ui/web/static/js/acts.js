/** Actions, where the server allows them. Refusals are shown in the server's wording, beside the button. */

import { dress, el, say } from "./dom.js";

/** @typedef {import("./page.js").Page} Page */

/** Milliseconds within which a second press confirms. */
const AGAIN_MS = 2_000;

/** Actions on a task by its state. */
const TASK_ACTS = {
  ready: ["claim", "start", "done"],
  doing: ["done", "release"],
  blocked: [],
  done: [],
};

/** An element for the server's error message. */
export function complaint() {
  return el("p", { class: "complaint", role: "alert" });
}

/**
 * Send the action, and show the error if it fails.
 *
 * @param {Page} page
 * @param {string} path
 * @param {object} body
 * @param {HTMLElement} place for the error message
 */
export async function act(page, path, body, place) {
  say(place, "");
  try {
    await page.api.post(path, body);
    return true;
  } catch (error) {
    say(place, error instanceof Error ? error.message : String(error));
    return false;
  }
}

/**
 * Replace the buttons when others are needed; the error of the last action stays.
 *
 * @param {HTMLElement} place
 * @param {string} key identifies the set of buttons
 * @param {() => HTMLElement} make
 */
export function renewed(place, key, make) {
  if (place.dataset.for === key) return;
  const [had, subject] = [place.contains(document.activeElement), key.split(" ").slice(0, -1).join(" ")];
  const said = place.dataset.for?.startsWith(subject) ? place.querySelector(".complaint")?.textContent : "";
  place.dataset.for = key;
  place.replaceChildren(make());
  const complaint = place.querySelector(".complaint");
  if (said && complaint) say(complaint, said);
  if (had) place.querySelector("button")?.focus();
}

/** Buttons for a task. @param {Page} page @param {import("./types.js").TaskView} task */
export function taskActs(page, task) {
  const place = complaint();
  const { list } = page.place;
  const names = page.about.allow_actions ? TASK_ACTS[task.state] : [];
  const buttons = names.map((name) => {
    const path = `/api/tasks/${encodeURIComponent(task.id)}/${name}`;
    return el("button", { type: "button", class: "act", click: () => void act(page, path, { list }, place) }, name);
  });
  return el("div", { class: "acts" }, ...buttons, place);
}

/** Buttons for a job. @param {Page} page @param {import("./types.js").JobView} job */
export function jobActs(page, job) {
  if (!page.about.allow_actions) return el("div", { class: "acts" });
  const place = complaint();
  const path = `/api/jobs/${encodeURIComponent(job.id)}`;
  const once = (/** @type {string} */ name) =>
    el("button", { type: "button", class: "act", click: () => void act(page, `${path}/${name}`, {}, place) }, name);
  if (job.ended_at !== null) return el("div", { class: "acts" }, once("dismiss"), place);
  return el(
    "div",
    { class: "acts" },
    once(job.is_paused ? "resume" : "pause"),
    job.is_foreground && once("background"),
    twice("stop", () => void act(page, `${path}/stop`, {}, place)),
    place,
  );
}

/** A button that asks for confirmation in its place. @param {string} name @param {() => void} does */
function twice(name, does) {
  let pressedAt = -Infinity;
  const button = el("button", {
    type: "button",
    class: "act",
    click: () => {
      if (performance.now() - pressedAt < AGAIN_MS) return settle(() => does());
      pressedAt = performance.now();
      say(button, `again to ${name}`);
      button.classList.add("is-asked");
      setTimeout(() => performance.now() - pressedAt >= AGAIN_MS && settle(), AGAIN_MS + 50);
      return undefined;
    },
  });
  const settle = (/** @type {() => void} */ then = () => {}) => {
    pressedAt = -Infinity;
    say(button, name);
    button.classList.remove("is-asked");
    then();
  };
  settle();
  return button;
}

/**
 * A form with one line of text to send.
 *
 * @param {string} label
 * @param {string} button
 * @param {(text: string, place: HTMLElement) => Promise<boolean>} send
 * @param {boolean} [mayBeEmpty] whether an empty line is sent
 */
export function line(label, button, send, mayBeEmpty = false) {
  const place = complaint();
  const input = el("input", { type: "text", "aria-label": label, placeholder: label, autocomplete: "off" });
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!mayBeEmpty && !input.value.trim()) return;
    if (await send(input.value, place)) input.value = "";
  };
  return el(
    "form",
    { class: "line-form", submit },
    input,
    el("button", { type: "submit", class: "act" }, button),
    place,
  );
}

/** The form to answer a job's question. @param {Page} page @param {string} id */
export function answering(page, id) {
  const path = `/api/jobs/${encodeURIComponent(id)}/answer`;
  return line("Answer", "answer", (text, place) => act(page, path, { text }, place), true);
}

/** The form to send a message to an agent. @param {Page} page @param {string} to */
export function mailing(page, to) {
  return line(`Mail to ${to}`, "send", (text, place) =>
    act(page, "/api/mail", { list: page.place.list, to, text }, place),
  );
}

/** The form for a new task, in the first column. @param {Page} page */
export function adding(page) {
  const form = line("New task", "add", (subject, place) =>
    act(page, "/api/tasks", { list: page.place.list, subject }, place),
  );
  const show = () => dress(form, { hidden: !page.about.allow_actions });
  page.store.view(show);
  show();
  return form;
}
