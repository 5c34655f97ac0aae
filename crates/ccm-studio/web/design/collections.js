// The controls of the form for lists, maps and structures, nested to any depth.
import { html, useRef, useState } from "../vendor/preact.js";
import { Icon } from "../ui/icons.js";
import { Button } from "../ui/parts.js";
import { TextControl, hasPlaceholder, tinted } from "./controls.js";
import { Control, labelled } from "./field.js";

/** @typedef {import("./controls.js").ControlProps} ControlProps */

/**
 * A field for what is inside of another one.
 * @param {Partial<Field> & {name: string, shape: string}} field
 * @returns {Field}
 */
const inner = (field) => ({
  doc: "",
  aliases: [],
  phase: "parse",
  secret: false,
  required: false,
  conflicts: [],
  ...field,
});

/** @param {Field} field @returns {Field} */
const itemOf = (field) =>
  inner({
    ...(field.items ?? { shape: "text" }),
    name: field.name,
    ...(field.format ? { format: field.format } : {}),
    ...(field.words ? { words: field.words } : {}),
    secret: field.secret,
  });

/** @param {any[]} list @param {number} from @param {number} to */
export function moved(list, from, to) {
  const next = [...list];
  next.splice(to, 0, ...next.splice(from, 1));
  return next;
}

/** Rows with add, remove and move. @param {ControlProps} props */
export function ListControl(props) {
  const { field, value, inherited, readOnly, id, describedBy, onChange } = props;
  const values = Array.isArray(value)
    ? value
    : value === undefined || value === null
      ? []
      : [value];
  const [adding, setAdding] = useState(false);
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const item = itemOf(field);
  const structured = item.shape === "struct";
  const change = (/** @type {any[]} */ next) => onChange(next.length > 0 ? next : undefined);
  /** @param {KeyboardEvent} event @param {number} index */
  const keys = (event, index) => {
    const step = event.altKey ? { ArrowUp: -1, ArrowDown: 1 }[event.key] : undefined;
    if (!step || readOnly || index + step < 0 || index + step >= values.length) return;
    event.preventDefault();
    event.stopPropagation();
    change(moved(values, index, index + step));
  };
  const one = (
    /** @type {any} */ shown,
    /** @type {number} */ index,
    /** @type {(value: any) => void} */ set,
  ) =>
    html`<${Control}
      ...${props}
      field=${item}
      value=${shown}
      id=${`${id}-${index}`}
      describedBy=${describedBy}
      label=${`${field.name} ${index + 1}`}
      onChange=${set}
    />`;
  return html`<div
    class=${`rows ${inherited ? "inherit" : ""} ${structured ? "cards" : ""}`}
    role="group"
    aria-labelledby=${`${id}-label`}
    ref=${box}
  >
    ${values.map(
      (shown, index) =>
        html`<div
          key=${index}
          class="row"
          onKeyDown=${(/** @type {KeyboardEvent} */ event) => keys(event, index)}
        >
          <div class="cell">
            ${one(shown, index, (next) =>
              change(
                next === undefined
                  ? values.filter((_, at) => at !== index)
                  : values.map((old, at) => (at === index ? next : old)),
              ),
            )}
          </div>
          ${
            !readOnly &&
            html`<span class="rowacts">
              <${Button}
                small
                kind="ghost"
                icon="up"
                label=${`Move ${field.name} ${index + 1} up`}
                disabled=${index === 0}
                onClick=${() => change(moved(values, index, index - 1))}
              />
              <${Button}
                small
                kind="ghost"
                icon="dn"
                label=${`Move ${field.name} ${index + 1} down`}
                disabled=${index === values.length - 1}
                onClick=${() => change(moved(values, index, index + 1))}
              />
              <${Button}
                small
                kind="ghost"
                icon="x"
                label=${`Remove ${field.name} ${index + 1}`}
                onClick=${() => change(values.filter((_, at) => at !== index))}
              />
            </span>`
          }
        </div>`,
    )}
    ${
      adding &&
      html`<div class="row">
        <div class="cell">
          ${one(undefined, values.length, (next) => {
            setAdding(false);
            if (next !== undefined) change([...values, next]);
          })}
        </div>
        <${Button} small kind="ghost" icon="x" label="Do not add" onClick=${() => setAdding(false)} />
      </div>`
    }
    ${
      !readOnly &&
      html`<button
        type="button"
        class="chip add"
        onClick=${() => {
          setAdding(true);
          requestAnimationFrame(() =>
            /** @type {HTMLElement | null} */ (
              document.getElementById(`${id}-${values.length}`) ??
                box.current?.querySelector(`[id^="${CSS.escape(`${id}-${values.length}`)}"]`)
            )?.focus(),
          );
        }}
      >
        <${Icon} name="plus" />
        Add<span class="sr"> to ${field.name}</span>
      </button>`
    }
  </div>`;
}

