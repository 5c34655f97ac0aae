// Plans and runs of this Studio: what starts them, and what they have shown.
import { batch, computed, html, signal } from "../vendor/preact.js";
import { ApiError, Gone, aborted, get, post, remove, stream } from "./api.js";
import { announce } from "./announce.js";
import { go } from "./router.js";
import { current, facts, idOf, outcomes, selected, studio } from "./store.js";
import { confirm } from "../ui/dialog.js";
import { report, toast } from "../ui/toast.js";
import { plural } from "./words.js";

/** @typedef {import("../vendor/codemirror.js").Text} Text */
/**
 * One resource of a plan or run: `key` is unique in its run, `id` is `type#name`.
 * @typedef {Api.Row & {key: string, id: string}} Row
 */

/**
 * `many` counts them in a plan, `done` after a run.
 * @typedef {{word: string, glyph: string, kind: string, many: string, done: string}} Outcome
 */

/**
 * What becomes of a resource: its word, glyph and colour.
 * @type {Record<Api.Outcome, Outcome>}
 */
export const OUTCOMES = {
  create: { word: "create", glyph: "plus", kind: "ok", many: "to create", done: "created" },
  change: { word: "change", glyph: "tilde", kind: "warn", many: "to change", done: "changed" },
  remove: { word: "remove", glyph: "minus", kind: "bad", many: "to remove", done: "removed" },
  refresh: { word: "refresh", glyph: "redo", kind: "info", many: "to refresh", done: "refreshed" },
  run: { word: "run", glyph: "exec", kind: "warn", many: "to run", done: "ran" },
  provisional: {
    word: "provisional",
    glyph: "help",
    kind: "violet",
    many: "provisional",
    done: "previewed",
  },
  failed: { word: "failed", glyph: "alert", kind: "bad", many: "failed", done: "failed" },
  skipped: { word: "skipped", glyph: "dash", kind: "", many: "skipped", done: "skipped" },
  stable: { word: "stable", glyph: "check", kind: "ok", many: "stable", done: "stable" },
};

/**
 * What is counted beside outcomes, in the words of the command line.
 * @param {string} word @param {string} [kind]
 */
const beside = (word, kind = "") => ({ word, glyph: "dash", kind, many: word, done: word });

/** @type {[keyof Api.Counts, Outcome][]} */
const COUNTED = [
  .../** @type {[Api.Outcome, Outcome][]} */ (Object.entries(OUTCOMES)),
  ["previewed", beside("previewed", "violet")],
  ["unmet", beside("skipped for unmet requirements", "warn")],
  ["deferred", beside("left for the first boot", "info")],
  ["not_selected", beside("not selected")],
];

export class Run {
  /**
   * @param {{id: string, mode: string, path: string, text: Text | null, diffs: string}} about
   *   `text`: null where it is not known
   */
  constructor({ id, mode, path, text, diffs }) {
    this.id = id;
    this.mode = mode;
    this.path = path;
    this.text = text;
    this.diffs = diffs;
    this.started = new Date();
    this.state = signal("running");
    this.total = signal(0);
    this.doing = signal("");
    /** @type {Signal<Row[]>} */
    this.rows = signal(/** @type {Row[]} */ ([]));
    /** @type {Signal<string[]>} what commands printed */
    this.output = signal(/** @type {string[]} */ ([]));
    /** @type {Signal<{kind: "info" | "warn" | "bad", text: string}[]>} */
    this.notes = signal(/** @type {{kind: "info" | "warn" | "bad", text: string}[]} */ ([]));
    this.findings = signal(/** @type {Api.DiagnosedFinding[]} */ ([]));
    /** Whether something was applied since. */
    this.outdated = signal(false);
    /** @type {Signal<Set<string>>} resources whose hidden diffs are shown */
    this.revealed = signal(new Set());
    /** How many resources have which outcome so far. */
    this.counts = signal(/** @type {Api.Counts | null} */ (null));
    /** Whether the text is another one by now. */
    this.stale = computed(() => {
      const document = current.value;
      if (this.outdated.value) return true;
      if (!document || document.path.value !== this.path) return false;
      void document.revision.value;
      return !this.text?.eq(document.editor.doc);
    });
    /** When it was asked to stop, 0 if it was not. */
    this.stopped = signal(0);
    this.last = "";
    /** @type {Row[]} */
    this.fresh = [];
    /** @type {Api.Counts | null} those of the last row in `fresh` */
    this.tally = null;
    /** @type {string[]} */
    this.lines = [];
    this.frame = 0;
  }

