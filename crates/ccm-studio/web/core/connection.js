// Whether the server is there. While it is not, it is asked every two seconds.
import { signal } from "../vendor/preact.js";

/** @type {Signal<"there" | "gone" | "stopping">} */
export const connection = signal("there");

/** @type {Set<() => void>} */
const returned = new Set();
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/** Calls back when the server has come back. @param {() => void} callback */
export function onReturn(callback) {
  returned.add(callback);
}

/** The server says that it is ending. */
export function stopping() {
  if (connection.value === "there") connection.value = "stopping";
}

/** A request could not be sent. */
export function gone() {
  connection.value = "gone";
  timer ??= setTimeout(retry, 2000);
}

/** A request was answered. */
export function back() {
  if (connection.value !== "gone") return;
  connection.value = "there";
  for (const callback of returned) callback();
}

async function retry() {
  timer = undefined;
  try {
    // Any answer will do, and this one needs no key.
    await fetch("/icon.svg", { cache: "no-store", method: "HEAD" });
    back();
  } catch {
    gone();
  }
}
