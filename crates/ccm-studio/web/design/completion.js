// Completion and hover in the text, from the same table as the form.
import { hoverTooltip } from "../vendor/codemirror.js";
import { accountNames, expressionNames, typedName } from "../core/names.js";
import { current, idOf, types } from "../core/store.js";
import { lineColumn } from "../core/positions.js";
import { contextAt, meaning } from "./context.js";

/** @typedef {import("../vendor/codemirror.js").Completion} Completion */

const TOP = [
  { label: "data", detail: "values that templates see as Data" },
  { label: "hierarchy", detail: "which overrides count, and how they merge" },
  { label: "overrides", detail: "data for some machines" },
  { label: "ccm", detail: "the resources" },
];

/** @param {import("../vendor/codemirror.js").CompletionContext} asked */
export async function complete(asked) {
  const { doc } = asked.state;
  const context = contextAt(doc, asked.pos);
  const line = doc.lineAt(asked.pos);
  const field = fieldAt(context);
  const name = typedName(
    line.text.slice(0, asked.pos - line.from),
    context.at === "value" && field?.format === "expression",
  );
  if (name !== null) {
    if (name === "" && !asked.explicit) return null;
    const names = await expressionNames();
    return {
      from: asked.pos - name.length,
      options: names.map((one) => ({
        label: one.value,
        type: "variable",
        ...(one.detail ? { detail: one.detail } : {}),
      })),
      validFor: /^[\w.]*$/,
    };
  }
  if (context.at === "value" && (field?.format === "user" || field?.format === "group")) {
    const accounts = await accountNames(field.format);
    return {
      from: context.from,
      options: accounts.map((one) => ({ label: one.value, type: "constant" })),
      validFor: /^[\w.-]*$/,
    };
  }
  const options =
    context.at === "key" ? keys(context) : values(context, lineColumn(doc, asked.pos)[0]);
  if (options.length === 0 || (!asked.explicit && context.at === "key" && context.key === "")) {
    return null;
  }
  return { from: context.from, options, validFor: /^[\w./#: -]*$/ };
}

/** @param {import("./context.js").Context} context @returns {Completion[]} */
function keys(context) {
  const found = meaning(context.path, types.peek());
  const list = context.path.at(-1);
  if (list === "require" || list === "subscribe") return references(Infinity);
  switch (found.what) {
    case "top":
      return TOP.map((one) => ({ ...one, apply: `${one.label}:`, type: "keyword" }));
    case "types":
      return types.peek().types.map((type) => ({
        label: type.name,
        detail: type.about,
        apply: `${context.item ? "" : "- "}${type.name}:`,
        type: "class",
      }));
    case "names":
      return [
        {
          label: "defaults",
          detail: "for all resources of this block",
          apply: `${context.item ? "" : "- "}defaults: `,
          type: "keyword",
        },
      ];
    case "fields":
      return (found.fields ?? []).map((field) => ({
        label: field.name,
        detail: short(field.doc),
        apply: `${field.name}: `,
        type: "property",
        boost: field.required ? 2 : 0,
      }));
    default:
      return [];
  }
}

/** The property of a value. @param {import("./context.js").Context} context */
const fieldAt = (context) =>
  meaning(context.path, types.peek()).fields?.find(
    (one) => one.name === context.key || one.aliases.includes(context.key),
  );

/** @param {import("./context.js").Context} context @param {number} line @returns {Completion[]} */
function values(context, line) {
  const found = meaning(context.path, types.peek());
  const field = fieldAt(context);
  if (context.key === "ensure" && found.type) {
    return (found.type.ensure.words ?? ["present", "absent", "latest"]).map((word) => ({
      label: word,
      type: "enum",
    }));
  }
  if (context.key === "provider" && found.type) {
    return found.type.providers.map((name) => ({ label: name, type: "enum" }));
  }
  if (!field) return [];
  if (isReference(field)) return references(line);
  if (field.words) return field.words.map((word) => ({ label: word, type: "enum" }));
  if (field.shape === "boolean") {
    return ["true", "false"].map((word) => ({ label: word, type: "constant" }));
  }
  return [];
}

/** @param {Field} field */
export const isReference = (field) =>
  field.shape === "reference" || field.items?.shape === "reference";

/** References to resources that come before a line. @param {number} line */
function references(line) {
  const outline = current.peek()?.outline.peek() ?? [];
  return outline
    .filter((entry) => entry.range[2] <= line || line === Infinity)
    .flatMap((entry) => {
      const id = idOf(entry);
      const alias = entry.alias
        ? [{ label: `${entry.type}#${entry.alias}`, detail: id, type: "variable" }]
        : [];
      return [...alias, { label: id, type: "variable" }];
    });
}

/** @param {string} doc */
const short = (doc) => (doc.length > 60 ? `${doc.slice(0, 58)}…` : doc);

/** What a key means, where the pointer rests. */
export const hover = hoverTooltip((view, at) => {
  const line = view.state.doc.lineAt(at);
  const found = line.text.match(/^(\s*(?:- +)*)["']?([\w-]+)["']?\s*:/);
  if (!found) return null;
  const [, before = "", key = ""] = found;
  const from = line.from + before.length;
  if (at < from || at > from + key.length) return null;
  const { path } = contextAt(view.state.doc, from);
  const means = meaning(path, types.peek());
  const type =
    means.what === "types" ? types.peek().types.find((one) => one.name === key) : undefined;
  const field = means.fields?.find((one) => one.name === key || one.aliases.includes(key));
  const text = type?.about ?? field?.doc;
  if (!text) return null;
  return {
    pos: from,
    end: from + key.length,
    above: true,
    create() {
      const dom = document.createElement("div");
      dom.className = "cm-doc";
      const title = document.createElement("b");
      title.textContent = key;
      const about = document.createElement("span");
      about.textContent = field?.required ? `${text} (required)` : text;
      dom.append(title, about);
      return { dom };
    },
  };
});