  get isPlan() {
    return this.mode === "plan";
  }

  /** Rows arrive faster than frames: they are shown together. */
  flush() {
    this.frame = 0;
    batch(() => {
      if (this.fresh.length > 0) this.rows.value = [...this.rows.peek(), ...this.fresh];
      this.counts.value = this.tally;
      if (this.lines.length > 0) {
        this.output.value = [...this.output.peek(), ...this.lines].slice(-5000);
      }
    });
    this.fresh = [];
    this.lines = [];
  }

  soon() {
    this.frame ||= requestAnimationFrame(() => this.flush());
  }

  /** @param {"info" | "warn" | "bad"} kind @param {string} text */
  note(kind, text) {
    this.notes.value = [...this.notes.peek(), { kind, text }].slice(-50);
  }

  /** @param {StreamEvent<Api.RunEvents>} received */
  receive({ id, event, data }) {
    this.last = id || this.last;
    if (event === "started") this.total.value = data.total;
    else if (event === "resource") this.doing.value = `${data.type}#${data.name}`;
    else if (event === "output") this.lines.push(data.line);
    else if (event === "message") this.note(data.severity === "error" ? "bad" : "info", data.text);
    else if (event === "warning") {
      this.note("warn", data.resource ? `${data.resource}: ${data.message}` : data.message);
    } else if (event === "diagnosis") {
      this.findings.value = [...this.findings.peek(), ...data.findings];
    } else if (event === "event") {
      this.fresh.push(rowOf(data.row, this.rows.peek().length + this.fresh.length));
      this.tally = data.counts;
    } else if (event === "stale") {
      for (const difference of data.differences) this.note("warn", difference);
    }
    this.soon();
  }
}

/** @param {Api.Row} row @param {number} at @returns {Row} */
export const rowOf = (row, at) => ({ ...row, key: String(at), id: idOf(row) });

/**
 * What occurs, with its words and how many there are, as the command line counts.
 * @param {Api.Counts | null | undefined} counts
 */
export const occurring = (counts) =>
  COUNTED.flatMap(([name, about]) => {
    const unmet = name === "skipped" ? (counts?.unmet ?? 0) : 0;
    const count = (counts?.[name] ?? 0) - unmet;
    return count > 0 ? [{ name, count, ...about }] : [];
  });

/** @type {Signal<Run | null>} the plan or run that is shown */
export const currentRun = signal(/** @type {Run | null} */ (null));

/** Follows a run to its end, also over a lost connection. @param {Run} run */
export async function follow(run) {
  currentRun.value = run;
  for (;;) {
    try {
      await stream(
        `runs/${run.id}/events`,
        (event) => run.receive(event),
        run.last ? { after: run.last } : {},
      );
      break;
    } catch (error) {
      if (!(error instanceof Gone)) throw error;
      await new Promise((resolve) => setTimeout(resolve, 2000));
    }
  }
  cancelAnimationFrame(run.frame);
  run.flush();
  const about = await get(`runs/${run.id}`);
  batch(() => {
    run.doing.value = "";
    run.state.value = about.state;
    if (run.isPlan) {
      outcomes.value = new Map(
        run.rows
          .peek()
          .filter((row) => row.depth === 0)
          .map((row) => [row.id, row.outcome]),
      );
    }
  });
  announce(
    `${run.isPlan ? "Plan" : "Run"} ${stateWord(about.state)}: ${summaryOf(run) || "nothing to do"}`,
  );
}

/** @param {string} state */
export const stateWord = (state) =>
  ({
    running: "running",
    finished: "finished",
    failed: "failed",
    stopped: "stopped",
    invalid: "not possible",
  })[state] ?? state;

/** «2 to create, 48 stable». @param {Run} run */
export function summaryOf(run) {
  return occurring(run.counts.value)
    .map(({ count, many, done }) => `${count} ${run.isPlan ? many : done}`)
    .join(", ");
}

/** What guards were agreed to, by file. @type {Map<string, string>} */
const agreed = new Map();

/**
 * The guards of the text as it stands, those of child manifests included.
 * @param {OpenFile} document
 * @returns {Promise<Api.Guard[]>}
 */
