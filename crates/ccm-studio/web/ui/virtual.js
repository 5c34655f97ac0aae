// A list of any length with some dozens of rows in the page.
import { html, useLayoutEffect, useRef, useState } from "../vendor/preact.js";

/**
 * A listbox whose rows have heights that are known before they are drawn.
 * The focus stays on the list; the chosen row is its active descendant.
 *
 * @template T
 * @param {{
 *   items: T[],
 *   height: (item: T, index: number) => number,
 *   row: (item: T, index: number) => Children,
 *   label: string, id: string,
 *   selectable?: (item: T) => boolean,
 *   selected?: number,
 *   onSelect?: (index: number) => void,
 *   onOpen?: (index: number) => void,
 *   onKey?: (event: KeyboardEvent, index: number) => void,
 *   name?: (item: T) => string,
 *   class?: string,
 *   role?: "listbox" | "list",
 *   followEnd?: boolean,
 *   recycle?: boolean,
 *   empty?: Children
 * }} props `recycle`: rows have no state of their own, so what leaves the view is drawn over;
 *   `height` must be stable for an item; rows that open and close (as in a plan) pass a new `items`
 */
export function VirtualList(props) {
  const {
    items,
    height,
    row,
    label,
    id,
    selectable = () => true,
    selected = -1,
    role = "listbox",
    empty,
  } = props;
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [, redraw] = useState(0);
  // Where the list stands, its height once that is known, the rows that are drawn, and what was
  // brought into view.
  const view = useRef({
    top: 0,
    height: 0,
    first: 0,
    last: 0,
    most: 1,
    items: /** @type {T[] | null} */ (null),
    selected: -1,
  }).current;
  const tops = useRef({
    items: /** @type {T[] | null} */ (null),
    height,
    list: /** @type {number[]} */ ([0]),
  });
  if (tops.current.items !== items || tops.current.height !== height) {
    const list = [0];
    let sum = 0;
    for (let index = 0; index < items.length; index += 1) {
      sum += height(/** @type {T} */ (items[index]), index);
      list.push(sum);
    }
    tops.current = { items, height, list };
  }
  const { list } = tops.current;

  const range = () => ({
    first: Math.max(0, search(list, view.top - 200)),
    last: Math.min(items.length, search(list, view.top + view.height + 200) + 1),
  });

  // What is chosen elsewhere is brought into view here, and drawn there at once.
  const before = view.top;
  if (view.height > 0 && (view.items !== items || view.selected !== selected)) {
    const top = list[selected] ?? 0;
    const bottom = list[selected + 1] ?? 0;
    if (bottom > 0 && top < view.top) view.top = Math.max(0, top - 24);
    else if (bottom > view.top + view.height) view.top = bottom - view.height + 24;
    Object.assign(view, { items, selected });
  }
  const { first, last } = Object.assign(view, range());
  const { top } = view;
  useLayoutEffect(() => {
    if (top !== before && box.current) box.current.scrollTop = top;
  }, [top]);

  const measured = useRef(() => {});
  measured.current = () => {
    const element = box.current;
    if (!element) return;
    const known = view.height > 0;
    Object.assign(view, { top: element.scrollTop, height: element.clientHeight });
    const now = range();
    if (!known || now.first !== view.first || now.last !== view.last) redraw((count) => count + 1);
  };
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    let frame = 0;
    const soon = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        measured.current();
      });
    };
    measured.current();
    element.addEventListener("scroll", soon, { passive: true });
    const sizes = new ResizeObserver(soon);
    sizes.observe(element);
    return () => {
      cancelAnimationFrame(frame);
      element.removeEventListener("scroll", soon);
      sizes.disconnect();
    };
  }, []);

  useLayoutEffect(() => {
    const element = box.current;
    if (element && props.followEnd) element.scrollTop = element.scrollHeight;
  }, [items, props.followEnd]);

  /** @param {number} from @param {number} step */
  const next = (from, step) => {
    let index = from;
    while (index >= 0 && index < items.length) {
      if (selectable(/** @type {T} */ (items[index]))) return index;
      index += step;
    }
    return -1;
  };
  /** @param {KeyboardEvent} event */
  const keys = (event) => {
    if (event.defaultPrevented) return;
    const page = Math.max(1, Math.floor(view.height / 42) - 1);
    const plain = !event.altKey && !event.ctrlKey && !event.metaKey;
    /** @type {Record<string, () => number>} */
    const moves = {
      ArrowDown: () => next(selected + 1, 1),
      ArrowUp: () => (selected < 0 ? next(items.length - 1, -1) : next(selected - 1, -1)),
      Home: () => next(0, 1),
      End: () => next(items.length - 1, -1),
      PageDown: () => next(Math.min(items.length - 1, selected + page), 1),
      PageUp: () => next(Math.max(0, selected - page), -1),
    };
    const to = plain ? moves[event.key]?.() : undefined;
    if (to !== undefined) {
      event.preventDefault();
      if (to >= 0) props.onSelect?.(to);
      return;
    }
    if (event.key === "Enter" && plain && selected >= 0) {
      event.preventDefault();
      props.onOpen?.(selected);
      return;
    }
    props.onKey?.(event, selected);
  };

  view.most = Math.max(view.most, last - first);
  const rows = [];
  for (let index = first; index < last; index += 1) {
    rows.push(
      html`<div
        class="vrow"
        role="presentation"
        key=${props.recycle ? index % view.most : index}
        style=${{
          top: `${list[index]}px`,
          height: `${(list[index + 1] ?? 0) - (list[index] ?? 0)}px`,
        }}
      >
        ${row(/** @type {T} */ (items[index]), index)}
      </div>`,
    );
  }
  const visible = selected >= first && selected < last;
  return html`<div
    ref=${box}
    class=${`scroll virtual ${props.class ?? ""}`}
    role=${role}
    aria-label=${label}
    tabindex="0"
    id=${id}
    aria-activedescendant=${visible ? `${id}-${selected}` : undefined}
    onKeyDown=${keys}
  >
    ${
      items.length === 0
        ? empty
        : html`<div class="vspace" role="presentation" style=${{ height: `${list[items.length]}px` }}>
          ${rows}
        </div>`
    }
  </div>`;
}

/** The last index whose top is not below a place. @param {number[]} tops @param {number} at */
export function search(tops, at) {
  let low = 0;
  let high = tops.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (/** @type {number} */ (tops[middle]) <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}
