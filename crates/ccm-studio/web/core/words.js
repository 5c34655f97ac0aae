// Words that several places need.

/** @param {number} count @param {string} one @param {string} [many] */
export const plural = (count, one, many = `${one}s`) =>
  `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

const ORDINALS = [
  "zeroth",
  "first",
  "second",
  "third",
  "fourth",
  "fifth",
  "sixth",
  "seventh",
  "eighth",
  "ninth",
  "tenth",
  "eleventh",
  "twelfth",
];
const CARDINALS = [
  "zero",
  "one",
  "two",
  "three",
  "four",
  "five",
  "six",
  "seven",
  "eight",
  "nine",
  "ten",
  "eleven",
  "twelve",
];

/** «third of five», or «31 of 5,000». @param {number} number @param {number} total */
export function rank(number, total) {
  const small = ORDINALS[number] && CARDINALS[total];
  return small
    ? `${ORDINALS[number]} of ${CARDINALS[total]}`
    : `${number.toLocaleString("en")} of ${total.toLocaleString("en")}`;
}

/** A duration as people read it. @param {number} micros */
export function duration(micros) {
  const millis = micros / 1000;
  if (millis < 1) return `${millis.toFixed(1)} ms`;
  if (millis < 1000) return `${Math.round(millis)} ms`;
  const seconds = millis / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/** «14:02, 3 minutes ago». @param {Date} time @param {Date} [now] */
export function when(time, now = new Date()) {
  const clock = time.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  const seconds = Math.max(0, Math.round((now.getTime() - time.getTime()) / 1000));
  if (seconds < 45) return `${clock}, just now`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${clock}, ${plural(minutes, "minute")} ago`;
  const hours = Math.round(minutes / 60);
  if (hours < 24) return `${clock}, ${plural(hours, "hour")} ago`;
  return `${time.toLocaleDateString("en-GB")} ${clock}, ${plural(Math.round(hours / 24), "day")} ago`;
}

/** The full date, for `title`. @param {Date} time */
export const fullDate = (time) =>
  time.toLocaleString("en-GB", { dateStyle: "full", timeStyle: "long" });

export const isMac = typeof navigator !== "undefined" && /Mac|iP(hone|ad)/.test(navigator.platform);

/** Keys as the keyboard has them: `Mod+Shift+Enter`. @param {string} keys */
export function keyText(keys) {
  const names = isMac
    ? { Mod: "⌘", Shift: "⇧", Alt: "⌥", Enter: "↵" }
    : { Mod: "Ctrl", Enter: "↵" };
  return keys
    .split("+")
    .map((part) => names[/** @type {keyof typeof names} */ (part)] ?? part)
    .join(isMac ? "" : " ");
}

/** Whether all words of a query occur in a text. @param {string} text @param {string} query */
export function matches(text, query) {
  const all = text.toLowerCase();
  return query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word));
}