async function guardsOf(document) {
  const known = document.check.peek();
  if (known && known.revision === document.revision.peek() && !document.checking.peek()) {
    return known.guards;
  }
  const body = { path: document.path.peek(), ...(facts.peek() ? { facts: facts.peek() } : {}) };
  return (await document.ask("check", document.editor.doc, body)).guards;
}

/** Asks before commands are run for a plan. @param {OpenFile} document */
async function agreeToGuards(document) {
  const guards = await guardsOf(document);
  if (guards.length === 0) return true;
  const said = JSON.stringify(guards);
  const file = document.path.peek();
  if (agreed.get(file) === said) return true;
  const about = studio.peek();
  const commands = guards.filter((guard) => "command" in guard);
  const unknown = guards.filter((guard) => "unknown" in guard);
  const where = (/** @type {Api.Guard} */ guard) =>
    guard.file === file ? "" : `, in ${guard.file}`;
  const answer = await confirm({
    title: "This plan runs commands",
    body: html`
      ${
        commands.length > 0 &&
        html`
          <p>
            A plan runs guards, which tell whether a command would run, and <code>post</code>${" "}
            commands of scaffolds, on private copies of the files. On <b>${about?.host}</b> it runs${" "}
            ${plural(commands.length, "command")}:
          </p>
          <ul class="commands">
            ${commands.map(
              (guard, index) =>
                html`<li key=${index}>
                  <span class="muted bidi">
                    ${guard.resource} ${guard.property}, as <b>${guard.user}</b>
                    ${where(guard)}
                  </span>
                  <code class="bidi">${guard.command}</code>
                </li>`,
            )}
          </ul>
        `
      }
      ${
        unknown.length > 0 &&
        html`
          <p>
            ${commands.length > 0 ? "It may run more" : "It may run commands"}:${" "}
            ${unknown.length === 1 ? "this manifest" : "these manifests"} cannot be read before.
          </p>
          <ul class="commands">
            ${unknown.map(
              (guard, index) =>
                html`<li key=${index}>
                  <span class="muted bidi">
                    ${guard.resource}
                    ${where(guard)}
                  </span>
                  <span class="bidi">${guard.unknown}</span>
                </li>`,
            )}
          </ul>
        `
      }
    `,
    action: "Run them and plan",
  });
  if (answer) agreed.set(file, said);
  return answer;
}

/**
 * Shows a diff that the mode of its file hides: only a plan that asks for all has it.
 * @param {Run} run
 * @param {Row} row
 */
export function reveal(run, row) {
  const revealed = new Set([...run.revealed.peek(), row.id]);
  if (run.diffs === "all" || !run.isPlan) run.revealed.value = revealed;
  else void startPlan({ revealed });
}

/**
 * Plans the text as it stands.
 * @param {{revealed?: Set<string>} | Event} [options] `revealed`: with the diffs of these, whatever
 *   the modes of the files
 */
export async function startPlan(options = {}) {
  const document = current.peek();
  if (!document?.isManifest) return;
  const revealed = (!(options instanceof Event) && options.revealed) || new Set();
  const diffs = revealed.size > 0 ? "all" : "public";
  try {
    if (!(await agreeToGuards(document))) return;
    const [path, text] = [document.path.peek(), document.editor.doc];
    const { id } = await document.ask("runs", text, {
      mode: "plan",
      path,
      diffs,
      ...(facts.peek() ? { facts: facts.peek() } : {}),
    });
    const entry = selected.peek();
    go({ page: "plan", resource: entry ? idOf(entry) : "" });
    const run = new Run({ id, mode: "plan", path, text, diffs });
    run.revealed.value = revealed;
    await follow(run);
  } catch (error) {
    if (!aborted(error)) report(error, `plan ${document.path.peek()}`);
  }
}

/** A second stop kills a command. One that comes this soon was a double click. */
const DOUBLE_CLICK = 1000;

/** Ends the run as SIGINT would. */
export async function stopRun() {
  const run = currentRun.peek();
  if (
    !run ||
    run.state.peek() !== "running" ||
    (run.stopped.peek() > 0 && performance.now() - run.stopped.peek() < DOUBLE_CLICK)
  ) {
    return;
  }
  run.stopped.value = performance.now();
  await remove(`runs/${run.id}`).catch((error) => report(error, "stop the run"));
}

