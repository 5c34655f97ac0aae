// An open file. Its text is the editor's state, which lives here whether the
// editor is on the page or not, so that there is one text and one undo.
import {
  ChangeSet,
  EditorSelection,
  EditorState,
  EditorView,
  Text,
  isolateHistory,
  redo,
  undo,
} from "../vendor/codemirror.js";
import { batch, computed, effect, signal } from "../vendor/preact.js";
import { ApiError, Gone, aborted, encodePath, get, post, put } from "./api.js";
import { announce } from "./announce.js";
import { lineColumn, offset, toChanges } from "./positions.js";
import { plural } from "./words.js";

/** @typedef {import("../vendor/codemirror.js").Transaction} Transaction */

/** How long after the last key a text is checked. */
const CHECK_AFTER = 150;

/**
 * The same list of extensions for every file. `design/text` adds the editor's.
 * @type {import("../vendor/codemirror.js").Extension[]}
 */
export const extensions = [];

/**
 * @template T
 * @param {T} value
 * @returns {Signal<T>}
 */
const state = (value) => signal(value);

export class Document {
  /**
   * @param {FileText} file
   * @param {{kind: string, facts: () => FactsChoice | undefined, draft?: boolean}} about
   */
  constructor(file, { kind, facts, draft = false }) {
    this.path = state(file.path);
    this.kind = kind;
    this.facts = facts;
    /** A draft has no file yet. */
    this.draft = state(draft);
    this.digest = draft ? "" : file.digest;
    this.eol = state(file.eol);
    this.bom = file.bom;
    this.writable = state(file.writable);
    this.notes = state(file.notes ?? []);
    /** The text that is on disk, as far as we know. */
    this.saved = draft ? Text.empty : Text.of(file.text.split("\n"));
    this.editor = EditorState.create({ doc: file.text, extensions });
    /**
     * @type {import("../vendor/codemirror.js").EditorView | null} the editor, while it is on the
     *   page
     */
    this.view = null;
    /**
     * Effects that wait for a transaction.
     * @type {import("../vendor/codemirror.js").StateEffect<any>[]}
     */
    this.effects = [];

    /** Counts the changes of the text. */
    this.revision = state(1);
    this.dirty = state(draft);
    this.saving = state(false);
    this.cursor = state(/** @type {[number, number]} */ ([0, 0]));
    /** @type {Signal<Check | null>} the newest answer */
    this.check = state(/** @type {Check | null} */ (null));
    /** The text that the newest answer is about. */
    this.checked = this.editor.doc;
    /** The text that the outline is about, and what was changed since. */
    this.outlined = this.editor.doc;
    this.since = ChangeSet.empty(this.editor.doc.length);
    /**
     * The text that the server has kept, and its digest, which names it in requests.
     * @type {{text: Text | null, digest: string}}
     */
    this.kept = { text: null, digest: "" };
    /** When a check began that has not been answered. */
    this.checking = state(0);
    /** @type {Signal<OutlineEntry[]>} of the last text that was YAML */
    this.outline = state(/** @type {OutlineEntry[]} */ ([]));
    /** @type {Signal<Finding | null>} why the text is not YAML */
    this.broken = state(/** @type {Finding | null} */ (null));
    /**
     * @type {Signal<{text: string, digest: string} | "removed" | null>} what others did to the file
     */
    this.conflict = state(/** @type {{text: string, digest: string} | "removed" | null} */ (null));
    /** @type {Signal<ApiError | null>} a request that the server could not answer */
    this.failed = state(/** @type {ApiError | null} */ (null));

    this.errors = computed(
      () => this.check.value?.findings.filter((one) => one.severity === "error").length ?? 0,
    );
    this.warnings = computed(() => (this.check.value?.findings.length ?? 0) - this.errors.value);
    /** Whether the text can be changed at all. */
    this.locked = computed(() => !this.writable.value || this.conflict.value === "removed");

    /** @type {Promise<unknown>} edits of the form, one after the other */
    this.queue = Promise.resolve();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    /** @type {AbortController | null} */
    this.request = null;
    /** @type {string} what was announced last */
    this.said = "";
    // Asked for before the text is drawn, which takes longer than the answer.
    if (this.isManifest) void this.runCheck();
    // Other facts, other findings.
    let first = true;
    this.dispose = effect(() => {
      this.facts();
      if (!first) this.scheduleCheck(0);
      first = false;
    });
  }

