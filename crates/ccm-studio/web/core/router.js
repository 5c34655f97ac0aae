// Addresses: `#/page?file=…&resource=…`. They hold names, never content or keys.
import { computed, signal } from "../vendor/preact.js";

/**
 * @typedef {object} Place
 * @property {string} page
 * @property {string} file
 * @property {string} resource
 * @property {Record<string, string>} rest what else a page keeps in its address
 */

/** @param {string} hash @returns {Place} */
export function parse(hash) {
  const [, page = "", query = ""] = hash.match(/^#\/([a-z]*)\??(.*)$/) ?? [];
  const { file = "", resource = "", ...rest } = Object.fromEntries(new URLSearchParams(query));
  return { page: page || "design", file, resource, rest };
}

/** @param {Partial<Place>} place */
export function format({ page = "design", file, resource, rest = {} }) {
  const parts = [];
  const all = { file, resource, ...rest };
  for (const [name, value] of Object.entries(all)) {
    // Slashes, colons and hashes of names stay readable.
    if (value) {
      parts.push(`${name}=${encodeURIComponent(value).replace(/%2F/g, "/").replace(/%3A/g, ":")}`);
    }
  }
  return `#/${page}${parts.length > 0 ? `?${parts.join("&")}` : ""}`;
}

/** @type {Signal<Place>} where we are */
export const place = signal(parse(typeof location === "undefined" ? "" : location.hash));

export const page = computed(() => place.value.page);

/** What shows a file is drawn anew for another one, not for another resource of it. */
export const file = computed(() => place.value.file);

/**
 * Goes elsewhere. Parts that are left out stay; `rest` is the page's own and
 * does not follow to another one.
 * @param {Partial<Place>} change
 * @param {{replace?: boolean}} [options] `replace`: no step for Back, as when a cursor moves
 */
export function go(change, { replace = false } = {}) {
  const now = place.value;
  const same = !change.page || change.page === now.page;
  const next = { ...now, ...(same ? {} : { rest: {} }), ...change };
  const hash = format(next);
  if (hash === format(now)) return;
  place.value = parse(hash);
  if (replace) {
    clearTimeout(late);
    late = setTimeout(() => writeAddress(), PAUSE);
  } else {
    writeAddress(now);
    history.pushState(null, "", hash);
    known = location.hash;
  }
}

/**
 * The address is written when choosing pauses: each time the browser loads the icon again, and it
 * refuses addresses that change too often.
 */
const PAUSE = 200;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let late;
/** The address as we know it: one that someone else wrote is not ours to replace. */
let known = "";

function writeAddress(where = place.peek()) {
  clearTimeout(late);
  late = undefined;
  const hash = format(where);
  if (hash === known || location.hash !== known) return;
  history.replaceState(null, "", hash);
  known = location.hash;
}

/** Puts another address into the place of the one that is shown. @param {string} hash */
export function readdress(hash) {
  history.replaceState(null, "", hash);
  known = location.hash;
  place.value = parse(known);
}

/** The address of a place, for links. @param {Partial<Place>} change */
export const href = (change) => format({ ...place.value, rest: {}, ...change });

/** @param {() => boolean} intercept takes what is no place, such as a fresh link */
export function startRouter(intercept) {
  const moved = () => {
    if (intercept()) return;
    known = location.hash;
    place.value = parse(known);
  };
  addEventListener("popstate", moved);
  addEventListener("hashchange", moved);
  known = location.hash;
  place.value = parse(known);
}
