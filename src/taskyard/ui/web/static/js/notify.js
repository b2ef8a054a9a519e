/** Sound and desktop notification when the user must look; both off by default. */

import { el } from "./dom.js";

/** @typedef {import("./types.js").Snapshot} Snapshot */

const BELL = "taskyard.bell";
const NOTICE = "taskyard.notice";

/** @type {AudioContext | null} */
let audio = null;

/** Notify of what newly needs attention. @param {Snapshot} now @param {import("./store.js").Changed} changed @param {Snapshot} before */
export function notifyOf(now, changed, before) {
  if (before.list !== now.list || !before.job_order.length) return;
  const news = [...changed.jobs]
    .map((id) => [now.jobs[id], before.jobs[id]])
    .filter(([job, was]) => job && ((job.needs_input && !was?.needs_input) || (job.is_unseen && !was?.is_unseen)));
  if (!news.length) return;
  if (isOn(BELL)) ring();
  if (isOn(NOTICE) && document.hidden && Notification.permission === "granted") {
    new Notification("taskyard", {
      body: news.map(([job]) => `${job.description}: ${job.word}`).join("\n"),
      tag: "taskyard",
    });
  }
}

/** The two switches. */
export function noticeSwitches() {
  return [
    el("h2", {}, "When a job needs attention"),
    toggle("ring a bell", BELL, () => Promise.resolve(true)),
    toggle("show a notice on the desktop", NOTICE, async () => (await Notification.requestPermission()) === "granted"),
  ];
}

/** @param {string} label @param {string} key @param {() => Promise<boolean>} allowed */
function toggle(label, key, allowed) {
  const box = el("input", { type: "checkbox" });
  box.checked = isOn(key);
  box.addEventListener("change", async () => {
    box.checked = box.checked && (await allowed());
    try {
      localStorage.setItem(key, box.checked ? "on" : "off");
    } catch {
      // without storage the setting lasts as long as the tab
    }
  });
  return el("label", { class: "switch" }, box, label);
}

/** @param {string} key */
function isOn(key) {
  try {
    return localStorage.getItem(key) === "on";
  } catch {
    return false;
  }
}

/** Play two short tones. */
function ring() {
  const at = (audio ??= new AudioContext());
  [660, 880].forEach((pitch, index) => {
    const [tone, volume] = [at.createOscillator(), at.createGain()];
    const start = at.currentTime + index * 0.16;
    tone.frequency.value = pitch;
    volume.gain.setValueAtTime(0.08, start);
    volume.gain.exponentialRampToValueAtTime(0.001, start + 0.15);
    tone.connect(volume).connect(at.destination);
    tone.start(start);
    tone.stop(start + 0.16);
  });
}
