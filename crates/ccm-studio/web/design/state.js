// The form of the selected resource, as the engine sees it.
import { effect, signal } from "../vendor/preact.js";
import { ApiError, aborted } from "../core/api.js";
import { current, facts, handleOf, selected } from "../core/store.js";

/**
 * @type {Signal<{handle: string | number, form: Form | null, revision: number, error: string |
 *   null} | null>} `revision`: that of the text which the form is about
 */
export const shown = signal(null);

/** @type {AbortController | null} */
let asked = null;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let soon;
let lastAsked = 0;
/** Arrow keys that repeat choose faster than forms are worth asking for. */
const PAUSE = 60;

/** Asks for the form whenever another resource is selected or the text was checked. */
export function followSelection() {
  return effect(() => {
    const doc = current.value;
    const entry = selected.value;
    const checked = doc?.check.value;
    asked?.abort();
    clearTimeout(soon);
    if (!doc || !entry || !checked || doc.broken.value) {
      if (!entry) shown.value = null;
      return;
    }
    const handle = handleOf(entry);
    const wait = performance.now() - lastAsked < PAUSE ? PAUSE : 0;
    lastAsked = performance.now();
    if (wait === 0) void ask(doc, handle);
    else soon = setTimeout(() => void ask(doc, handle), wait);
  });
}

/** Gives up asking; the form says so. */
export function stopAsking() {
  asked?.abort();
  const entry = selected.peek();
  if (entry) {
    shown.value = {
      handle: handleOf(entry),
      form: null,
      revision: 0,
      error: "Stopped. Choose the resource again to load its form.",
    };
  }
}

/** @param {OpenFile} doc @param {string | number} handle */
async function ask(doc, handle) {
  const request = new AbortController();
  asked = request;
  const revision = doc.check.peek()?.revision ?? 0;
  try {
    const form = await doc.ask(
      "form",
      doc.checked,
      { path: doc.path.peek(), resource: handle, ...(facts.peek() ? { facts: facts.peek() } : {}) },
      { signal: request.signal },
    );
    if (asked === request) shown.value = { handle, form, revision, error: null };
  } catch (error) {
    if (aborted(error) || asked !== request) return;
    const message = error instanceof ApiError ? error.message : "The server cannot be reached";
    const last = shown.peek();
    shown.value =
      last?.handle === handle
        ? { ...last, error: message }
        : { handle, form: null, revision: 0, error: message };
  }
}
