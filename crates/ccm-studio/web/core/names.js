// Names that the form and the text propose: users and groups of this machine,
// facts, and keys of the manifest's data.
import { get, post } from "./api.js";
import { current, facts } from "./store.js";

/** @typedef {{value: string, detail?: string}} Name */

/** More than this are not looked through. */
const MOST = 3000;

/** @type {Promise<Api.Names> | null} */
let accounts = null;

/** Users or groups. @param {"user" | "group"} kind @returns {Promise<Name[]>} */
export async function accountNames(kind) {
  accounts ??= get("names");
  try {
    const found = await accounts;
    return (kind === "user" ? found.users : found.groups).map((value) => ({ value }));
  } catch {
    // Without proposals a name can still be typed.
    accounts = null;
    return [];
  }
}

/** @type {Promise<Name[]> | null} */
let known = null;
let about = "";

/** What an expression can name: facts, and data of the open file. @returns {Promise<Name[]>} */
export async function expressionNames() {
  const document = current.peek();
  const choice = facts.peek();
  const now = JSON.stringify([document?.path.peek(), document?.revision.peek(), choice]);
  if (now !== about) {
    about = now;
    known = ask(document, choice);
  }
  return (await known) ?? [];
}

/** @param {OpenFile | null} document @param {FactsChoice | undefined} choice */
async function ask(document, choice) {
  const data = document
    ? post("data", {
        path: document.path.peek(),
        text: document.text(),
        ...(choice ? { facts: choice } : {}),
      })
    : Promise.resolve(null);
  const [machine, own] = await Promise.all([
    get("facts").catch(() => null),
    data.catch(() => null),
  ]);
  return [...paths(own?.data ?? {}, "Data"), ...paths(machine?.facts ?? {}, "Facts")];
}

/**
 * The paths of the leaves of a value.
 * @param {any} value
 * @param {string} prefix
 * @param {Name[]} [found]
 * @returns {Name[]}
 */
export function paths(value, prefix, found = []) {
  for (const [key, child] of Object.entries(value)) {
    // Names that need quotes are not proposed.
    if (!/^[A-Za-z_]\w*$/.test(key) || found.length >= MOST) continue;
    const path = `${prefix}.${key}`;
    if (child !== null && typeof child === "object" && !Array.isArray(child)) {
      paths(child, path, found);
    } else found.push({ value: path, detail: JSON.stringify(child)?.slice(0, 40) ?? "" });
  }
  return found;
}

/**
 * The name that is being typed in an expression.
 * @param {string} before the text before the cursor
 * @param {boolean} [all] whether all of it is an expression, not only what stands in placeholders
 * @returns {string | null} null outside of expressions
 */
export function typedName(before, all = false) {
  const inside = all ? before : before.match(/\{\{[^{}]*$/)?.[0];
  if (inside === undefined) return null;
  return inside.match(/[A-Za-z_][\w.]*$/)?.[0] ?? "";
}

/**
 * Names that hold what was typed, those that begin with it first.
 * @param {Name[]} names
 * @param {string} typed
 */
export function matching(names, typed) {
  const query = typed.toLowerCase();
  const found = names.filter((name) => name.value.toLowerCase().includes(query));
  const begins = (/** @type {Name} */ name) => Number(name.value.toLowerCase().startsWith(query));
  return found.sort((a, b) => begins(b) - begins(a)).slice(0, 50);
}
