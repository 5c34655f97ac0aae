// What can be done, by whatever way: keys, palette, buttons. One list.
import { signal } from "../vendor/preact.js";
import { isMac } from "./words.js";

/**
 * @typedef {object} Command
 * @property {string} id
 * @property {string} title
 * @property {string} [keys] such as `Mod+Shift+Enter`, `g d`, `?`
 * @property {string} [group] heading in the list of keys
 * @property {string} [icon]
 * @property {() => boolean} [when] whether it makes sense now
 * @property {boolean} [inText] also while a text field has the focus; keys with Mod or F-keys are
 *   anyway
 * @property {boolean} [hidden] not in the palette
 * @property {(event?: KeyboardEvent) => void} run
 */

/** @type {Signal<Command[]>} */
export const commands = signal(/** @type {Command[]} */ ([]));

/**
 * Adds commands until the returned function is called. The ones that were
 * added last win where keys are equal.
 * @param {Command[]} added
 */
export function register(added) {
  commands.value = [...commands.peek(), ...added];
  return () => {
    commands.value = commands.peek().filter((command) => !added.includes(command));
  };
}

/** Runs a command by its id, if it can be. @param {string} id */
export function runCommand(id) {
  const command = commands.peek().find((one) => one.id === id);
  if (command && (command.when?.() ?? true)) command.run();
}

/** The keys of an event, in the words of `Command.keys`. @param {KeyboardEvent} event */
export function keysOf(event) {
  const parts = [];
  if (isMac ? event.metaKey : event.ctrlKey) parts.push("Mod");
  if (event.altKey) parts.push("Alt");
  // Of characters, Shift is already in the character.
  const named = event.key.length > 1 || parts.length > 0;
  if (event.shiftKey && named) parts.push("Shift");
  parts.push(event.key.length === 1 ? event.key.toLowerCase() : event.key);
  return parts.join("+");
}

/** Whether an element takes letters. @param {EventTarget | undefined} target */
export function takesText(target) {
  if (!(target instanceof HTMLElement)) return false;
  if (
    target.isContentEditable ||
    target instanceof HTMLTextAreaElement ||
    target instanceof HTMLSelectElement
  ) {
    return true;
  }
  return (
    target instanceof HTMLInputElement &&
    !["checkbox", "radio", "button", "range"].includes(target.type)
  );
}

/** @type {string} the first key of two */
let before = "";
/** @type {ReturnType<typeof setTimeout> | undefined} */
let forget;

/** @param {KeyboardEvent} event */
function pressed(event) {
  if (event.defaultPrevented || event.isComposing) return;
  const keys = keysOf(event);
  const text = takesText(event.composedPath()[0]);
  const modal = document.querySelector("dialog[open]");
  const plain = !keys.includes("+") && !/^F\d+$/.test(keys);
  const sequence = before ? `${before} ${keys}` : keys;
  const all = commands.peek();
  const find = (/** @type {string} */ wanted) =>
    all.findLast((command) => {
      const known = command.keys
        ?.split(", ")
        .map((one) => one.replace(/(^|\+)([A-Z])$/, (match) => match.toLowerCase()));
      return known?.includes(wanted) && (command.when?.() ?? true);
    });
  const command = find(sequence) ?? find(keys);
  clearTimeout(forget);
  before = "";
  if (modal) return;
  if (command && (!plain || command.inText || !text)) {
    event.preventDefault();
    command.run(event);
    return;
  }
  const begins = plain && !text && all.some((one) => one.keys?.startsWith(`${keys} `));
  if (begins) {
    before = keys;
    forget = setTimeout(() => (before = ""), 1500);
  }
}

export function startKeys() {
  addEventListener("keydown", pressed);
}
