// What can be done to resources. Each is one edit of the text, one step of undo.
import { html } from "../vendor/preact.js";
import { ApiError } from "../core/api.js";
import { current, handleOf, idOf, select, selected } from "../core/store.js";
import { announce } from "../core/announce.js";
import { confirm, prompt } from "../ui/dialog.js";
import { report, toast } from "../ui/toast.js";

/** Whether resources can be changed now. */
export function canEdit() {
  const doc = current.peek();
  return doc !== null && !doc.locked.peek() && !doc.broken.peek();
}

/**
 * Selects a resource as soon as the outline of the changed text has it.
 * @param {string} id
 */
function selectWhenThere(id) {
  const doc = current.peek();
  if (!doc) return;
  const stop = doc.check.subscribe(() => {
    // An older outline has moved resources at their old places.
    const entry =
      doc.outlined === doc.editor.doc && doc.outline.peek().findLast((one) => idOf(one) === id);
    if (!entry) return;
    queueMicrotask(() => {
      stop();
      select(entry);
    });
  });
  setTimeout(() => stop(), 10_000);
}

/** @param {string} type */
export async function addResource(type) {
  const doc = current.peek();
  if (!doc) return;
  if (!canEdit()) return announce("The text cannot be changed now");
  const name = await prompt({
    title: `Add ${type}`,
    label: "Name",
    action: "Add",
    help: "What it manages, such as a path or a package name.",
    check: (text) =>
      doc.outline.peek().some((entry) => entry.type === type && entry.name === text)
        ? `${type}#${text} is there already`
        : null,
  });
  if (name === undefined) return;
  const after = placeFor(type);
  await perform(
    [{ op: "add", type, name, ...(after ? { after: handleOf(after) } : {}) }],
    `add ${type}#${name}`,
    `${type}#${name}`,
  );
}

/**
 * What a new resource comes behind: the selected one, or the last of its block if that is of
 * another type.
 * @param {string} type
 */
function placeFor(type) {
  const now = selected.peek();
  if (!now || now.type === type) return now;
  const block = JSON.stringify(now.block.path);
  return (
    current
      .peek()
      ?.outline.peek()
      .findLast((entry) => JSON.stringify(entry.block.path) === block) ?? now
  );
}

/** @param {OutlineEntry} entry */
export async function duplicate(entry) {
  const doc = current.peek();
  if (!doc || !canEdit()) return;
  const name = await prompt({
    title: `Duplicate ${idOf(entry)}`,
    label: "Name of the copy",
    value: freeName(entry),
    action: "Duplicate",
    check: (text) =>
      doc.outline.peek().some((one) => one.type === entry.type && one.name === text)
        ? `${entry.type}#${text} is there already`
        : null,
  });
  if (name === undefined) return;
  await perform(
    [{ op: "duplicate", resource: handleOf(entry), name }],
    `duplicate ${idOf(entry)}`,
    `${entry.type}#${name}`,
  );
}

/** @param {OutlineEntry} entry */
function freeName(entry) {
  const names = new Set(
    current
      .peek()
      ?.outline.peek()
      .filter((one) => one.type === entry.type)
      .map((one) => one.name),
  );
  for (let count = 2; ; count += 1) {
    const name = `${entry.name}-${count}`;
    if (!names.has(name)) return name;
  }
}

/** @param {OutlineEntry} entry */
export async function rename(entry) {
  if (!canEdit()) return;
  const name = await prompt({
    title: `Rename ${idOf(entry)}`,
    label: "Name",
    value: entry.name,
    action: "Rename",
    help: "References to it are renamed with it, where they are plain text.",
  });
  if (name === undefined || name === entry.name) return;
  await perform(
    [{ op: "rename", resource: handleOf(entry), name }],
    `rename ${idOf(entry)}`,
    `${entry.type}#${name}`,
  );
}

/** @param {OutlineEntry} entry */
export async function remove(entry) {
  const doc = current.peek();
  if (!doc || !canEdit()) return;
  const outline = doc.outline.peek();
  const next = outline[entry.number] ?? outline[entry.number - 2] ?? null;
  if (await perform([{ op: "remove", resource: handleOf(entry) }], `delete ${idOf(entry)}`)) {
    select(next, { reveal: false });
    toast(`Deleted ${idOf(entry)}`, { action: { label: "Undo", run: () => void doc.undo() } });
  }
}

/**
 * Moves a resource before another one, or to the end.
 * @param {OutlineEntry} entry
 * @param {OutlineEntry | null} before
 */
export async function moveBefore(entry, before) {
  const doc = current.peek();
  if (!doc || !canEdit() || before === entry) return;
  /** @type {Operation} */
  const operation = {
    op: "move_before",
    resource: handleOf(entry),
    before: before ? handleOf(before) : null,
  };
  const id = idOf(entry);
  try {
    await doc.edit([operation]);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "edit") return report(error, `move ${id}`);
    const anyway = await confirm({
      title: `Move ${id}?`,
      body: html`
        <p>${error.message}</p>
        ${error.hint && html`<p>${error.hint}</p>`}
        <p>Moved anyway, the manifest is not valid until the reference is changed.</p>
      `,
      action: "Move anyway",
    });
    if (!anyway || !(await perform([{ ...operation, force: true }], `move ${id}`))) return;
  }
  selectWhenThere(id);
  announce(`Moved ${id}`);
}

/** @param {OutlineEntry} entry @param {1 | -1} step */
export function moveBy(entry, step) {
  const outline = current.peek()?.outline.peek() ?? [];
  const at = entry.number - 1;
  if (step < 0) {
    const before = outline[at - 1];
    if (before) void moveBefore(entry, before);
  } else if (outline[at + 1]) void moveBefore(entry, outline[at + 2] ?? null);
}

/**
 * @param {Operation[]} operations @param {string} doing
 * @param {string} [then] the resource that is selected afterwards
 */
async function perform(operations, doing, then) {
  const doc = current.peek();
  try {
    await doc?.edit(operations);
    if (then) selectWhenThere(then);
    return true;
  } catch (error) {
    report(error, doing);
    return false;
  }
}

/** Undo and redo, also from the form. */
export function undo() {
  if (!current.peek()?.undo()) announce("Nothing to undo");
}

export function redo() {
  if (!current.peek()?.redo()) announce("Nothing to redo");
}
