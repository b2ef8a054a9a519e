/** The token: passed in the URL fragment, which is never sent, and removed from the address bar at once. */

import { el, refill } from "./dom.js";

const KEPT = "taskyard.token";

/** The token of this tab; empty if it has none. */
export function takeToken() {
  const found = /^#token=([^&/]+)/.exec(location.hash);
  if (found) {
    keepToken(decodeURIComponent(found[1]));
    history.replaceState(null, "", location.pathname + location.search);
  }
  try {
    return sessionStorage.getItem(KEPT) ?? "";
  } catch {
    return "";
  }
}

/** @param {string} token */
export function keepToken(token) {
  try {
    sessionStorage.setItem(KEPT, token);
  } catch {
    // without storage the token is asked for again after a reload
  }
}

/**
 * Ask for the token, without which nothing can be shown, and explain where it is.
 *
 * @param {HTMLElement} place
 * @param {string} why
 */
export function askForToken(place, why) {
  const input = el("input", { type: "password", "aria-label": "Token", placeholder: "token", autocomplete: "off" });
  const take = (/** @type {Event} */ event) => {
    event.preventDefault();
    keepToken(input.value.trim().replace(/^.*#token=/, ""));
    location.reload();
  };
  refill(
    place,
    el(
      "main",
      { class: "door" },
      el("h1", {}, "taskyard"),
      why && el("p", { class: "complaint", role: "alert" }, why),
      el(
        "p",
        {},
        "Open the address that ",
        el("code", {}, "taskyard web"),
        " printed: it carries the token. Or paste it here.",
      ),
      el("form", { class: "line-form", submit: take }, input, el("button", { type: "submit", class: "act" }, "open")),
    ),
  );
  input.focus();
}
