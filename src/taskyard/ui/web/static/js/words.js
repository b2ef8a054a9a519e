/** Text for durations and sizes: the counterpart of `taskyard.core.text`, tested on the same table. */

/** `8s`, `3m`, `1h 04m`, `2d`. @param {number} seconds */
export function duration(seconds) {
  const whole = Math.max(0, Math.trunc(seconds));
  if (whole < 60) return `${whole}s`;
  if (whole < 3_600) return `${Math.floor(whole / 60)}m`;
  if (whole < 86_400) return `${Math.floor(whole / 3_600)}h ${String(Math.floor(whole / 60) % 60).padStart(2, "0")}m`;
  return `${Math.floor(whole / 86_400)}d`;
}

/** `812 B`, `4.1 kB`, `32 MB`, `1.5 GB`. @param {number} count */
export function size(count) {
  let amount = count;
  let unit = "B";
  for (unit of ["B", "kB", "MB", "GB"]) {
    if (amount < 999.5 || unit === "GB") break;
    amount /= 1000;
  }
  return `${unit === "B" || amount >= 10 ? amount.toFixed(0) : amount.toFixed(1)} ${unit}`;
}

/** `14:01:12`, or with a date when it was another day. @param {number} at epoch ms @param {number} now */
export function clock(at, now) {
  const when = new Date(at);
  const time = [when.getHours(), when.getMinutes(), when.getSeconds()].map(two).join(":");
  if (when.toDateString() === new Date(now).toDateString()) return time;
  return `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())} ${time}`;
}

/** `14:01`. @param {number} at epoch ms */
export function minute(at) {
  const when = new Date(at);
  return `${two(when.getHours())}:${two(when.getMinutes())}`;
}

/** @param {number} number */
function two(number) {
  return String(number).padStart(2, "0");
}
