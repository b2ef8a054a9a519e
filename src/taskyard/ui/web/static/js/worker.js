/** The shared worker of all tabs of a browser: it owns the connections, the tabs subscribe. */

import { Hub } from "./hub.js";

/** A tab without a message for this many milliseconds is gone; hidden tabs send one a minute. */
const GONE_MS = 150_000;

const hub = new Hub();

/** @type {Map<MessagePort, {stops: Map<number, () => void>, heardAt: number}>} */
const tabs = new Map();

/** @param {MessagePort} port */
function meet(port) {
  port.onmessage = ({ data }) => {
    const tab = tabs.get(port) ?? { stops: new Map(), heardAt: 0 };
    if (data.type === "ping" && !tabs.has(port)) return port.postMessage({ type: "unknown" });
    tab.heardAt = Date.now();
    tabs.set(port, tab);
    if (data.type === "listen") listen(port, tab.stops, data);
    else if (data.type === "stop") stop(tab.stops, data.key);
    else if (data.type === "nudge") hub.nudge();
    else if (data.type === "bye") leave(port);
    return undefined;
  };
}

/**
 * @param {MessagePort} port
 * @param {Map<number, () => void>} stops
 * @param {{key: number, topic: import("./hub.js").Topic, token: string}} wish
 */
function listen(port, stops, { key, topic, token }) {
  stop(stops, key);
  const end = hub.listen(topic, token, {
    tell: (event, data) => port.postMessage({ type: "told", key, event, data }),
    become: (state, heardAt, why) => port.postMessage({ type: "state", key, state, heardAt, why }),
  });
  stops.set(key, end);
}

/** @param {Map<number, () => void>} stops @param {number} key */
function stop(stops, key) {
  stops.get(key)?.();
  stops.delete(key);
}

/** @param {MessagePort} port */
function leave(port) {
  for (const end of tabs.get(port)?.stops.values() ?? []) end();
  tabs.delete(port);
}

setInterval(() => {
  for (const [port, tab] of tabs) if (Date.now() - tab.heardAt > GONE_MS) leave(port);
}, 15_000);

/** @type {any} */ (self).onconnect = (/** @type {MessageEvent} */ event) => meet(event.ports[0]);
