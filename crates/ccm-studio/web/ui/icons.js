// Small pictures, drawn on 24 by 24, by the path of each. A type has the icon
// of its name; a type without one gets a tile with its letter.
import { html } from "../vendor/preact.js";

/** @type {Record<string, string>} */
export const PATHS = {
  pen: "M4 16.5V20h3.5L18 9.5 14.5 6zM13 7.5l3.5 3.5",
  layers: "M12 4l8 4-8 4-8-4zM4 12l8 4 8-4M4 16l8 4 8-4",
  braces:
    "M9 4c-2 0-3 1-3 3v2c0 1.5-.7 3-2 3 1.3 0 2 1.5 2 3v2c0 2 1 3 3 3" +
    "M15 4c2 0 3 1 3 3v2c0 1.5.7 3 2 3-1.3 0-2 1.5-2 3v2c0 2-1 3-3 3",
  graph:
    "M3.5 6a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0 -5 0M15.5 12a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0 -5 0" +
    "M3.5 18a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0 -5 0M8.5 6H12c2 0 2 6 3.5 6M8.5 18H12c2 0 2-6 3.5-6",
  plan: "M5 5h14v14H5zM12 8v4M10 10h4M10 15.5h4",
  clock: "M4 12a8 8 0 1 0 16 0a8 8 0 1 0 -16 0M12 8v4.5l3 2",
  file: "M7 3.5h7l4 4V20H7zM14 3.5V8h4",
  package: "M12 3.5l7.5 4v9L12 20.5l-7.5-4v-9zM4.5 7.5l7.5 4 7.5-4M12 11.5v9",
  service:
    "M9 12a3 3 0 1 0 6 0a3 3 0 1 0 -6 0M12 4v2.5M12 17.5V20M4 12h2.5M17.5 12H20" +
    "M6.3 6.3 8 8M16 16l1.7 1.7M6.3 17.7 8 16M16 8l1.7-1.7",
  exec: "M5 7l5 5-5 5M12 18h7",
  apply: "M5 5h6v6H5zM13 13h6v6h-6zM11 8h3.5a1.5 1.5 0 0 1 1.5 1.5V13",
  scaffold: "M4 6h7M4 12h16M4 18h7M15 4v4M18 16v4",
  archive: "M4.5 5h15v4h-15zM6 9v10.5h12V9M10 13h4",
  x: "M7 7l10 10M17 7 7 17",
  plus: "M12 5v14M5 12h14",
  chev: "M9 6l6 6-6 6",
  down: "M6 9l6 6 6-6",
  check: "M5 12.5l4.5 4.5L19 7.5",
  alert: "M3.5 12a8.5 8.5 0 1 0 17 0a8.5 8.5 0 1 0 -17 0M12 8v5M12 16v.2",
  warn: "M12 4.5 21 19.5H3zM12 10v4.5M12 17v.2",
  tilde: "M5 13c2-4 4.5-4 7-1s5 3 7-1",
  redo: "M19 12a7 7 0 1 1-2.2-5.1M19 4v4h-4",
  lock: "M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3",
  play: "M8 5.5 18.5 12 8 18.5z",
  save: "M5 5h11l3 3v11H5zM8 5v4.5h6V5M8 19v-5h8v5",
  search: "M5 11a6 6 0 1 0 12 0a6 6 0 1 0 -12 0M15.5 15.5l4 4",
  moon: "M19 14.5A7.5 7.5 0 1 1 9.5 5a6 6 0 0 0 9.5 9.5z",
  more: "M6 12h.1M12 12h.1M18 12h.1",
  up: "M12 19V6M6 11l6-6 6 6",
  dn: "M12 5v13M6 13l6 6 6-6",
  copy: "M9 9h10v10H9zM15 9V5H5v10h4",
  trash: "M5 7h14M10 7V4.5h4V7M7 7l.8 12.5h8.4L17 7",
  link:
    "M10 14a4 4 0 0 0 5.7 0l2.8-2.8a4 4 0 0 0-5.7-5.7L11.5 6.8" +
    "M14 10a4 4 0 0 0-5.7 0l-2.8 2.8a4 4 0 0 0 5.7 5.7l1.3-1.3",
  info: "M3.5 12a8.5 8.5 0 1 0 17 0a8.5 8.5 0 1 0 -17 0M12 11v5M12 8v.2",
  heart: "M4 12h4l2-5 4 10 2-5h4",
  eye: "M3 12s3.5-6 9-6 9 6 9 6-3.5 6-9 6-9-6-9-6zM9.5 12a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0 -5 0",
  dl: "M12 4v11M7 11l5 5 5-5M5 20h14",
  help: "M3.5 12a8.5 8.5 0 1 0 17 0a8.5 8.5 0 1 0 -17 0M9.5 9.5a2.5 2.5 0 1 1 3.5 2.3c-.7.3-1 .8-1 1.7M12 16.5v.2",
  stop: "M7 7h10v10H7z",
  folder: "M4 6.5h6l2 2.5h8v10H4z",
  sun:
    "M8 12a4 4 0 1 0 8 0a4 4 0 1 0-8 0M12 3v2M12 19v2M3 12h2M19 12h2" +
    "M5.6 5.6 7 7M17 17l1.4 1.4M5.6 18.4 7 17M17 7l1.4-1.4",
  minus: "M5 12h14",
  grip: "M9 6h.1M15 6h.1M9 12h.1M15 12h.1M9 18h.1M15 18h.1",
  undo: "M8 5 4 9l4 4M4 9h9a6 6 0 0 1 0 12h-3",
  code: "m8 7-5 5 5 5M16 7l5 5-5 5",
  panel: "M4 5h16v14H4zM4 14h16",
  filter: "M4 6h16l-6 7v6l-4-2v-4z",
  dash: "M6 12h12",
  expand: "M5 10V5h5M19 14v5h-5",
  eyeoff: "M3 12s3.5-6 9-6c1.5 0 2.9.5 4 1.1M21 12s-3.5 6-9 6c-1.5 0-2.9-.5-4-1.1M4 20 20 4",
};

/**
 * @param {{name: string, class?: string}} props
 */
export function Icon({ name, class: extra = "" }) {
  return html`<svg class=${`i ${extra}`} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <path d=${PATHS[name] ?? ""} />
  </svg>`;
}

/** The types whose tiles have a colour of their own. */
const COLOURED = new Set(["file", "package", "service", "exec", "apply", "scaffold", "archive"]);

/**
 * The tile of a type.
 * @param {{type: string, large?: boolean}} props
 */
export function Tile({ type, large = false }) {
  const known = PATHS[type] !== undefined && COLOURED.has(type);
  const name = `tile ${known ? `t-${type}` : "t-other"} ${large ? "lg" : ""}`;
  return html`<span class=${name} aria-hidden="true">
    ${known ? html`<${Icon} name=${type} />` : type.slice(0, 1).toUpperCase()}
  </span>`;
}
