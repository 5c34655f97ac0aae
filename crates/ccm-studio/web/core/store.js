// What the page knows. Views read signals; what changes them is here.
import { batch, computed, effect, signal } from "../vendor/preact.js";
import { ApiError, Gone, aborted, encodePath, get, stream } from "./api.js";
import { onReturn, stopping } from "./connection.js";
import { Document } from "./document.js";
import { go, place } from "./router.js";
import { key, refused } from "./session.js";

/** @type {Signal<Studio | null>} */
export const studio = signal(null);
/** @type {Signal<Types>} */
export const types = signal({ types: [], common: [] });
/** @type {Signal<FileEntry[] | null>} */
export const files = signal(null);
export const filesTruncated = signal(false);

/** @type {Signal<Document | null>} the file that is shown */
export const current = signal(null);
/** @type {Signal<ApiError | Error | null>} why the file cannot be shown */
export const openError = signal(null);

/**
 * @type {Signal<FactsChoice | undefined>} the facts that are looked at; undefined is this machine
 */
export const facts = signal(undefined);

/** @type {Signal<Map<string, Api.Outcome>>} outcome of the last plan, by `type#name` */
export const outcomes = signal(new Map());

/**
 * Open files by name. Those with unsaved text stay, in memory only.
 * @type {Map<string, Document>}
 */
const documents = new Map();

/**
 * What the server last told of files: their digests, none where they are gone.
 * @type {Map<string, string | undefined>}
 */
const told = new Map();

/** @param {string} name */
export const typeNamed = (name) => types.value.types.find((type) => type.name === name);

/** `type#name`. @param {{type: string, name: string}} entry */
export const idOf = (entry) => `${entry.type}#${entry.name}`;

/** Numbers of the entries by their ids, to find those whose names repeat. */
const numbers = computed(() => {
  /** @type {Map<string, number[]>} */
  const found = new Map();
  for (const entry of current.value?.outline.value ?? []) {
    const id = idOf(entry);
    const list = found.get(id);
    if (list) list.push(entry.number);
    else found.set(id, [entry.number]);
  }
  return found;
});

/**
 * What names an entry in requests: its id, or its number where names repeat.
 * @param {OutlineEntry} entry
 * @returns {string | number}
 */
export const handleOf = (entry) =>
  (numbers.value.get(idOf(entry))?.length ?? 0) > 1 ? entry.number : idOf(entry);

/**
 * The entry that is selected everywhere.
 * @type {import("../vendor/preact.js").ReadonlySignal<OutlineEntry | null>}
 */
export const selected = computed(() => {
  const wanted = place.value.resource;
  const outline = current.value?.outline.value;
  if (!wanted || !outline) return null;
  const number = numbers.value.get(wanted)?.[0];
  if (number !== undefined) {
    // Where names repeat, the address may say which.
    const nth = Number(place.value.rest["n"] ?? 0);
    const exact = nth ? outline[nth - 1] : undefined;
    return exact && idOf(exact) === wanted ? exact : (outline[number - 1] ?? null);
  }
  return outline.find((entry) => entry.alias && `${entry.type}#${entry.alias}` === wanted) ?? null;
});

/**
 * Selects a resource in all views.
 * @param {OutlineEntry | null} entry
 * @param {{replace?: boolean, reveal?: boolean}} [options] `reveal`: the text shows it too
 */
export function select(entry, { replace = true, reveal = true } = {}) {
  const repeats = entry ? (numbers.peek().get(idOf(entry))?.length ?? 0) > 1 : false;
  const { n: _, ...rest } = place.peek().rest;
  go(
    {
      resource: entry ? idOf(entry) : "",
      rest: repeats && entry ? { ...rest, n: String(entry.number) } : rest,
    },
    { replace },
  );
  if (entry && reveal) follow(entry);
}

let following = 0;
let chosenAt = 0;
/** Keys that repeat choose faster than this. */
const PAUSE = 120;

/**
 * Shows a resource in the text. Drawing another part of a large text takes longer than all the
 * rest,
 * so while one resource after the other is chosen, the text follows when the list has been painted.
 * @param {OutlineEntry} entry
 */
function follow(entry) {
  const doc = current.peek();
  const revision = doc?.revision.peek();
  const show = () => {
    if (doc && doc === current.peek() && doc.revision.peek() === revision) {
      doc.reveal(entry.range[0], entry.range[1]);
    }
  };
  cancelAnimationFrame(following);
  const repeats = performance.now() - chosenAt < PAUSE;
  chosenAt = performance.now();
  if (repeats) following = requestAnimationFrame(() => (following = requestAnimationFrame(show)));
  else show();
}

/**
 * Selects by `type#name` or `type#alias`, as findings and plans name resources.
 * @param {string} id
 * @param {{page?: string}} [options]
 */
export function selectNamed(id, { page } = {}) {
  go({ resource: id, ...(page ? { page } : {}) });
  const entry = selected.peek();
  if (entry) current.peek()?.reveal(entry.range[0], entry.range[1]);
}

/** Whether any open file has unsaved text. */
export const unsaved = () =>
  [...documents.values(), current.peek()].some((document) => document?.dirty.peek());

