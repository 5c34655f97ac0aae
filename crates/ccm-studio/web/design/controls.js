// The controls of the form for single values. Which one a property gets is
// decided by its shape and format in the table of types, and by its value.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { accountNames, matching } from "../core/names.js";
import { current, files, idOf, selectNamed, typeNamed } from "../core/store.js";
import { matches } from "../core/words.js";
import { Chips } from "../ui/chips.js";
import { Combo } from "../ui/combo.js";
import { Button, Segmented, typed } from "../ui/parts.js";
import { useProposals } from "./proposals.js";

/**
 * @typedef {object} ControlProps
 * @property {Field} field
 * @property {any} value what counts: its own, or the default's; undefined when unset
 * @property {boolean} inherited whether it comes from the defaults
 * @property {boolean} readOnly
 * @property {boolean} invalid
 * @property {string} id of the input; a control with several parts is labelled by `${id}-label`
 * @property {string | undefined} describedBy
 * @property {string} type the type of the resource
 * @property {boolean} [hidden] whether it has a secret that the server does not send
 * @property {boolean} [failed] whether it could not be set: what was typed stays
 * @property {number} number the place of the resource
 * @property {(key: string, value: any) => void} [onInside] sets one key of a map whose others are
 *   not known
 * @property {(value: any) => void} onChange undefined takes the property away
 */

/**
 * Whether a value holds a placeholder, so that it is never anything but text.
 * @param {any} value
 */
export const hasPlaceholder = (value) => typeof value === "string" && value.includes("{{");

/** @param {any} value */
const asText = (value) =>
  value === undefined || value === null
    ? ""
    : typeof value === "object"
      ? JSON.stringify(value)
      : String(value);

/**
 * A text with its placeholders tinted. Left or with Enter, it is taken over.
 * @param {ControlProps & {several?: boolean, convert?: (text: string) => any, inputMode?: string,
 *   tail?: Children}} props
 */
export function TextControl({
  field,
  value,
  inherited,
  readOnly,
  invalid,
  id,
  describedBy,
  onChange,
  failed = false,
  several = false,
  convert = (text) => text,
  inputMode,
  tail,
}) {
  const text = asText(value);
  const [draft, setDraft] = useState(text);
  const edited = useRef(false);
  const box = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const mirror = useRef(/** @type {HTMLDivElement | null} */ (null));
  useEffect(() => {
    if (!edited.current && !failed) setDraft(text);
  }, [text]);
  const lines = several || draft.includes("\n");
  useLayoutEffect(() => {
    const area = box.current;
    if (!area || !lines) return;
    area.rows = Math.min(14, Math.max(2, draft.split("\n").length));
  }, [draft, lines]);
  const proposals = useProposals(id, box, field.format === "expression", (next, cursor) => {
    edited.current = true;
    setDraft(next);
    requestAnimationFrame(() => box.current?.setSelectionRange(cursor, cursor));
  });
  const commit = () => {
    proposals.close();
    if (!edited.current) return;
    edited.current = false;
    if (draft === text) return;
    onChange(draft === "" ? undefined : convert(draft));
  };
  const scroll = () => {
    if (mirror.current && box.current) {
      mirror.current.scrollTop = box.current.scrollTop;
      mirror.current.scrollLeft = box.current.scrollLeft;
    }
  };
  return html`<div
    class=${`in tx-in ${lines ? "lines" : ""} ${inherited && draft === text ? "inherit" : ""} ${invalid ? "bad" : ""}`}
  >
    <div class="mirrored">
      <div class="mirror" ref=${mirror} aria-hidden="true">
        ${tinted(draft)}
      </div>
      <textarea
        ref=${box}
        id=${id}
        rows=${lines ? 2 : 1}
        value=${draft}
        readOnly=${readOnly}
        spellcheck=${false}
        autocomplete="off"
        inputmode=${inputMode}
        wrap="off"
        aria-describedby=${describedBy}
        aria-invalid=${invalid ? "true" : undefined}
        data-lines=${lines ? "several" : "one"}
        ...${proposals.attributes}
        onScroll=${scroll}
        onInput=${(/** @type {Event} */ event) => {
          edited.current = true;
          setDraft(typed(event));
          proposals.look();
        }}
        onKeyDown=${(/** @type {KeyboardEvent} */ event) => {
          if (event.isComposing || proposals.keys(event)) return;
          if (event.key === " " && event.ctrlKey) {
            event.preventDefault();
            return proposals.look();
          }
          if (
            event.key === "Enter" &&
            (!lines || event.ctrlKey || event.metaKey) &&
            !event.shiftKey
          ) {
            if (!event.ctrlKey && !event.metaKey) event.preventDefault();
            commit();
          } else if (event.key === "Escape" && edited.current) {
            event.preventDefault();
            edited.current = false;
            setDraft(text);
          } else if (
            (event.ctrlKey || event.metaKey) &&
            event.key.toLowerCase() === "z" &&
            edited.current
          ) {
            event.stopPropagation();
          }
        }}
        onBlur=${commit}
      ></textarea>
      ${proposals.list}
    </div>
    ${inherited && draft === text ? html`<span class="pill accent">default</span>` : tail}
  </div>`;
}

