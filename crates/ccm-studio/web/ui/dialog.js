// Dialogs. The focus goes in, stays in, and goes back to where it was.
import { html, signal, useEffect, useLayoutEffect, useRef } from "../vendor/preact.js";
import { Button } from "./parts.js";

/**
 * @type {Signal<{id: number, view: () => Children}[]>} dialogs that are open, the last one on top
 */
export const open = signal(/** @type {{id: number, view: () => Children}[]} */ ([]));
let count = 0;

/**
 * Shows a dialog until it is closed.
 * @template T
 * @param {(close: (result?: T) => void) => Children} view
 * @returns {Promise<T | undefined>} what it was closed with
 */
export function show(view) {
  return new Promise((resolve) => {
    count += 1;
    const id = count;
    const close = (/** @type {T | undefined} */ result) => {
      open.value = open.peek().filter((one) => one.id !== id);
      resolve(result);
    };
    open.value = [...open.peek(), { id, view: () => view(close) }];
  });
}

/** Where `show` puts them. */
export function Dialogs() {
  return html`
    ${open.value.map((one) => html`<${Holder} key=${one.id} view=${one.view} />`)}
  `;
}

/** @param {{view: () => Children}} props */
const Holder = ({ view }) => view();

/**
 * @param {{label: string, onClose: () => void, class?: string, children?: Children}} props
 * The element with `data-autofocus` gets the focus first.
 */
export function Modal({ label, onClose, class: extra = "", children }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const before = useRef(/** @type {Element | null} */ (null));
  useLayoutEffect(() => {
    let active = document.activeElement;
    while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
    before.current = active;
    dialog.current?.showModal();
    /** @type {HTMLElement | null | undefined} */ (
      dialog.current?.querySelector("[data-autofocus]")
    )?.focus();
  }, []);
  useEffect(
    () => () => {
      if (before.current instanceof HTMLElement && before.current.isConnected) {
        before.current.focus();
      }
    },
    [],
  );
  return html`<dialog
    ref=${dialog}
    class=${extra}
    aria-label=${label}
    onCancel=${(/** @type {Event} */ event) => {
      event.preventDefault();
      onClose();
    }}
    onMouseDown=${(/** @type {MouseEvent} */ event) => event.target === dialog.current && onClose()}
  >
    ${children}
  </dialog>`;
}

/**
 * Asks before something is done. The focus is on Cancel.
 * @param {{title: string, body: Children, action: string, kind?: string, cancel?: string}} question
 * @returns {Promise<boolean>}
 */
export async function confirm({ title, body, action, kind = "primary", cancel = "Cancel" }) {
  const answer = await show(
    (close) =>
      html`<${Modal} label=${title} class="ask" onClose=${() => close(false)}>
        <h2>${title}</h2>
        <div class="body">${body}</div>
        <footer>
          <${Button} data-autofocus onClick=${() => close(false)}>
            ${cancel}
          <//>
          <${Button} kind=${kind} onClick=${() => close(true)}>
            ${action}
          <//>
        </footer>
      <//>`,
  );
  return answer === true;
}

/**
 * Asks for one line of text.
 * @param {{
 *   title: string, label: string, value?: string, help?: string, action: string,
 *   check?: (value: string) => string | null,
 * }} question
 * @returns {Promise<string | undefined>}
 */
export function prompt({ title, label, value = "", help, action, check = () => null }) {
  return show(
    (close) => html`<${Prompt} ...${{ title, label, value, help, action, check, close }} />`,
  );
}

/**
 * @param {{
 *   title: string, label: string, value: string, help?: string, action: string,
 *   check: (value: string) => string | null, close: (value?: string) => void,
 * }} props
 */
function Prompt({ title, label, value, help, action, check, close }) {
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const problem = useRef(signal(/** @type {string | null} */ (null))).current;
  useEffect(() => {
    const field = input.current;
    const dot = value.lastIndexOf(".");
    field?.setSelectionRange(value.lastIndexOf("/") + 1, dot > 0 ? dot : value.length);
  }, []);
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    const text = input.current?.value.trim() ?? "";
    problem.value = text ? check(text) : "A name is needed";
    if (problem.value === null) close(text);
    else input.current?.focus();
  };
  return html`<${Modal} label=${title} class="ask" onClose=${() => close()}>
    <form onSubmit=${submit} noValidate>
      <h2>${title}</h2>
      <div class="body">
        <label for="prompt-text">${label}</label>
        <div class=${`in ${problem.value ? "bad" : ""}`}>
          <input
            id="prompt-text"
            ref=${input}
            data-autofocus
            defaultValue=${value}
            spellcheck=${false}
            autocomplete="off"
            aria-invalid=${problem.value ? "true" : undefined}
            aria-describedby="prompt-help"
          />
        </div>
        <p id="prompt-help" class=${problem.value ? "err" : "help"}>
          ${problem.value ?? help}
        </p>
      </div>
      <footer>
        <${Button} onClick=${() => close()}>Cancel<//>
        <button type="submit" class="btn primary">
          ${action}
        </button>
      </footer>
    </form>
  <//>`;
}