/** Whether someone stopped listing the files before there was a list. */
export const filesStopped = signal(false);

/** @type {AbortController | null} */
let listing = null;

/** Gives up listing the files. */
export const stopListing = () => listing?.abort();

export async function loadFiles() {
  const mine = new AbortController();
  listing = mine;
  filesStopped.value = false;
  try {
    const answer = await get("files", { signal: mine.signal });
    // A newer list is on its way.
    if (listing !== mine) return;
    batch(() => {
      files.value = answer.files;
      filesTruncated.value = answer.truncated;
    });
  } catch (error) {
    if (!aborted(error)) throw error;
    filesStopped.value = files.peek() === null;
  }
}

/** @param {string} path */
export const kindOf = (path) =>
  files.peek()?.find((file) => file.path === path)?.kind ??
  (/\.(jet|templ)$/.test(path) ? "template" : "manifest");

/** @type {AbortController | null} */
let opening = null;

/** Gives up loading a file. */
export const stopOpening = () => opening?.abort();

/** @param {string} path @returns {Promise<FileText>} */
function read(path) {
  opening = new AbortController();
  return get(`files/${encodePath(path)}`, { signal: opening.signal });
}

/**
 * The file of the address, asked for before the page knows what else there is.
 * @type {{path: string, answer: Promise<FileText>} | null}
 */
let early = null;

/**
 * Shows a file.
 * @param {string} path
 */
async function open(path) {
  const known = documents.get(path);
  if (known) {
    batch(() => {
      current.value = known;
      openError.value = null;
    });
    return;
  }
  const asked = early?.path === path ? early.answer : read(path);
  early = null;
  try {
    const file = await asked;
    if (place.peek().file !== path) return;
    const document = new Document(file, { kind: kindOf(path), facts: () => facts.value });
    documents.set(path, document);
    batch(() => {
      current.value = document;
      openError.value = null;
    });
    // The server may have told of a change while the file was on its way.
    if (told.has(path) && told.get(path) !== file.digest) void document.lookAgain().catch(() => {});
  } catch (error) {
    if (place.peek().file !== path) return;
    batch(() => {
      current.value = null;
      openError.value = aborted(error)
        ? new Error("loading it was stopped")
        : /** @type {Error} */ (error);
    });
  }
}

/**
 * Shows a text that has no file yet.
 * @param {string} path the name that saving proposes
 * @param {string} text
 */
export function openDraft(path, text) {
  const file = {
    path,
    text,
    digest: "",
    eol: /** @type {const} */ ("lf"),
    bom: false,
    writable: true,
    notes: [],
  };
  const document = new Document(file, { kind: "manifest", facts: () => facts.value, draft: true });
  documents.set(path, document);
  batch(() => {
    current.value = document;
    openError.value = null;
  });
  go({ page: "design", file: path, resource: "" });
}

/** Files follow the address. */
function followAddress() {
  /** @type {string | null} */
  let shown = null;
  effect(() => {
    const { file } = place.value;
    const loaded = (files.value !== null || filesStopped.value) && studio.value !== null;
    if (!loaded || file === shown) return;
    shown = file;
    if (!file) {
      const first =
        studio.peek()?.file ?? files.peek()?.find((one) => one.kind === "manifest")?.path;
      if (first) go({ file: first }, { replace: true });
      // Without a list, it may still come.
      else if (files.peek() === null) shown = null;
      return;
    }
    void open(file);
  });
}

/** Listens to what happens to files, for as long as the page lives. */
async function watch() {
  if (watching) return;
  watching = true;
  for (;;) {
    try {
      await stream("watch", (event) => {
        if (event.event === "files") void loadFiles().catch(() => {});
        if (event.event === "file") {
          told.set(event.data.path, event.data.digest);
          void documents
            .get(event.data.path)
            ?.changedOnDisk(event.data.digest)
            .catch(() => {});
        }
        if (event.event === "stopping") stopping();
      });
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) {
        // A fresh link begins again.
        watching = false;
        return;
      }
      if (!(error instanceof Gone) && !(error instanceof ApiError)) throw error;
    }
    // A stream that ends is asked for again; a server that is gone tells by this.
    await new Promise((resolve) => setTimeout(resolve, 2000));
  }
}

let started = false;
let watching = false;

/** Asks for all that the page begins with. */
export async function load() {
  if (!key()) {
    refused.value ??= "key_missing";
    return;
  }
  const { file } = place.peek();
  if (file && !started) {
    early = { path: file, answer: read(file) };
    // Whoever opens it hears of it.
    early.answer.catch(() => {});
  }
  // A list of many files takes its time, and the page says so meanwhile.
  await Promise.all([begin(), loadFiles()]);
}

async function begin() {
  const [about, table] = await Promise.all([get("studio"), get("types")]);
  batch(() => {
    studio.value = about;
    types.value = table;
  });
  void watch();
  if (started) return;
  started = true;
  followAddress();
  onReturn(() => {
    void loadFiles().catch(() => {});
    current.peek()?.scheduleCheck(0);
  });
}

export { documents };