/** @param {string} text @param {RegExp} [placeholder] */
export function tinted(text, placeholder = /(\{\{[^{}]*\}\})/) {
  const parts = text.split(placeholder);
  // The last line must have a height too.
  return html`
    ${parts.map((part, index) => (index % 2 === 1 ? html`<mark key=${index}>${part}</mark>` : part))}
    ${text.endsWith("\n") ? " " : ""}
  `;
}

/** @param {ControlProps} props */
export function SecretControl({
  value,
  hidden = false,
  inherited,
  readOnly,
  invalid,
  id,
  describedBy,
  onChange,
}) {
  const text = asText(value);
  const [draft, setDraft] = useState(text);
  const [visible, setVisible] = useState(false);
  useEffect(() => setDraft(text), [text]);
  return html`<form
    class=${`in ${inherited ? "inherit" : ""} ${invalid ? "bad" : ""}`}
    onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}
  >
    <input
      id=${id}
      type=${visible ? "text" : "password"}
      value=${draft}
      readOnly=${readOnly}
      autocomplete="off"
      spellcheck=${false}
      aria-describedby=${describedBy}
      aria-invalid=${invalid ? "true" : undefined}
      placeholder=${hidden ? "hidden; type to replace" : undefined}
      onInput=${(/** @type {Event} */ event) =>
        setDraft(/** @type {HTMLInputElement} */ (event.currentTarget).value)}
      onKeyDown=${(/** @type {KeyboardEvent} */ event) =>
        event.key === "Enter" && draft !== text && onChange(draft || undefined)}
      onBlur=${() => draft !== text && onChange(draft || undefined)}
    />
    <${Button}
      small
      kind="ghost"
      icon=${visible ? "eyeoff" : "eye"}
      label=${visible ? "Hide" : "Show"}
      aria-pressed=${visible ? "true" : "false"}
      onClick=${() => setVisible(!visible)}
    />
  </form>`;
}

/**
 * Whole numbers stay numbers; anything else is text, for the engine to judge.
 * @param {string} text
 */
export const toNumber = (text) => (/^-?\d{1,15}$/.test(text.trim()) ? Number(text.trim()) : text);

/** @param {ControlProps} props */
export const IntegerControl = (props) =>
  html`<${TextControl} ...${props} convert=${toNumber} inputMode="numeric" />`;

