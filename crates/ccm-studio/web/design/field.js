// Chooses the control of a property from the table of types.
import { html } from "../vendor/preact.js";
import {
  DataControl,
  ListControl,
  MapControl,
  SecretMapControl,
  StructControl,
} from "./collections.js";
import {
  AccountControl,
  BooleanControl,
  EnsureControl,
  IntegerControl,
  ModeControl,
  PathControl,
  ReferenceControl,
  ReferencesControl,
  SecretControl,
  TextControl,
  WordControl,
  hasPlaceholder,
} from "./controls.js";

/** @typedef {import("./controls.js").ControlProps} ControlProps */

/**
 * Whether the control has several parts, so that its label is not that of one input.
 * @param {Field} field
 * @param {string[] | undefined} ensureWords
 */
export function isComposite(field, ensureWords) {
  if (["list", "texts", "data", "struct", "rules", "boolean"].includes(field.shape)) return true;
  if (field.name === "ensure") return ensureWords !== undefined && ensureWords.length <= 4;
  return field.words !== undefined && field.words.length <= 4;
}

/**
 * @param {ControlProps & {label?: string | undefined}} props `label`: names the control where it
 *   has no label beside it
 */
export function Control(props) {
  const { label, ...rest } = props;
  const made = choose({ ...rest, ...(label === undefined ? {} : { label }) });
  return label === undefined ? made : labelled(label, made, props.id);
}

/**
 * Gives the input with an id a name.
 * @param {string} label @param {Children} control @param {string} id
 */
export const labelled = (label, control, id) =>
  html`
    <label class="sr" for=${id} id=${`${id}-label`}>
      ${label}
    </label>
    ${control}
  `;

/** @param {ControlProps & {label?: string}} props */
function choose(props) {
  const { field, value } = props;
  if (field.name === "ensure" && field.shape === "text" && !props.label) {
    return html`<${EnsureControl} ...${props} />`;
  }
  if (field.secret && field.shape === "text") return html`<${SecretControl} ...${props} />`;
  switch (field.shape) {
    case "boolean":
      return html`<${BooleanControl} ...${props} />`;
    case "integer":
      return html`<${IntegerControl} ...${props} />`;
    case "reference":
      return html`<${ReferenceControl} ...${props} />`;
    case "list":
      if (field.items?.shape === "reference") return html`<${ReferencesControl} ...${props} />`;
      return hasPlaceholder(value)
        ? html`<${TextControl} ...${props} />`
        : html`<${ListControl} ...${props} />`;
    case "texts":
      return field.secret
        ? html`<${SecretMapControl} ...${props} />`
        : html`<${MapControl} ...${props} />`;
    case "data":
    case "rules":
      return html`<${DataControl} ...${props} />`;
    case "struct":
      return html`<${StructControl} ...${props} />`;
    default:
  }
  // A text that may also be a map, such as a key with options.
  if (field.fields && value !== null && typeof value === "object") {
    return html`<${StructControl} ...${props} field=${{ ...field, shape: "struct" }} />`;
  }
  if (field.format === "mode") return html`<${ModeControl} ...${props} />`;
  if (field.words) return html`<${WordControl} ...${props} words=${field.words} />`;
  if (field.format === "user" || field.format === "group") {
    return html`<${AccountControl} ...${props} />`;
  }
  if (field.format === "path") return html`<${PathControl} ...${props} />`;
  return html`<${TextControl} ...${props} several=${field.phase === "deferred" && field.format === undefined} />`;
}
