// Places of the wire, `[line, column, …]` from 0, and offsets of the editor.

/** @typedef {import("../vendor/codemirror.js").Text} Text */

/** @param {Text} text @param {number} line @param {number} column */
export function offset(text, line, column) {
  if (line >= text.lines) return text.length;
  const found = text.line(line + 1);
  return Math.min(found.from + column, found.to);
}

/** @param {Text} text @param {TextRange} range @returns {{from: number, to: number}} */
export function span(text, range) {
  const from = offset(text, range[0], range[1]);
  return { from, to: Math.max(from, offset(text, range[2], range[3])) };
}

/** @param {Text} text @param {number} at @returns {[number, number]} line and column from 0 */
export function lineColumn(text, at) {
  const line = text.lineAt(at);
  return [line.number - 1, at - line.from];
}

/**
 * Changes of the wire as the editor takes them.
 * @param {Text} text
 * @param {Change[]} changes
 */
export const toChanges = (text, changes) =>
  changes.map((change) => ({ ...span(text, change.range), insert: change.text }));

/**
 * Where a finding begins, line and column from 0; null where no place is at fault.
 * @param {Finding} finding
 * @returns {[number, number] | null}
 */
export function startOf(finding) {
  if (finding.range) return [finding.range[0], finding.range[1]];
  return finding.line === null ? null : [finding.line - 1, (finding.column ?? 1) - 1];
}
