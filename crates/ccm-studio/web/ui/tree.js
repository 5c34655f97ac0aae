// Nested values as a tree: facts, data. Arrows open, close and walk.
import { html, useMemo, useState } from "../vendor/preact.js";
import { VirtualList } from "./virtual.js";
import { Icon } from "./icons.js";

/**
 * @typedef {{key: string, path: string, depth: number, value: any, open?: boolean, count?: number}}
 *   TreeRow
 */

/**
 * The rows of a value that are visible.
 * @param {any} value
 * @param {(path: string) => boolean} isOpen
 * @param {(path: string, value: any) => boolean} [keep]
 * @returns {TreeRow[]}
 */
export function flatten(value, isOpen, keep = () => true) {
  /** @type {TreeRow[]} */
  const rows = [];
  const walk = (
    /** @type {any} */ node,
    /** @type {string} */ prefix,
    /** @type {number} */ depth,
  ) => {
    for (const [key, child] of Object.entries(node ?? {})) {
      const path = Array.isArray(node) ? `${prefix}[${key}]` : prefix ? `${prefix}.${key}` : key;
      const nested = child !== null && typeof child === "object";
      if (!nested && !keep(path, child)) continue;
      const at = rows.length;
      const open = nested && isOpen(path);
      rows.push({
        key,
        path,
        depth,
        value: child,
        ...(nested ? { open, count: Object.keys(child).length } : {}),
      });
      if (nested && open) walk(child, path, depth + 1);
      // A branch that keeps nothing goes.
      if (nested && open && rows.length === at + 1 && !keep(path, child)) rows.pop();
    }
  };
  walk(value, "", 1);
  return rows;
}

const rowHeight = () => 26;

/**
 * @param {{
 *   id: string, label: string, value: any, filter?: string,
 *   show?: (row: TreeRow) => Children, onOpen?: (row: TreeRow) => void
 * }} props `onOpen`: Enter or a click on a leaf
 */
export function Tree({
  id,
  label,
  value,
  filter = "",
  show = (row) => JSON.stringify(row.value),
  onOpen,
}) {
  const [closed, setClosed] = useState(/** @type {Set<string>} */ (new Set()));
  const [selected, setSelected] = useState(-1);
  const rows = useMemo(() => {
    const query = filter.toLowerCase();
    return flatten(
      value,
      (path) => !closed.has(path),
      (path, leaf) =>
        !query || path.toLowerCase().includes(query) || String(leaf).toLowerCase().includes(query),
    );
  }, [value, closed, filter]);
  /** @param {TreeRow} row @param {boolean} open */
  const toggle = (row, open) => {
    const next = new Set(closed);
    if (open) next.delete(row.path);
    else next.add(row.path);
    setClosed(next);
  };
  /** @param {KeyboardEvent} event @param {number} index */
  const keys = (event, index) => {
    const row = rows[index];
    if (!row || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "ArrowRight" && row.open === false) toggle(row, true);
    else if (event.key === "ArrowRight" && row.open) setSelected(index + 1);
    else if (event.key === "ArrowLeft" && row.open) toggle(row, false);
    else if (event.key === "ArrowLeft") {
      setSelected(rows.findLastIndex((one, at) => at < index && one.depth < row.depth));
    } else return;
    event.preventDefault();
  };
  return html`<${VirtualList}
    id=${id}
    label=${label}
    items=${rows}
    height=${rowHeight}
    selected=${selected}
    onSelect=${setSelected}
    onKey=${keys}
    onOpen=${(/** @type {number} */ index) => {
      const row = /** @type {TreeRow} */ (rows[index]);
      if (row.open === undefined) onOpen?.(row);
      else toggle(row, !row.open);
    }}
    empty=${html`<p class="muted pad">Nothing found</p>`}
    row=${(/** @type {TreeRow} */ row, /** @type {number} */ index) =>
      html`<div
        class="trow"
        role="option"
        id=${`${id}-${index}`}
        aria-selected=${index === selected ? "true" : "false"}
        aria-setsize=${rows.length}
        aria-posinset=${index + 1}
        style=${{ paddingLeft: `${row.depth * 14 - 4}px` }}
        onClick=${() => {
          setSelected(index);
          if (row.open === undefined) onOpen?.(row);
          else toggle(row, !row.open);
        }}
      >
        ${
          row.open === undefined
            ? html`<span class="tw"></span>`
            : html`<${Icon} name=${row.open ? "down" : "chev"} class="tw" />`
        }
        <span class="k bidi">${row.key}</span>
        ${
          row.open === undefined
            ? html`<span class="v bidi">${show(row)}</span>`
            : html`<span class="muted">${row.count}</span>`
        }
        ${row.open !== undefined && html`<span class="sr">${row.open ? "open" : "closed"}</span>`}
      </div>`}
  />`;
}
