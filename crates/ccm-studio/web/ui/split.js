// The line between two panes: dragged, or moved by keys.
import { html, useRef } from "../vendor/preact.js";

/**
 * @param {{
 *   label: string, orientation: "vertical" | "horizontal", size: Signal<number>,
 *   min: number, max: number, controls: string, invert?: boolean, initial: number
 * }} props `size` in pixels; `invert` where the pane is behind the line; a double click brings
 *   `initial` back
 */
export function Splitter({
  label,
  orientation,
  size,
  min,
  max,
  controls,
  invert = false,
  initial,
}) {
  const start = useRef({ at: 0, size: 0 });
  const vertical = orientation === "vertical";
  const limit = (/** @type {number} */ value) => Math.round(Math.min(max, Math.max(min, value)));
  const at = (/** @type {PointerEvent} */ event) => (vertical ? event.clientX : event.clientY);
  /** @param {PointerEvent} event */
  const down = (event) => {
    if (event.button !== 0) return;
    event.preventDefault();
    start.current = { at: at(event), size: size.peek() };
    /** @type {HTMLElement} */ (event.currentTarget).setPointerCapture(event.pointerId);
  };
  /** @param {PointerEvent} event */
  const move = (event) => {
    if (!(/** @type {HTMLElement} */ (event.currentTarget).hasPointerCapture(event.pointerId))) {
      return;
    }
    size.value = limit(start.current.size + (at(event) - start.current.at) * (invert ? -1 : 1));
  };
  /** @param {KeyboardEvent} event */
  const keys = (event) => {
    const by = { ArrowRight: 16, ArrowDown: 16, ArrowLeft: -16, ArrowUp: -16 }[event.key];
    const to = by ? size.peek() + by * (invert ? -1 : 1) : { Home: min, End: max }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    size.value = limit(to);
  };
  return html`<div
    class=${`splitter ${orientation}`}
    role="separator"
    tabindex="0"
    aria-label=${label}
    aria-orientation=${orientation}
    aria-controls=${controls}
    aria-valuenow=${limit(size.value)}
    aria-valuemin=${min}
    aria-valuemax=${max}
    onPointerDown=${down}
    onPointerMove=${move}
    onKeyDown=${keys}
    onDblClick=${() => (size.value = initial)}
  ></div>`;
}