  /** The text, with LF. */
  text() {
    return this.editor.doc.toString();
  }

  get isManifest() {
    return this.kind === "manifest";
  }

  /**
   * Changes the text or the selection.
   * @param {import("../vendor/codemirror.js").TransactionSpec} spec
   */
  dispatch(spec) {
    const all = { ...spec, effects: [...this.effects.splice(0), ...[spec.effects ?? []].flat()] };
    if (this.view) this.view.dispatch(all);
    else this.accept(this.editor.update(all));
  }

  /**
   * Adds an effect to the transaction that follows, or to one of its own: each
   * makes the browser lay the page out.
   * @param {import("../vendor/codemirror.js").StateEffect<any>} effect
   */
  mark(effect) {
    this.effects.push(effect);
    queueMicrotask(() => this.effects.length > 0 && this.dispatch({}));
  }

  /**
   * Takes a transaction, of the editor on the page or without one.
   * @param {Transaction} transaction
   */
  accept(transaction) {
    const before = this.editor.doc;
    this.editor = transaction.state;
    if (transaction.docChanged && before !== this.editor.doc) {
      this.since = this.since.compose(transaction.changes);
      this.revision.value = this.revision.peek() + 1;
      this.dirty.value = this.draft.peek() || !this.editor.doc.eq(this.saved);
      this.scheduleCheck(
        transaction.isUserEvent("form") ||
          transaction.isUserEvent("undo") ||
          transaction.isUserEvent("redo")
          ? 0
          : CHECK_AFTER,
      );
    }
    const head = this.editor.selection.main.head;
    const [line, column] = lineColumn(this.editor.doc, head);
    const now = this.cursor.peek();
    if (line !== now[0] || column !== now[1]) this.cursor.value = [line, column];
  }

  undo() {
    return undo({ state: this.editor, dispatch: (transaction) => this.apply(transaction) });
  }

  redo() {
    return redo({ state: this.editor, dispatch: (transaction) => this.apply(transaction) });
  }

  /** @param {Transaction} transaction */
  apply(transaction) {
    if (this.view) this.view.dispatch(transaction);
    else this.accept(transaction);
  }

  /**
   * Puts the cursor at a place and shows it.
   * @param {number} line from 0
   * @param {number} [column]
   */
  reveal(line, column = 0) {
    const at = offset(this.editor.doc, line, column);
    const { view } = this;
    const box = view?.scrollDOM;
    const top = view?.lineBlockAt(at).top ?? 0;
    const visible = box && top > box.scrollTop && top < box.scrollTop + box.clientHeight * 0.75;
    this.dispatch({
      selection: EditorSelection.cursor(at),
      ...(visible || !box
        ? { scrollIntoView: true }
        : {
            effects: EditorView.scrollIntoView(at, {
              y: "start",
              yMargin: Math.min(80, box.clientHeight / 4),
            }),
          }),
    });
  }

  /** The line that a line was when the outline was made. @param {number} line from 0 */
  lineWhenChecked(line) {
    if (this.since.empty) return line;
    const at = offset(this.editor.doc, line, 0);
    const [before] = lineColumn(
      this.outlined,
      Math.min(this.since.invertedDesc.mapPos(at), this.outlined.length),
    );
    return before;
  }

