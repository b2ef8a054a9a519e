/** Keyboard shortcuts; the help is generated from the same table. */

import { el } from "./dom.js";

/** @typedef {{keys: string[], shown: string, says: string, does: () => void}} Key */

/** Elements that take typed text themselves. */
const OWN = "input, textarea, select";

/** @param {Key[]} table @param {() => void} back what Escape does */
export function listenToKeys(table, back) {
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return back();
    const isTyping = event.target instanceof Element && event.target.matches(OWN);
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return undefined;
    const key = table.find((one) => one.keys.includes(event.key));
    if (!key) return undefined;
    event.preventDefault();
    return key.does();
  });
}

/** The help, as a dialog that Escape closes. @param {Key[]} table @param {[string, string][]} more @param {Node[]} settings */
export function helpDialog(table, more, settings) {
  const rows = [...table.map(({ shown, says }) => [shown, says]), ...more];
  const close = el(
    "button",
    { type: "button", class: "close", "aria-label": "Close", click: () => dialog.close() },
    "×",
  );
  const dialog = el(
    "dialog",
    { class: "help", "aria-labelledby": "help-title" },
    close,
    el("h2", { id: "help-title" }, "Keys"),
    el(
      "dl",
      {},
      ...rows.flatMap(([shown, says]) => [
        el("dt", {}, ...shown.split(" ").map((one) => el("kbd", {}, one))),
        el("dd", {}, says),
      ]),
    ),
    ...settings,
  );
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  return dialog;
}
