// Short notes about what was done, with a way back where there is one.
import { html, signal } from "../vendor/preact.js";
import { alarm, announce } from "../core/announce.js";
import { Icon } from "./icons.js";

/**
 * @typedef {{
 *   id: number, kind: "ok" | "bad" | "info", text: string, hint?: string,
 *   action?: {label: string, run: () => void},
 * }} Toast
 */

/** @type {Signal<Toast[]>} */
const toasts = signal(/** @type {Toast[]} */ ([]));
let count = 0;

/** @param {number} id */
const remove = (id) => {
  toasts.value = toasts.peek().filter((toast) => toast.id !== id);
};

/**
 * @param {string} text
 * @param {{
 *   kind?: "ok" | "bad" | "info", hint?: string, action?: {label: string, run: () => void},
 *   quiet?: boolean,
 * }} [options] errors stay until they are closed
 */
export function toast(text, { kind = "ok", hint, action, quiet = false } = {}) {
  count += 1;
  const id = count;
  /** @type {Toast} */
  const added = { id, kind, text, ...(hint ? { hint } : {}), ...(action ? { action } : {}) };
  toasts.value = [...toasts.peek().slice(-3), added];
  if (!quiet) (kind === "bad" ? alarm : announce)(hint ? `${text}. ${hint}` : text);
  if (kind !== "bad") setTimeout(() => remove(id), action ? 10_000 : 4000);
}

/** Says what went wrong. @param {unknown} error @param {string} doing such as «save web.yaml» */
export function report(error, doing) {
  const known = /** @type {{message?: string, hint?: string, request?: string}} */ (error ?? {});
  const where = known.request ? ` (request ${known.request})` : "";
  toast(`Could not ${doing}: ${known.message ?? String(error)}${where}`, {
    kind: "bad",
    ...(known.hint ? { hint: known.hint } : {}),
  });
}

export function Toasts() {
  if (toasts.value.length === 0) return null;
  return html`<section class="toasts" aria-label="Notes">
    ${toasts.value.map(
      (one) =>
        html`<div key=${one.id} class=${`toast ${one.kind}`}>
          <${Icon} name=${{ ok: "check", bad: "alert", info: "info" }[one.kind]} />
          <div class="bt">
            ${one.text}
            ${one.hint && html`<small>${one.hint}</small>`}
          </div>
          ${
            one.action &&
            html`<button
              type="button"
              class="btn small"
              onClick=${() => {
                remove(one.id);
                one.action?.run();
              }}
            >
              ${one.action.label}
            </button>`
          }
          <button
            type="button"
            class="btn ghost small icon"
            aria-label="Close note"
            onClick=${() => remove(one.id)}
          >
            <${Icon} name="x" />
          </button>
        </div>`,
    )}
  </section>`;
}
