// Several texts side by side, each with a way out, and a way to add.
import { html, useState } from "../vendor/preact.js";
import { Combo } from "./combo.js";
import { Icon } from "./icons.js";

/** @typedef {Option[] | ((query: string) => Option[])} Options */

/**
 * @param {{
 *   values: string[], options: Options, onChange: (values: string[]) => void,
 *   onOpen?: (value: string) => void, label: string, labelledBy?: string, describedBy?: string,
 *   readOnly?: boolean, inherited?: boolean,
 *   only?: boolean, bad?: (value: string) => boolean
 * }} props `Alt+←` and `Alt+→` move a chip
 */
export function Chips({
  values,
  options,
  onChange,
  onOpen,
  label,
  labelledBy,
  describedBy,
  readOnly = false,
  inherited = false,
  only = false,
  bad = () => false,
}) {
  const [adding, setAdding] = useState(false);
  const isLeft = (/** @type {Option} */ option) => !values.includes(option.value);
  const left =
    typeof options === "function"
      ? (/** @type {string} */ query) => options(query).filter(isLeft)
      : options.filter(isLeft);
  /** @param {KeyboardEvent} event @param {number} index */
  const keys = (event, index) => {
    if (readOnly) return;
    const step = event.altKey
      ? { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key]
      : undefined;
    const to = index + (step ?? 0);
    if (step && to >= 0 && to < values.length) {
      event.preventDefault();
      const next = [...values];
      next.splice(to, 0, ...next.splice(index, 1));
      onChange(next);
    } else if (event.key === "Delete" || event.key === "Backspace") {
      event.preventDefault();
      event.stopPropagation();
      onChange(values.filter((_, at) => at !== index));
    }
  };
  return html`<div
    class=${`chips ${inherited ? "inherit" : ""}`}
    role="group"
    aria-label=${labelledBy ? undefined : label}
    aria-labelledby=${labelledBy}
    aria-describedby=${describedBy}
  >
    ${values.map(
      (value, index) =>
        html`<span
          key=${`${index}-${value}`}
          class=${`chip ${bad(value) ? "bad" : ""}`}
          onKeyDown=${(/** @type {KeyboardEvent} */ event) => keys(event, index)}
        >
          ${
            onOpen
              ? html`<button
                type="button"
                class="go bidi"
                title=${`Go to ${value}`}
                onClick=${() => onOpen(value)}
              >
                ${value}
              </button>`
              : html`<span class="bidi">${value}</span>`
          }
          ${
            !readOnly &&
            html`<button
              type="button"
              aria-label=${`Remove ${value} from ${label}`}
              onClick=${() => onChange(values.filter((_, at) => at !== index))}
            >
              <${Icon} name="x" />
            </button>`
          }
        </span>`,
    )}
    ${
      !readOnly &&
      (adding
        ? html`<span class="chip edit">
          <${Combo}
            value=""
            options=${left}
            only=${only}
            openOnFocus
            autofocus
            label=${`Add to ${label}`}
            onCommit=${(/** @type {string} */ value) => {
              setAdding(false);
              if (value && !values.includes(value)) onChange([...values, value]);
            }}
            onCancel=${() => setAdding(false)}
          />
        </span>`
        : html`<button type="button" class="chip add" onClick=${() => setAdding(true)}>
          <${Icon} name="plus" />
          Add<span class="sr"> to ${label}</span>
        </button>`)
    }
  </div>`;
}