/** @param {ControlProps} props */
export function BooleanControl(props) {
  const { value, inherited, readOnly, id, describedBy, onChange } = props;
  if (value !== undefined && value !== null && typeof value !== "boolean") {
    return html`<${TextControl}
      ...${props}
      convert=${(/** @type {string} */ text) =>
        text === "true" ? true : text === "false" ? false : text}
    />`;
  }
  const now = value === true ? "true" : value === false ? "false" : "";
  return html`<div class="segrow">
    <${Segmented}
      labelledBy=${`${id}-label`}
      describedBy=${describedBy}
      value=${now}
      inherited=${inherited}
      disabled=${readOnly}
      options=${[
        { value: "", label: "unset" },
        { value: "true", label: "true" },
        { value: "false", label: "false" },
      ]}
      onChange=${(/** @type {string} */ word) =>
        onChange(word === "" ? undefined : word === "true")}
    />
    ${inherited && html`<span class="pill accent">default</span>`}
  </div>`;
}

/**
 * One of some words: side by side up to four, else a list.
 * @param {ControlProps & {words: string[], standard?: string}} props
 */
export function WordControl(props) {
  const { value, inherited, readOnly, invalid, id, describedBy, onChange, words, standard } = props;
  const now = asText(value);
  if (now && !words.includes(now)) return html`<${TextControl} ...${props} />`;
  if (words.length <= 4) {
    return html`<div class="segrow">
      <${Segmented}
        labelledBy=${`${id}-label`}
        describedBy=${describedBy}
        value=${now || (standard ?? "")}
        inherited=${inherited || (!now && standard !== undefined)}
        disabled=${readOnly}
        options=${[
          ...(standard === undefined ? [{ value: "", label: "unset" }] : []),
          ...words.map((word) => ({ value: word, label: word })),
        ]}
        onChange=${(/** @type {string} */ word) =>
          onChange(
            word === "" || (word === standard && inherited === false && !now) ? undefined : word,
          )}
      />
      ${inherited && html`<span class="pill accent">default</span>`}
    </div>`;
  }
  return html`<div class=${`in ${inherited ? "inherit" : ""} ${invalid ? "bad" : ""}`}>
    <select
      id=${id}
      value=${now}
      disabled=${readOnly}
      aria-describedby=${describedBy}
      aria-invalid=${invalid ? "true" : undefined}
      onChange=${(/** @type {Event} */ event) =>
        onChange(/** @type {HTMLSelectElement} */ (event.currentTarget).value || undefined)}
    >
      <option value="">${standard ? `${standard} (default)` : "unset"}</option>
      ${words.map(
        (word) =>
          html`<option key=${word} value=${word}>
            ${word}
          </option>`,
      )}
    </select>
  </div>`;
}

/**
 * A text with proposals.
 * @param {ControlProps & {options: Option[] | ((query: string) => Option[] | Promise<Option[]>)}} props
 */
export function ComboControl({
  value,
  inherited,
  readOnly,
  invalid,
  failed = false,
  id,
  describedBy,
  onChange,
  options,
}) {
  return html`<div class=${`in ${inherited ? "inherit" : ""} ${invalid ? "bad" : ""}`}>
    <${Combo}
      id=${id}
      value=${asText(value)}
      options=${options}
      describedBy=${describedBy}
      invalid=${invalid}
      failed=${failed}
      readOnly=${readOnly}
      onCommit=${(/** @type {string} */ text) => onChange(text === "" ? undefined : text)}
    />
    ${inherited && html`<span class="pill accent">default</span>`}
  </div>`;
}

/** Files below the directory, as a manifest names them. */
const fileOptions = () =>
  (files.peek() ?? []).map((file) => ({ value: file.path, detail: file.kind }));

/** @param {ControlProps} props */
export function AccountControl(props) {
  if (hasPlaceholder(props.value)) return html`<${TextControl} ...${props} />`;
  return html`<${ComboControl}
    ...${props}
    options=${accountOptions[/** @type {"user" | "group"} */ (props.field.format)]}
  />`;
}

/** The same functions each time: the list is asked for again when they differ. */
const accountOptions = {
  user: async (/** @type {string} */ query) => matching(await accountNames("user"), query),
  group: async (/** @type {string} */ query) => matching(await accountNames("group"), query),
};

/** @param {ControlProps} props */
export function PathControl(props) {
  if (hasPlaceholder(props.value)) return html`<${TextControl} ...${props} />`;
  return html`<${ComboControl} ...${props} options=${fileOptions()} />`;
}