/** Keys and values. @param {ControlProps & {label?: string}} props */
export function MapControl(props) {
  const { field, value, inherited, readOnly, id, onChange } = props;
  if (hasPlaceholder(value)) return html`<${TextControl} ...${props} />`;
  const entries =
    value && typeof value === "object" && !Array.isArray(value) ? Object.entries(value) : [];
  const [fresh, setFresh] = useState("");
  const change = (/** @type {[string, any][]} */ next) =>
    onChange(next.length > 0 ? Object.fromEntries(next) : undefined);
  const texts = field.shape === "texts";
  const add = () => {
    const key = fresh.trim();
    if (!key || entries.some(([known]) => known === key)) return;
    setFresh("");
    change([...entries, [key, ""]]);
    requestAnimationFrame(() => document.getElementById(`${id}-v-${key}`)?.focus());
  };
  return html`<div class=${`rows map ${inherited ? "inherit" : ""}`} role="group" aria-label=${field.name}>
    ${entries.map(([key, shown]) => {
      const nested = shown !== null && typeof shown === "object";
      const set = (/** @type {any} */ next) =>
        change(
          entries.map(([known, old]) => [
            known,
            known === key
              ? next === undefined
                ? nested
                  ? Array.isArray(shown)
                    ? []
                    : {}
                  : ""
                : next
              : old,
          ]),
        );
      return html`<div key=${key} class=${`row ${nested ? "nested" : ""}`}>
        <div class="key">
          <input
            class="mono"
            aria-label=${`Key ${key} of ${field.name}`}
            defaultValue=${key}
            readOnly=${readOnly}
            spellcheck=${false}
            onBlur=${(/** @type {Event} */ event) => {
              const input = /** @type {HTMLInputElement} */ (event.currentTarget);
              const next = input.value.trim();
              if (!next || next === key || entries.some(([known]) => known === next)) {
                input.value = key;
              } else change(entries.map(([known, old]) => [known === key ? next : known, old]));
            }}
          />
        </div>
        <div class="cell">
          <${Value}
            ...${props}
            shown=${shown}
            texts=${texts}
            id=${`${id}-v-${key}`}
            label=${`${field.name}: ${key}`}
            onChange=${set}
          />
        </div>
        ${
          !readOnly &&
          html`<${Button}
            small
            kind="ghost"
            icon="x"
            label=${`Remove ${key} from ${field.name}`}
            onClick=${() => change(entries.filter(([known]) => known !== key))}
          />`
        }
      </div>`;
    })}
    ${
      !readOnly &&
      html`<div class="row new">
        <div class="key">
          <input
            class="mono"
            id=${`${id}-new`}
            aria-label=${`New key of ${field.name}`}
            placeholder="key"
            value=${fresh}
            spellcheck=${false}
            onInput=${(/** @type {Event} */ event) =>
              setFresh(/** @type {HTMLInputElement} */ (event.currentTarget).value)}
            onKeyDown=${(/** @type {KeyboardEvent} */ event) => {
              if (event.key !== "Enter") return;
              event.preventDefault();
              add();
            }}
          />
        </div>
        <${Button}
          small
          kind="ghost"
          icon="plus"
          label=${`Add the key to ${field.name}`}
          disabled=${fresh.trim() === ""}
          onClick=${add}
        />
      </div>`
    }
  </div>`;
}

/**
 * Keys with secret values. The server sends neither, so a value is set without
 * the others being known.
 * @param {ControlProps} props
 */
export function SecretMapControl({
  field,
  hidden = false,
  readOnly,
  describedBy,
  onChange,
  onInside,
}) {
  const [key, setKey] = useState("");
  const [value, setValue] = useState("");
  const set = () => {
    if (!key.trim() || !value) return;
    if (hidden) onInside?.(key.trim(), value);
    else onChange({ [key.trim()]: value });
    setKey("");
    setValue("");
  };
  const input = (/** @type {Event} */ event) =>
    /** @type {HTMLInputElement} */ (event.currentTarget).value;
  const enter = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    set();
  };
  return html`<form
    class="rows map"
    aria-label=${field.name}
    onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}
  >
    ${
      hidden &&
      html`<p class="none">Set, and hidden. Setting a key replaces its value and keeps the others.</p>`
    }
    ${
      !readOnly &&
      html`<div class="row new">
        <div class="key">
          <input
            class="mono"
            aria-label=${`Key of ${field.name}`}
            aria-describedby=${describedBy}
            placeholder="key"
            value=${key}
            spellcheck=${false}
            onInput=${(/** @type {Event} */ event) => setKey(input(event))}
            onKeyDown=${enter}
          />
        </div>
        <div class="cell">
          <div class="in">
            <input
              type="password"
              aria-label=${`Value for ${field.name}`}
              placeholder="value"
              autocomplete="off"
              value=${value}
              onInput=${(/** @type {Event} */ event) => setValue(input(event))}
              onKeyDown=${enter}
            />
          </div>
        </div>
        <${Button}
          small
          kind="ghost"
          icon="plus"
          label=${`Set the key of ${field.name}`}
          disabled=${!key.trim() || !value}
          onClick=${set}
        />
        ${
          hidden &&
          html`<${Button}
            small
            kind="ghost"
            icon="trash"
            label=${`Remove ${field.name}`}
            onClick=${() => onChange(undefined)}
          />`
        }
      </div>`
    }
  </form>`;
}

