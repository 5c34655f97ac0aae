// Who we are: the link's token is exchanged for a key, once.
//
// The token is in the fragment, so no request carries it. It is taken out of
// the address before anything else happens. The key stays in the storage of
// this origin: a cookie would be sent to other ports of the machine too.
import { signal } from "../vendor/preact.js";
import { readdress } from "./router.js";

const STORED = "ccm-studio-key";

/** @type {Signal<string | null>} why there is no key; null while there is one */
export const refused = signal(null);

let current = read();

export const key = () => current;

function read() {
  try {
    return localStorage.getItem(STORED) ?? "";
  } catch {
    return "";
  }
}

/** @param {string} value */
function keep(value) {
  current = value;
  try {
    localStorage.setItem(STORED, value);
  } catch {
    // Without storage the key lasts as long as the page.
  }
}

/**
 * Takes the token out of the address, and leaves no trace of it in the history.
 * @param {string} before where the page was, for its address
 */
export function takeToken(before) {
  const found = location.hash.match(/^#token=([\w.~-]+)(?:&(.*))?$/);
  if (!found) return null;
  const rest = found[2] ? `#${decodeURIComponent(found[2])}` : before;
  readdress(rest);
  return found[1] ?? null;
}

/**
 * Exchanges a token for a key. The unsaved text of the page is not touched.
 * @param {string} token
 */
export async function exchange(token) {
  const response = await fetch("/api/v1/session", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token }),
    cache: "no-store",
    credentials: "omit",
  });
  const answer = await response.json();
  if (!response.ok) {
    refused.value = answer.error?.code ?? "key_wrong";
    return false;
  }
  keep(answer.key);
  refused.value = null;
  return true;
}

/** A request was refused for want of a key. @param {string} code */
export function lostKey(code) {
  refused.value = code;
}