/** Why the plan cannot be applied; null if it can. */
export function applyProblem() {
  const about = studio.value;
  const document = current.value;
  const run = currentRun.value;
  if (!about?.apply_allowed) return "Start Studio with --allow-apply to apply from here";
  if (!document?.isManifest) return "Open a manifest first";
  if (document.dirty.value || document.draft.value) return "Save the manifest first";
  if (document.errors.value > 0) return "The manifest has errors";
  if (!run || !run.isPlan || run.path !== document.path.value) return "Make a plan first";
  if (run.state.value === "running") return "The plan is not finished";
  if (run.state.value !== "finished") return "The plan did not finish: make a new one";
  if (run.stale.value) return "The plan is stale: make a new one";
  const minutes = about.limits.plan_minutes;
  if (Date.now() - run.started.getTime() > minutes * 60_000) {
    return `The plan is older than ${plural(minutes, "minute")}: make a new one`;
  }
  return null;
}

/** Opens the dialog of Apply. */
export async function startApply() {
  const problem = applyProblem();
  const run = currentRun.peek();
  if (problem || !run) {
    toast(problem ?? "Make a plan first", { kind: "info" });
    return;
  }
  const about = studio.peek();
  const rows = run.rows.peek().filter((row) => !["stable", "skipped"].includes(row.outcome));
  if (rows.length === 0) {
    toast("Nothing to do: everything is as desired", { kind: "info" });
    return;
  }
  const answer = await confirm({
    title: `Apply ${run.path} to ${about?.host}?`,
    body: html`
      <p>
        ${summaryOf(run)}, as <b>${about?.user}</b>.
      </p>
      <ul class="commands">
        ${rows.slice(0, 50).map(
          (row) =>
            html`<li key=${row.key}>
              <span class="muted">${OUTCOMES[row.outcome].word}</span>
              <code class="bidi">${row.id}</code>
            </li>`,
        )}
      </ul>
      ${rows.length > 50 && html`<p class="muted">and ${plural(rows.length - 50, "more resource")}</p>`}
    `,
    action: "Apply",
  });
  if (!answer) return;
  try {
    const { id } = await post("runs", { mode: "apply", plan: run.id });
    go({ page: "plan" });
    const applied = new Run({
      id,
      mode: "apply",
      path: run.path,
      text: run.text,
      diffs: run.diffs,
    });
    await follow(applied);
    applied.outdated.value = false;
    run.outdated.value = true;
  } catch (error) {
    const stale = error instanceof ApiError && error.code === "plan_stale";
    if (stale) run.outdated.value = true;
    report(error, `apply ${run.path}`);
  }
}

/** A run as Markdown, for a review. @param {Run} run */
export function asMarkdown(run) {
  const lines = [
    `## ${run.isPlan ? "Plan" : "Run"} of ${run.path}`,
    "",
    `${summaryOf(run) || "nothing to do"}`,
    "",
  ];
  for (const row of run.rows.peek().filter((one) => one.outcome !== "stable")) {
    const { word } = OUTCOMES[row.outcome];
    const error = row.error ? `: ${row.error.split("\n")[0]}` : "";
    lines.push(`- **${word}** \`${row.id}\`${error}`);
    for (const change of row.changes) lines.push(`  - ${change.property}: ${changeText(change)}`);
    if (row.hidden && !run.revealed.peek().has(row.id)) lines.push(`  - ${row.hidden} hidden`);
    else if (row.diff) {
      lines.push("", "  ```diff", ...row.diff.split("\n").map((line) => `  ${line}`), "  ```", "");
    }
  }
  return `${lines.join("\n")}\n`;
}

/** @param {Api.ChangeValue} value */
const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value));

/** «0600 → 0644». @param {Api.Change} change */
export function changeText(change) {
  if (change.secret) return "secret";
  if (typeof change.removed === "number") return `+${change.added ?? 0} −${change.removed}`;
  const members = [
    [change.created, "created"],
    [change.updated, "updated"],
    [change.removed, "removed"],
  ];
  const counts = members.filter(([list]) => list?.length);
  if (counts.length) return counts.map(([list, word]) => `${list?.length} ${word}`).join(", ");
  if (change.from === undefined) return shown(change.to ?? "");
  if (change.to === undefined) return `${shown(change.from)} → absent`;
  return `${shown(change.from)} → ${shown(change.to)}`;
}
