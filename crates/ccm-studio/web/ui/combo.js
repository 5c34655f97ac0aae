// A text field that proposes values, and lets others through.
import { html, useEffect, useId, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { matches } from "../core/words.js";

/**
 * @typedef {object} Option
 * @property {string} value
 * @property {string} [label]
 * @property {string} [detail]
 */

/**
 * @param {{
 *   value: string,
 *   options: Option[] | ((query: string) => Option[] | Promise<Option[]>),
 *   onCommit: (value: string) => void,
 *   only?: boolean,
 *   id?: string, label?: string, describedBy?: string, invalid?: boolean, failed?: boolean,
 *   placeholder?: string,
 *   readOnly?: boolean, openOnFocus?: boolean, onCancel?: () => void, autofocus?: boolean
 * }} props `only`: nothing but an option is taken; `failed`: what was typed stays, as it could not
 *   be taken over; `options` as a function is asked again for each text
 */
export function Combo(props) {
  const { value, options, onCommit, only = false, readOnly = false } = props;
  const own = useId();
  const id = props.id ?? own;
  const [text, setText] = useState(value);
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const [found, setFound] = useState(/** @type {Option[]} */ ([]));
  const typed = useRef(false);
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const list = useRef(/** @type {HTMLUListElement | null} */ (null));

  useEffect(() => {
    if (props.failed) return;
    setText(value);
    typed.current = false;
  }, [value]);
  useEffect(() => {
    if (props.autofocus) input.current?.focus();
  }, []);
  useEffect(() => {
    if (!open) return;
    let valid = true;
    const query = typed.current ? text : "";
    const answer =
      typeof options === "function"
        ? options(query)
        : options.filter((option) => matches(`${option.value} ${option.label ?? ""}`, query));
    void Promise.resolve(answer).then((list) => {
      if (!valid) return;
      setFound(list.slice(0, 200));
      setAt(only && list.length > 0 ? 0 : -1);
    });
    return () => {
      valid = false;
    };
  }, [open, text, options]);
  useLayoutEffect(() => {
    list.current?.children[at]?.scrollIntoView({ block: "nearest" });
  }, [at]);

  /** @param {string} chosen */
  const commit = (chosen) => {
    setOpen(false);
    typed.current = false;
    setText(only ? "" : chosen);
    if (chosen !== value || only) onCommit(chosen);
  };
  /** @param {KeyboardEvent} event */
  const keys = (event) => {
    if (readOnly) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!open) setOpen(true);
      else {
        setAt(
          (found.length + at + (event.key === "ArrowDown" ? 1 : -1)) % Math.max(1, found.length),
        );
      }
    } else if (event.key === "Enter") {
      event.preventDefault();
      const option = open ? found[at] : undefined;
      if (option) commit(option.value);
      else if (!only) commit(text);
    } else if (event.key === "Escape" && (open || typed.current)) {
      event.preventDefault();
      event.stopPropagation();
      setOpen(false);
      setText(value);
      typed.current = false;
    } else if (event.key === "Escape" && props.onCancel) {
      event.preventDefault();
      props.onCancel();
    }
  };
  const shown = open && found.length > 0;
  return html`<div class="combo">
    <input
      ref=${input}
      id=${id}
      value=${text}
      role="combobox"
      aria-expanded=${shown ? "true" : "false"}
      aria-controls=${`${id}-list`}
      aria-autocomplete="list"
      aria-activedescendant=${shown && at >= 0 ? `${id}-${at}` : undefined}
      aria-label=${props.label}
      aria-describedby=${props.describedBy}
      aria-invalid=${props.invalid ? "true" : undefined}
      readOnly=${readOnly}
      placeholder=${props.placeholder}
      spellcheck=${false}
      autocomplete="off"
      onInput=${(/** @type {Event} */ event) => {
        typed.current = true;
        setText(/** @type {HTMLInputElement} */ (event.currentTarget).value);
        setOpen(true);
      }}
      onFocus=${() => props.openOnFocus && !readOnly && setOpen(true)}
      onClick=${() => !readOnly && setOpen(true)}
      onKeyDown=${keys}
      onBlur=${() => {
        setOpen(false);
        if (!only && typed.current) commit(text);
        else if (only) props.onCancel?.();
      }}
    />
    <ul
      id=${`${id}-list`}
      ref=${list}
      class="options"
      role="listbox"
      aria-label=${props.label ?? "Proposals"}
      hidden=${!shown}
    >
      ${found.map(
        (option, index) =>
          html`<li
            key=${option.value}
            id=${`${id}-${index}`}
            role="option"
            aria-selected=${index === at ? "true" : "false"}
            onMouseDown=${(/** @type {Event} */ event) => {
              event.preventDefault();
              commit(option.value);
            }}
          >
            <span class="bidi">${option.label ?? option.value}</span>
            ${option.detail && html`<small>${option.detail}</small>`}
          </li>`,
      )}
    </ul>
  </div>`;
}