const ENSURE_WORDS = ["present", "absent", "latest"];

/** @param {ControlProps} props */
export function EnsureControl(props) {
  const type = typeNamed(props.type);
  const words = type?.ensure.words;
  if (hasPlaceholder(props.value)) return html`<${TextControl} ...${props} />`;
  if (words) {
    return html`<${WordControl} ...${props} words=${words} standard=${type?.ensure.default ?? ""} />`;
  }
  return html`<${ComboControl}
    ...${props}
    options=${ENSURE_WORDS.map((value) => ({
      value,
      ...(value === type?.ensure.default ? { detail: "default" } : {}),
    }))}
  />`;
}

/**
 * Permissions: octal, and nine boxes. Either follows the other.
 * @param {ControlProps} props
 */
export function ModeControl(props) {
  const { value, readOnly, id, onChange } = props;
  const text = asText(value);
  const mode = /^0?o?[0-7]{3,4}$/.test(text.replace(/^0o/, ""))
    ? parseInt(text.replace(/^0o/, ""), 8)
    : null;
  const toggle = (/** @type {number} */ bit) =>
    onChange(`0${((mode ?? 0) ^ bit).toString(8).padStart(3, "0")}`);
  const who = ["owner", "group", "other"];
  const what = [
    ["r", "read"],
    ["w", "write"],
    ["x", "execute"],
  ];
  return html`<div class="moderow">
    <${TextControl} ...${props} />
    <div class="rwx" role="group" aria-label="Permissions">
      ${who.map(
        (name, group) =>
          html`<span key=${name} class="grp">
            <i aria-hidden="true">${name}</i>
            ${what.map(([letter, word], place) => {
              const bit = 1 << (8 - group * 3 - place);
              const on = mode !== null && (mode & bit) !== 0;
              return html`<label key=${letter} class=${`bx ${mode === null && text ? "q" : on ? "on" : ""}`}>
                <input
                  type="checkbox"
                  id=${`${id}-${name}-${letter}`}
                  checked=${on}
                  disabled=${readOnly}
                  aria-label=${`${name}: ${word}`}
                  onChange=${() => toggle(bit)}
                />
                <span aria-hidden="true">${mode === null && text ? "?" : on ? letter : ""}</span>
              </label>`;
            })}
          </span>`,
      )}
    </div>
  </div>`;
}

/** More than this are not proposed at once. */
const MOST_PROPOSED = 200;

/**
 * What can be referred to: resources that come earlier. There may be thousands, so they are looked
 * for when they are asked for.
 * @param {number} number
 * @returns {(query: string) => Option[]}
 */
function earlier(number) {
  return (query) => {
    /** @type {Option[]} */
    const found = [];
    for (const entry of current.peek()?.outline.peek() ?? []) {
      if (entry.number >= number || found.length >= MOST_PROPOSED) break;
      const value = entry.alias ? `${entry.type}#${entry.alias}` : idOf(entry);
      if (matches(value, query)) {
        found.push({ value, ...(entry.alias ? { detail: entry.name } : {}) });
      }
    }
    return found;
  };
}

/** @param {ControlProps} props */
export function ReferenceControl(props) {
  return html`<${ComboControl} ...${props} options=${earlier(props.number)} />`;
}

/** @param {ControlProps} props */
export function ReferencesControl({
  value,
  inherited,
  readOnly,
  id,
  describedBy,
  number,
  field,
  onChange,
}) {
  const values = Array.isArray(value)
    ? value.map(asText)
    : value === undefined || value === null
      ? []
      : [asText(value)];
  return html`<${Chips}
    values=${values}
    options=${earlier(number)}
    label=${field.name}
    labelledBy=${`${id}-label`}
    describedBy=${describedBy}
    readOnly=${readOnly}
    inherited=${inherited}
    onOpen=${(/** @type {string} */ name) => selectNamed(name)}
    onChange=${(/** @type {string[]} */ next) => onChange(next.length > 0 ? next : undefined)}
  />`;
}
