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
    if (value) parts.push(`${name}=${encodeURIComponent(value).replace(/%2F/g, "/").replace(/%3A/g, ":")}`);
  }
  return `#/${page}${parts.length > 0 ? `?${parts.join("&")}` : ""}`;
}

/** @type {Signal<Place>} where we are */
export const place = signal(parse(typeof location === "undefined" ? "" : location.hash));

export const page = computed(() => place.value.page);

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
  if (hash === location.hash) return;
  if (replace) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  place.value = parse(hash);
}

/** The address of a place, for links. @param {Partial<Place>} change */
export const href = (change) => format({ ...place.value, rest: {}, ...change });

/** @param {() => boolean} intercept takes what is no place, such as a fresh link */
export function startRouter(intercept) {
  const moved = () => {
    if (!intercept()) place.value = parse(location.hash);
  };
  addEventListener("popstate", moved);
  addEventListener("hashchange", moved);
  place.value = parse(location.hash);
}
