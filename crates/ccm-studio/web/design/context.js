// Where in a manifest a place is, read from indentation alone: it must work
// while the text is half written. It only proposes; the engine judges.

/** @typedef {import("../vendor/codemirror.js").Text} Text */

/**
 * @typedef {object} Context
 * @property {string[]} path the keys above, from the outside
 * @property {"key" | "value"} at
 * @property {string} key the key of the value, or what is typed of a key
 * @property {number} from where the word at the place begins
 * @property {boolean} item whether it stands behind a dash of its own
 */

const LINE = /^(\s*)((?:- +)*)(?:("[^"]*"|'[^']*'|[^\s#'"[{][^:#]*?)\s*:(?=\s|$))?/;

/** How far a line's key is from the left, dashes counted, and its key. @param {string} text */
function keyOf(text) {
  const found = text.match(LINE);
  if (!found) return null;
  const [, blanks = "", dashes = "", key] = found;
  return {
    indent: blanks.length + dashes.length,
    outer: blanks.length,
    dashes: dashes.length > 0,
    key: key?.replace(/^(["'])(.*)\1$/, "$2"),
  };
}

/**
 * @param {Text} doc
 * @param {number} at
 * @returns {Context}
 */
export function contextAt(doc, at) {
  const line = doc.lineAt(at);
  const before = line.text.slice(0, at - line.from);
  const own = keyOf(line.text) ?? {
    indent: before.length,
    outer: 0,
    dashes: false,
    key: undefined,
  };
  const value = before.match(
    /^(\s*(?:- +)*(?:"[^"]*"|'[^']*'|[^\s#'"[{][^:#]*?)\s*:\s+)(\[?\s*)(.*)$/,
  );
  const typed = before.match(/["']?([\w./#:{} -]*)$/)?.[0] ?? "";
  let indent = value ? own.indent : (before.match(/^\s*(?:- +)*/)?.[0].length ?? 0);
  const dash = /^\s*- /.test(before) || /^\s*-$/.test(before);
  /** @type {string[]} */
  const path = [];
  // A dash at the same place as a key belongs to it, as flat lists are written.
  let flat = dash && !value ? (before.match(/^\s*/)?.[0].length ?? 0) : -1;
  if (dash) indent = before.match(/^\s*/)?.[0].length ?? 0;
  for (
    let number = line.number - 1;
    number >= 1 && (indent > 0 || flat >= 0) && line.number - number < 5000;
    number -= 1
  ) {
    const { text } = doc.line(number);
    if (/^\s*(#|$)/.test(text)) continue;
    const above = keyOf(text);
    if (!above || above.key === undefined) continue;
    if (above.indent < indent || above.indent === flat) {
      path.unshift(above.key);
      flat = above.dashes ? above.outer : -1;
      indent = above.dashes ? above.outer : above.indent;
      if (indent === 0 && !above.dashes) break;
    }
  }
  if (value) {
    const word = (value[3] ?? "").match(/[^,[\]"']*$/)?.[0].trimStart() ?? "";
    return { path, at: "value", key: own.key ?? "", from: at - word.length, item: false };
  }
  const word = typed.replace(/^\s*(?:- +)*/, "").replace(/^["']/, "");
  return { path, at: "key", key: word, from: at - word.length, item: dash };
}

/**
 * What a path of keys means.
 * @param {string[]} path
 * @param {Types} types
 * @returns {{
 *   what: "top" | "types" | "names" | "fields" | "none", type?: Type, fields?: Field[],
 *   field?: Field, name?: string,
 * }}
 */
export function meaning(path, types) {
  if (path.length === 0) return { what: "top" };
  if (path[0] !== "ccm") return { what: "none" };
  if (path[1] !== "resources") return { what: "none" };
  if (path.length === 2) return { what: "types" };
  const type = types.types.find((one) => one.name === path[2]);
  if (!type) return { what: "none" };
  if (path.length === 3) return { what: "names", type };
  /** @type {Field[] | undefined} */
  let fields = type.fields;
  /** @type {Field | undefined} */
  let field;
  for (const key of path.slice(4)) {
    field = fields?.find((one) => one.name === key || one.aliases.includes(key));
    fields = field?.fields ?? field?.items?.fields;
    if (!field) return { what: "none" };
  }
  return {
    what: fields ? "fields" : "none",
    type,
    name: path[3] ?? "",
    ...(fields ? { fields } : {}),
    ...(field ? { field } : {}),
  };
}
