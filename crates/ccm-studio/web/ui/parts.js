// The smallest parts: buttons, pills, banners, segmented controls, tabs.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { keyText } from "../core/words.js";
import { Icon } from "./icons.js";

/**
 * @param {{
 *   icon?: string, label?: string, keys?: string, title?: string, kind?: string, class?: string,
 *   small?: boolean, disabled?: boolean, pressed?: boolean, expanded?: boolean, onClick?: (event:
 *   MouseEvent) => void, children?: Children,
 *   [more: string]: unknown
 * }} props `label`: the name of a button that shows only an icon; `disabled` keeps it reachable,
 *   with `title` as its reason
 */
export function Button({
  icon,
  label,
  keys,
  title,
  kind = "",
  class: extra = "",
  small = false,
  disabled = false,
  onClick,
  children,
  ...rest
}) {
  const classes = ["btn", kind, small ? "small" : "", children ? "" : "icon", extra]
    .filter(Boolean)
    .join(" ");
  const tip = title ?? (label && keys ? `${label} (${keyText(keys)})` : label);
  return html`<button
    type="button"
    class=${classes}
    aria-label=${label}
    title=${tip}
    aria-disabled=${disabled ? "true" : undefined}
    onClick=${(/** @type {MouseEvent} */ event) =>
      disabled ? event.preventDefault() : onClick?.(event)}
    ...${rest}
  >
    ${icon && html`<${Icon} name=${icon} />`}
    ${children && html`<span class="tx">${children}</span>`}
    ${children && keys && html`<kbd aria-hidden="true">${keyText(keys)}</kbd>`}
  </button>`;
}

/** What stands in the field of an event. @param {Event} event */
export const typed = (event) => /** @type {HTMLInputElement} */ (event.currentTarget).value;

/**
 * @param {{kind?: string, icon?: string, square?: boolean, title?: string, children?: Children}}
 *   props
 */
export function Pill({ kind = "", icon, square = false, title, children }) {
  return html`<span class=${`pill ${kind} ${square ? "sq" : ""}`} title=${title}>
    ${icon && html`<${Icon} name=${icon} />`}
    ${children}
  </span>`;
}

/**
 * What must be known before going on. `actions` are buttons.
 * @param {{kind?: "info" | "warn" | "bad", children?: Children, actions?: Children}} props
 */
export function Banner({ kind = "info", children, actions }) {
  const icon = { info: "info", warn: "warn", bad: "alert" }[kind];
  return html`<div class=${`banner ${kind}`} role=${kind === "bad" ? "alert" : "status"}>
    <${Icon} name=${icon} />
    <div class="bt">${children}</div>
    ${actions && html`<div class="acts">${actions}</div>`}
  </div>`;
}

/**
 * What stands where nothing is yet.
 * @param {{icon?: string, title: string, children?: Children}} props
 */
export function Empty({ icon = "info", title, children }) {
  return html`<div class="empty">
    <${Icon} name=${icon} />
    <h2>${title}</h2>
    ${children}
  </div>`;
}

/**
 * Bars of the size of what is loading. After two seconds it says what that is,
 * and offers to stop it.
 * @param {{rows?: number, label: string, onStop?: (() => void) | undefined}} props
 */
export function Skeleton({ rows = 6, label, onStop }) {
  const [slow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), 2000);
    return () => clearTimeout(timer);
  }, []);
  return html`<div class="skeleton" role="status" aria-label=${label}>
    ${
      slow &&
      html`<p class="row">
        <span class="muted">${label} …</span>
        ${
          onStop &&
          html`<${Button} small icon="stop" onClick=${onStop}>
            Stop
          <//>`
        }
      </p>`
    }
    ${Array.from({ length: rows }, (_, row) => html`<i key=${row}></i>`)}
  </div>`;
}

/**
 * What stands where an answer will be.
 * @param {{asked: import("../core/asked.js").Stoppable, label: string, rows?: number}} props
 */
export function Loading({ asked, label, rows = 6 }) {
  if (!asked.stopped) return html`<${Skeleton} rows=${rows} label=${label} onStop=${asked.stop} />`;
  return html`<p class="row pad">
    <span class="muted">Stopped</span>
    <${Button} small icon="redo" onClick=${asked.again}>
      Try again
    <//>
  </p>`;
}

/**
 * One of a few, side by side.
 * @template {string} T
 * @param {{
 *   value: T, options: {value: T, label: string, title?: string}[], onChange: (value: T) => void,
 *   label?: string, labelledBy?: string, describedBy?: string, disabled?: boolean,
 *   inherited?: boolean,
 * }} props
 */
export function Segmented({
  value,
  options,
  onChange,
  label,
  labelledBy,
  describedBy,
  disabled = false,
  inherited = false,
}) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const chosen = Math.max(
    0,
    options.findIndex((option) => option.value === value),
  );
  /** @param {KeyboardEvent} event */
  const keys = (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step || disabled || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const next = (chosen + step + options.length) % options.length;
    const option = options[next];
    if (option) onChange(option.value);
    /** @type {HTMLElement | undefined} */ (box.current?.children[next])?.focus();
  };
  return html`<div
    ref=${box}
    class=${`seg ${inherited ? "inherit" : ""}`}
    role="radiogroup"
    aria-label=${label}
    aria-labelledby=${labelledBy}
    aria-describedby=${describedBy}
    aria-disabled=${disabled ? "true" : undefined}
    onKeyDown=${keys}
  >
    ${options.map(
      (option, index) =>
        html`<button
          key=${option.value}
          type="button"
          role="radio"
          aria-checked=${option.value === value ? "true" : "false"}
          tabindex=${index === chosen ? 0 : -1}
          title=${option.title}
          disabled=${disabled}
          onClick=${() => onChange(option.value)}
        >
          ${option.label}
        </button>`,
    )}
  </div>`;
}

/**
 * @param {{
 *   id: string, label: string, tabs: {id: string, label: string, count?: number, bad?: boolean}[],
 *   value: string, onChange: (id: string) => void,
 * }} props
 * The panel of a tab has the id `${id}-${tab.id}` and `role="tabpanel"`.
 */
export function Tabs({ id, label, tabs, value, onChange }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  /** @param {KeyboardEvent} event */
  const keys = (event) => {
    const at = tabs.findIndex((tab) => tab.id === value);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = (to + tabs.length) % tabs.length;
    const tab = tabs[next];
    if (tab) onChange(tab.id);
    /** @type {HTMLElement | undefined} */ (box.current?.children[next])?.focus();
  };
  return html`<div ref=${box} class="tabs" role="tablist" aria-label=${label} onKeyDown=${keys}>
    ${tabs.map(
      (tab) =>
        html`<button
          key=${tab.id}
          type="button"
          role="tab"
          id=${`${id}-tab-${tab.id}`}
          aria-controls=${tab.id === value ? `${id}-${tab.id}` : undefined}
          aria-selected=${tab.id === value ? "true" : "false"}
          tabindex=${tab.id === value ? 0 : -1}
          onClick=${() => onChange(tab.id)}
        >
          ${tab.label}
          ${
            tab.count !== undefined &&
            html`
              ${" "}
              <span class=${`count ${tab.bad ? "bad" : ""}`}>${tab.count}</span>
            `
          }
        </button>`,
    )}
  </div>`;
}