  /** @param {number} delay */
  scheduleCheck(delay) {
    if (!this.isManifest) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.runCheck(), delay);
  }

  /**
   * A request about a text. One that the server has kept is named by its digest:
   * sending a large one takes longer than answering.
   * @template {keyof Api.Post} P
   * @param {P} path
   * @param {Text} text
   * @param {Record<string, unknown>} body
   * @param {{signal?: AbortSignal}} [options]
   * @returns {Promise<Api.Post[P]>}
   */
  async ask(path, text, body, options) {
    if (this.kept.text === text) {
      try {
        return await post(path, { ...body, digest: this.kept.digest }, options);
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== "text_unknown") throw error;
      }
    }
    const answer = await post(path, { ...body, text: text.toString() }, options);
    if (path === "check") {
      this.kept = { text, digest: /** @type {Api.Check} */ (answer).digest };
    }
    return answer;
  }

  async runCheck() {
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    this.checking.value = Date.now();
    const text = this.editor.doc;
    const body = {
      path: this.path.peek(),
      revision: this.revision.peek(),
      ...(this.facts() ? { facts: this.facts() } : {}),
    };
    try {
      const answer = await this.ask("check", text, body, { signal: request.signal });
      if (answer.revision !== this.revision.peek()) return;
      const broken = whyBroken(answer);
      this.checked = text;
      if (!broken) {
        this.since = ChangeSet.empty(text.length);
        this.outlined = text;
      }
      batch(() => {
        this.broken.value = broken;
        if (!broken) this.outline.value = answer.outline;
        this.check.value = answer;
        this.failed.value = null;
      });
      this.say(answer);
    } catch (error) {
      if (aborted(error)) return;
      if (error instanceof ApiError && error.status >= 500) this.failed.value = error;
      else if (!(error instanceof Gone) && !(error instanceof ApiError)) throw error;
    } finally {
      if (this.request === request) {
        this.request = null;
        this.checking.value = 0;
      }
    }
  }

  /** @param {Check} answer */
  say(answer) {
    const errors = answer.findings.filter((finding) => finding.severity === "error");
    const warnings = answer.findings.length - errors.length;
    const first = errors[0] ?? answer.findings[0];
    const words = first
      ? [
          errors.length > 0 ? plural(errors.length, "error") : "",
          warnings > 0 ? plural(warnings, "warning") : "",
          first.line === null ? "" : `line ${first.line}`,
        ]
          .filter(Boolean)
          .join(", ")
      : "No problems";
    if (words !== this.said && (this.said || first)) announce(words);
    this.said = words;
  }

  /**
   * Changes the text by operations: one step of undo. Edits wait for each
   * other, and what was typed meanwhile stays.
   * @param {Operation[]} operations
   * @returns {Promise<boolean>} whether the text changed
   */
  edit(operations) {
    const result = this.queue.then(() => this.editNow(operations));
    this.queue = result.catch(() => {});
    return result;
  }

  /** @param {Operation[]} operations */
  async editNow(operations) {
    for (;;) {
      const text = this.editor.doc;
      const revision = this.revision.peek();
      const answer = await this.ask("edit", text, { operations, revision });
      if (text !== this.editor.doc) continue;
      const changes = toChanges(text, answer.changes);
      if (changes.length === 0) return false;
      this.dispatch({ changes, userEvent: "form", annotations: isolateHistory.of("full") });
      this.kept = { text: this.editor.doc, digest: answer.digest };
      return true;
    }
  }

  /**
   * Writes the file.
   * @param {{force?: boolean, path?: string, eol?: "lf" | "crlf"}} [options] `force`: over what
   *   others wrote; `path`: the name of a draft
   */
  async save({ force = false, path, eol } = {}) {
    const name = path ?? this.path.peek();
    const text = this.editor.doc;
    const ends = eol ?? (this.eol.peek() === "mixed" ? null : this.eol.peek());
    if (!ends) throw new MixedEnds();
    const conflict = this.conflict.peek();
    const known = force && conflict && conflict !== "removed" ? conflict.digest : this.digest;
    const isNew = this.draft.peek() || (force && conflict === "removed");
    this.saving.value = true;
    try {
      /** @type {Record<string, string>} */
      const headers = isNew ? { "if-none-match": "*" } : { "if-match": `"${known}"` };
      const body = { text: text.toString(), eol: ends, bom: this.bom };
      const answer = await put(`files/${encodePath(name)}`, body, { headers });
      this.digest = answer.digest;
      this.saved = text;
      this.path.value = name;
      this.draft.value = false;
      this.eol.value = ends;
      this.conflict.value = null;
      this.dirty.value = !this.editor.doc.eq(text);
    } catch (error) {
      if (error instanceof ApiError && error.code === "changed") {
        const { text: theirs, digest } = error.details;
        this.conflict.value =
          theirs === undefined || digest === undefined ? "removed" : { text: theirs, digest };
      }
      throw error;
    } finally {
      this.saving.value = false;
    }
  }

  /** Asks whether the file on disk is still the one that was read. */
  async lookAgain() {
    if (this.draft.peek() || this.saving.peek()) return;
    try {
      const file = await get(`files/${encodePath(this.path.peek())}`);
      await this.changedOnDisk(file.digest);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
      await this.changedOnDisk(undefined);
    }
  }

  /** The file on disk is another one now. @param {string | undefined} digest */
  async changedOnDisk(digest) {
    if (this.draft.peek() || digest === this.digest || this.saving.peek()) return;
    if (digest === undefined) {
      this.conflict.value = "removed";
      return;
    }
    const conflict = this.conflict.peek();
    if (conflict && conflict !== "removed" && conflict.digest === digest) return;
    const file = await get(`files/${encodePath(this.path.peek())}`);
    if (file.digest === this.digest) {
      this.conflict.value = null;
      return;
    }
    if (this.dirty.peek()) this.conflict.value = { text: file.text, digest: file.digest };
    else this.replace(file);
  }

  /** Takes the text that is on disk; the cursor stays where it was. @param {FileText} file */
  replace(file) {
    const { doc } = this.editor;
    const next = file.text;
    const now = doc.toString();
    let start = 0;
    const most = Math.min(now.length, next.length);
    while (start < most && now.charCodeAt(start) === next.charCodeAt(start)) start += 1;
    let end = 0;
    while (
      end < most - start &&
      now.charCodeAt(now.length - 1 - end) === next.charCodeAt(next.length - 1 - end)
    ) {
      end += 1;
    }
    this.digest = file.digest;
    this.eol.value = file.eol;
    this.bom = file.bom;
    this.writable.value = file.writable;
    this.notes.value = file.notes ?? [];
    this.conflict.value = null;
    this.saved = Text.of(next.split("\n"));
    if (now !== next) {
      this.dispatch({
        changes: {
          from: start,
          to: now.length - end,
          insert: next.slice(start, next.length - end),
        },
        annotations: isolateHistory.of("full"),
        userEvent: "reload",
      });
    }
    this.dirty.value = !this.editor.doc.eq(this.saved);
  }

  /** Gives up own changes for what others wrote. */
  async takeTheirs() {
    const file = await get(`files/${encodePath(this.path.peek())}`);
    this.replace(file);
  }

  /** Keeps own changes: saving replaces what others wrote. */
  keepMine() {
    const conflict = this.conflict.peek();
    if (conflict && conflict !== "removed") this.digest = conflict.digest;
    if (conflict === "removed") this.draft.value = true;
    this.conflict.value = null;
    this.dirty.value = true;
  }
}

/** A file with both line ends is not saved before it is said with which. */
export class MixedEnds extends Error {
  constructor() {
    super("the file has both LF and CRLF line ends");
  }
}

/** The finding that keeps a text from being YAML. @param {Check} answer @returns {Finding | null} */
const whyBroken = (answer) =>
  answer.is_yaml ? null : (answer.findings.find((finding) => finding.severity === "error") ?? null);
