// Unified diffs, read into rows; and a diff of two texts of our own, for
// conflicts, where no command ran that could have made one.

/**
 * @typedef {{
 *   kind: "hunk" | "same" | "added" | "removed" | "note", text: string, old?: number, new?: number,
 *   marks?: [number, number][],
 * }} DiffRow
 */
/** @typedef {{from: string, to: string, rows: DiffRow[], added: number, removed: number}} Diff */

/** @param {string} text a unified diff @returns {Diff} */
export function parseDiff(text) {
  /** @type {Diff} */
  const diff = { from: "", to: "", rows: [], added: 0, removed: 0 };
  let [old, now] = [0, 0];
  let inHunk = false;
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  for (const line of lines) {
    const hunk = line.match(/^@@ -(\d+)(?:,\d+)? \+(\d+)/);
    if (hunk) {
      [old, now] = [Number(hunk[1]), Number(hunk[2])];
      inHunk = true;
      diff.rows.push({ kind: "hunk", text: line });
    } else if (!inHunk && line.startsWith("--- ")) diff.from = line.slice(4);
    else if (!inHunk && line.startsWith("+++ ")) diff.to = line.slice(4);
    else if (line.startsWith("+")) {
      diff.rows.push({ kind: "added", text: line.slice(1), new: now });
      now += 1;
      diff.added += 1;
    } else if (line.startsWith("-")) {
      diff.rows.push({ kind: "removed", text: line.slice(1), old });
      old += 1;
      diff.removed += 1;
    } else if (line.startsWith("\\") || !inHunk) {
      diff.rows.push({ kind: "note", text: line.replace(/^\\ /, "") });
    } else {
      diff.rows.push({ kind: "same", text: line.slice(1), old, new: now });
      old += 1;
      now += 1;
    }
  }
  markWords(diff.rows);
  return diff;
}

/** Marks what differs within lines that were replaced one by one. @param {DiffRow[]} rows */
function markWords(rows) {
  for (let at = 0; at < rows.length; at += 1) {
    let removed = at;
    while (rows[removed]?.kind === "removed") removed += 1;
    let added = removed;
    while (rows[added]?.kind === "added") added += 1;
    const [gone, come] = [removed - at, added - removed];
    if (gone > 0 && gone === come && gone <= 50) {
      for (let pair = 0; pair < gone; pair += 1) {
        const [before, after] = [rows[at + pair], rows[removed + pair]];
        if (before && after) [before.marks, after.marks] = differing(before.text, after.text);
      }
    }
    if (added > at) at = added - 1;
  }
}

/**
 * The parts in which two lines differ, by words.
 * @param {string} before @param {string} after
 * @returns {[[number, number][], [number, number][]]}
 */
export function differing(before, after) {
  const words = (/** @type {string} */ text) => text.match(/\w+|\s+|[^\w\s]/gu) ?? [];
  const [a, b] = [words(before), words(after)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (
    end < a.length - start &&
    end < b.length - start &&
    a[a.length - 1 - end] === b[b.length - 1 - end]
  ) {
    end += 1;
  }
  const range = (/** @type {string[]} */ list) => {
    const from = list.slice(0, start).join("").length;
    const to = list.slice(0, list.length - end).join("").length;
    return to > from ? /** @type {[number, number][]} */ ([[from, to]]) : [];
  };
  // Lines that share nothing are not marked: all of them differs.
  if (start + end === 0) return [[], []];
  return [range(a), range(b)];
}

/**
 * A diff of two texts by lines. Where they differ too much, as one block.
 * @param {string} before @param {string} after @param {number} [context]
 * @returns {Diff}
 */
export function compareTexts(before, after, context = 3) {
  const [a, b] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (
    end < a.length - start &&
    end < b.length - start &&
    a[a.length - 1 - end] === b[b.length - 1 - end]
  ) {
    end += 1;
  }
  const [left, right] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  /** @type {DiffRow[]} */
  const rows = [];
  let [old, now] = [Math.max(0, start - context), Math.max(0, start - context)];
  const same = (/** @type {string} */ text) =>
    rows.push({ kind: "same", text, old: (old += 1), new: (now += 1) });
  for (const line of a.slice(old, start)) same(line);
  const common = left.length * right.length <= 4_000_000 ? longestCommon(left, right) : [];
  let [x, y] = [0, 0];
  for (const [i, j] of [...common, /** @type {[number, number]} */ ([left.length, right.length])]) {
    for (; x < i; x += 1) rows.push({ kind: "removed", text: left[x] ?? "", old: (old += 1) });
    for (; y < j; y += 1) rows.push({ kind: "added", text: right[y] ?? "", new: (now += 1) });
    if (i < left.length) same(left[i] ?? "");
    [x, y] = [i + 1, j + 1];
  }
  for (const line of a.slice(a.length - end, a.length - end + context)) same(line);
  markWords(rows);
  const count = (/** @type {string} */ kind) => rows.filter((row) => row.kind === kind).length;
  return { from: "", to: "", rows, added: count("added"), removed: count("removed") };
}

/** @param {string[]} a @param {string[]} b @returns {[number, number][]} */
function longestCommon(a, b) {
  const width = b.length + 1;
  const table = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      table[i * width + j] =
        a[i] === b[j]
          ? (table[(i + 1) * width + j + 1] ?? 0) + 1
          : Math.max(table[(i + 1) * width + j] ?? 0, table[i * width + j + 1] ?? 0);
    }
  }
  /** @type {[number, number][]} */
  const pairs = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) pairs.push([i++, j++]);
    else if ((table[(i + 1) * width + j] ?? 0) >= (table[i * width + j + 1] ?? 0)) i += 1;
    else j += 1;
  }
  return pairs;
}