/**
 * A value of any kind, by what it is.
 * @param {ControlProps & {shown: any, texts: boolean, label: string}} props
 */
function Value({ shown, texts, label, ...props }) {
  if (Array.isArray(shown)) {
    return html`<${ListControl}
      ...${props}
      field=${inner({ name: label, shape: "list", items: { shape: "data" } })}
      value=${shown}
    />`;
  }
  if (shown !== null && typeof shown === "object") {
    return html`<${MapControl} ...${props} field=${inner({ name: label, shape: "data" })} value=${shown} />`;
  }
  return labelled(
    label,
    html`<${TextControl}
      ...${props}
      field=${inner({ name: label, shape: "text", phase: "parse", secret: props.field.secret })}
      value=${shown}
      convert=${texts ? undefined : fromText}
    />`,
    props.id,
  );
}

/** Of free data, what reads as a number or a word of YAML stays one. @param {string} text */
export function fromText(text) {
  if (/^-?(0|[1-9]\d{0,14})(\.\d+)?$/.test(text)) return Number(text);
  if (text === "true" || text === "false") return text === "true";
  return text;
}

/**
 * A value of data: a map, a list or a single one.
 * @param {ControlProps & {label?: string}} props
 */
export function DataControl(props) {
  const { value, field, id } = props;
  if (Array.isArray(value)) {
    return html`<${ListControl}
      ...${props}
      field=${inner({ name: field.name, shape: "list", items: { shape: "data" } })}
    />`;
  }
  // Inside of lists a value may be single; a property of data is a map.
  if (value === undefined || (value !== null && typeof value === "object")) {
    if (props.label !== undefined && value === undefined) {
      return labelled(props.label, html`<${TextControl} ...${props} convert=${fromText} />`, id);
    }
    return html`<${MapControl} ...${props} />`;
  }
  return labelled(
    props.label ?? field.name,
    html`<${TextControl} ...${props} convert=${fromText} />`,
    id,
  );
}

/** The same form inside. @param {ControlProps} props */
export function StructControl(props) {
  const { field, value, id, onChange } = props;
  const now = value && typeof value === "object" ? value : {};
  const set = (/** @type {string} */ name, /** @type {any} */ next) => {
    const { [name]: _, ...rest } = now;
    const all = next === undefined ? rest : { ...now, [name]: next };
    onChange(Object.keys(all).length > 0 ? all : undefined);
  };
  return html`<div class="struct" role="group" aria-label=${field.name}>
    ${(field.fields ?? field.items?.fields ?? []).map((/** @type {Field} */ part) => {
      const simple =
        ["list", "texts", "data", "struct", "rules"].includes(part.shape) ||
        part.shape === "boolean" ||
        (part.words?.length ?? 9) <= 4;
      return html`<div key=${part.name} class="f sub">
          ${
            simple
              ? html`<span class="l" id=${`${id}-${part.name}-label`}>
                ${part.name}
              </span>`
              : html`<label for=${`${id}-${part.name}`} id=${`${id}-${part.name}-label`}>
                ${part.name}
                ${
                  part.required &&
                  html`<span class="req" aria-hidden="true">
                    *
                  </span>`
                }
              </label>`
          }
          <${Control}
            ...${props}
            label=${undefined}
            field=${part}
            value=${now[part.name]}
            id=${`${id}-${part.name}`}
            describedBy=${undefined}
            onChange=${(/** @type {any} */ next) => set(part.name, next)}
          />
          ${part.doc && html`<p class="help">${part.doc}</p>`}
        </div>`;
    })}
  </div>`;
}

/** What the form cannot show as it is written. @param {ControlProps & {reason: string}} props */
export function ReadOnlyValue({ value, reason }) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return html`<div class="ro">
    <pre class="mono" tabindex="0">
      ${tinted(text ?? "")}
    </pre>
    <p class="help">${reason}</p>
  </div>`;
}
