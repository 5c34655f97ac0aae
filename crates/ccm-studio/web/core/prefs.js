// What the browser remembers: the look and the sizes of panes. Never content.
import { effect, signal } from "../vendor/preact.js";

/**
 * A value that is remembered.
 * @template T
 * @param {string} name
 * @param {T} initial
 * @returns {Signal<T>}
 */
export function remembered(name, initial) {
  const id = `ccm-studio-${name}`;
  let value = initial;
  try {
    const text = localStorage.getItem(id);
    if (text !== null) value = JSON.parse(text);
  } catch {
    // Unreadable or no storage: the initial one.
  }
  const kept = signal(value);
  effect(() => {
    const text = JSON.stringify(kept.value);
    try {
      localStorage.setItem(id, text);
    } catch {
      // Not remembered, then.
    }
  });
  return kept;
}

/** @type {Signal<"system" | "light" | "dark">} */
export const theme = remembered("theme", /** @type {"system" | "light" | "dark"} */ ("system"));

/** The theme that is shown. @type {Signal<"light" | "dark">} */
export const shownTheme = signal("light");

export function startTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const show = () => {
    const chosen = theme.value;
    shownTheme.value = chosen === "system" ? (system.matches ? "dark" : "light") : chosen;
    document.documentElement.dataset["theme"] = shownTheme.value;
  };
  system.addEventListener("change", show);
  effect(show);
}
