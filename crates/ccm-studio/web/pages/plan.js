// The page Plan: what a run would change, or has changed, row by row.
import { html, useEffect, useMemo, useState } from "../vendor/preact.js";
import { copy, download } from "../core/actions.js";
import { get } from "../core/api.js";
import { register } from "../core/commands.js";
import { parseDiff } from "../core/diff.js";
import {
  OUTCOMES,
  applyProblem,
  asMarkdown,
  changeText,
  currentRun,
  occurring,
  reveal,
  startApply,
  startPlan,
  stateWord,
  stopRun,
  summaryOf,
} from "../core/runs.js";
import { place } from "../core/router.js";
import { current, selectNamed, studio } from "../core/store.js";
import { duration, fullDate, plural, when } from "../core/words.js";
import { Page } from "../frame/page.js";
import { DiffView } from "../ui/diff.js";
import { Icon, Tile } from "../ui/icons.js";
import { Banner, Button, Empty, Pill, Segmented } from "../ui/parts.js";
import { report } from "../ui/toast.js";
import { VirtualList } from "../ui/virtual.js";

/** @typedef {import("../core/runs.js").Row} Row */
/** @typedef {import("../core/runs.js").Run} Run */

/** Above this, stable resources are folded. */
const FOLD = 20;

export function Plan() {
  const run = currentRun.value;
  const document = current.value;
  useEffect(
    () =>
      register([
        {
          id: "stop",
          title: "Stop the run",
          icon: "stop",
          group: "Plan",
          when: () => currentRun.peek()?.state.peek() === "running",
          run: () => void stopRun(),
        },
        {
          id: "plan-markdown",
          title: "Copy the plan as Markdown",
          icon: "copy",
          group: "Plan",
          when: () => currentRun.peek() !== null,
          run: () => void copyMarkdown(),
        },
      ]),
    [],
  );
  if (!run) {
    return html`<${Page}
      title="Plan"
      about=${
        document?.isManifest
          ? html`
            What a run of <span class="mono bidi">${document.path.value}</span> would change
          `
          : "What a run would change"
      }
    >
      <${Empty} icon="plan" title="No plan yet">
        <p>A plan looks at this machine and shows what a run would change. It changes nothing.</p>
        <${Button}
          kind="primary"
          icon="plan"
          keys="Mod+Enter"
          disabled=${!document?.isManifest}
          onClick=${startPlan}
        >
          Plan
        <//>
      <//>
    <//>`;
  }
  const running = run.state.value === "running";
  const problem = applyProblem();
  const title = run.isPlan ? "Plan" : run.mode === "undo" ? "Undo" : "Apply";
  return html`<${Page}
    title=${title}
    about=${html`
      ${run.isPlan && "What applying "}
      <span class="mono bidi">${run.path}</span>
      ${run.isPlan && " would change on this machine"},${" "}
      <span title=${fullDate(run.started)}>${when(run.started)}</span>
    `}
    actions=${html`
      ${
        running &&
        html`<${Button}
          icon="stop"
          title=${run.stopped.value ? "Kills the command that the run waits for" : undefined}
          onClick=${() => void stopRun()}
        >
          ${run.stopped.value ? "Stop now" : "Stop"}
        <//>`
      }
      <${Button} icon="copy" onClick=${() => void copyMarkdown()}>
        Copy as Markdown
      <//>
      <${Button} icon="dl" onClick=${() => void downloadReport(run)} disabled=${running}>
        JSON
      <//>
      <${Button} icon="redo" onClick=${startPlan} disabled=${running || !document?.isManifest}>
        ${run.isPlan ? "Plan again" : "Plan"}
      <//>
      ${
        run.isPlan &&
        html`<${Button}
          kind="primary"
          icon="play"
          disabled=${problem !== null}
          title=${problem ?? undefined}
          onClick=${() => void startApply()}
        >
          Apply
        <//>`
      }
    `}
  >
    <${RunView} run=${run} />
  <//>`;
}

/** Summary, notes and rows of a run. @param {{run: Run}} props */
export function RunView({ run }) {
  const running = run.state.value === "running";
  const rows = run.rows.value;
  return html`<div class="stack">
    ${
      run.isPlan &&
      studio.value?.apply_allowed === false &&
      html`<${Banner} kind="info">
        This Studio only looks. To apply from here, start it with${" "}
        <code>ccm studio --allow-apply</code>
      <//>`
    }
    ${
      run.stale.value &&
      html`<${Banner}
        kind="warn"
        actions=${html`<${Button} small onClick=${startPlan}>
          Plan again
        <//>`}
      >
        <b>This plan is stale.</b>${" "}
        ${run.outdated.value ? "Something was applied since." : "The text has changed since."}
      <//>`
    }
    ${
      run.state.value === "stopped" &&
      html`<${Banner} kind="warn">
        <b>Stopped.</b> Resources behind the last row had no turn.
      <//>`
    }
    ${run.findings.value.map(
      (finding, index) =>
        html`<${Banner} key=${index} kind=${finding.severity === "error" ? "bad" : "warn"}>
          <pre class="frame">${finding.frame ?? finding.message}</pre>
        <//>`,
    )}
    ${run.notes.value.map(
      (note, index) =>
        html`<${Banner} key=${`n${index}`} kind=${note.kind}>
          <span class="bidi">${note.text}</span>
        <//>`,
    )}
    <div class="card plancard">
      <div class="ch">
        <${Bar} counts=${run.counts.value} />
        <h2>${running ? "Working" : stateWord(run.state.value)}</h2>
        <span class="counts">
          ${occurring(run.counts.value).map(
            ({ name, count, kind, glyph, many, done }) =>
              html`<${Pill} key=${name} kind=${kind} icon=${glyph}>
                ${count} ${run.isPlan ? many : done}
              <//>`,
          )}
        </span>
        <div class="r muted">
          ${
            running
              ? html`
                <span class="bidi">${run.doing.value}</span>${" "}
                <progress
                  aria-label="Progress"
                  max=${run.total.value || 1}
                  value=${Math.min(rows.length, run.total.value || 1)}
                ></progress>
              `
              : inAll(rows)
          }
        </div>
      </div>
      <${Rows} run=${run} rows=${rows} />
    </div>
  </div>`;
}

/** «7 resources, 52 ms». @param {Row[]} rows */
function inAll(rows) {
  const counted = rows.filter((row) => !row.aggregate);
  const micros = counted.reduce((sum, row) => sum + row.micros, 0);
  return `${plural(counted.length, "resource")}, ${duration(micros)}`;
}

/**
 * How outcomes share the resources; the counts beside it say the same.
 * @param {{counts: Api.Counts | null}} props
 */
function Bar({ counts }) {
  return html`<span class="bar" aria-hidden="true">
    ${occurring(counts).map(
      ({ name, kind, count }) =>
        html`<i key=${name} class=${kind} style=${{ flexGrow: count }}></i>`,
    )}
  </span>`;
}

/** @param {{run: Run, rows: Row[]}} props */
function Rows({ run, rows }) {
  const [filter, setFilter] = useState("all");
  const [open, setOpen] = useState(/** @type {Set<string>} */ (new Set()));
  const [unfolded, setUnfolded] = useState(false);
  const [slowest, setSlowest] = useState(false);
  const counts = run.counts.value;
  const stable = (counts?.stable ?? 0) + (counts?.skipped ?? 0);
  const folds = filter === "all" && stable > FOLD && !unfolded;
  const shown = useMemo(() => {
    const kept = rows.filter((row) =>
      filter === "all"
        ? !folds || !["stable", "skipped"].includes(row.outcome)
        : row.outcome === filter,
    );
    return slowest ? [...kept].sort((a, b) => b.micros - a.micros) : kept;
  }, [rows, filter, folds, slowest]);
  const options = [
    { value: "all", label: "All" },
    ...Object.entries(OUTCOMES)
      .filter(([name]) => rows.some((row) => row.outcome === name))
      .map(([value, { word }]) => ({ value, label: word })),
  ];
  const revealed = run.revealed.value;
  const height = useMemo(
    () => (/** @type {Row} */ row) =>
      ROW + (open.has(row.key) ? detailHeight(row, isFolded(run, row)) : 0),
    [open, revealed],
  );
  // Other heights need another list.
  const items = useMemo(() => [...shown], [shown, open, revealed]);
  /** @param {Row} row */
  const toggle = (row) => {
    const next = new Set(open);
    if (!next.delete(row.key)) next.add(row.key);
    setOpen(next);
  };
  if (rows.length === 0) {
    return html`<p class="muted pad">
      ${run.state.value === "running" ? "Waiting for the first resource" : "No resource had a turn"}
    </p>`;
  }
  return html`
    <div class="planbar">
      <${Segmented}
        label="Outcomes"
        value=${options.some((option) => option.value === filter) ? filter : "all"}
        options=${options}
        onChange=${setFilter}
      />
      <${Button}
        small
        kind="ghost"
        pressed=${slowest}
        aria-pressed=${slowest ? "true" : "false"}
        icon="clock"
        onClick=${() => setSlowest(!slowest)}
      >
        Slowest first
      <//>
    </div>
    <div
      class="planrows"
      style=${{ maxHeight: `${items.reduce((sum, row) => sum + height(row), 0) || 40}px` }}
    >
      <${VirtualList}
        id="plan-rows"
        role="list"
        label="Resources"
        items=${items}
        height=${height}
        empty=${html`<p class="muted pad">${folds ? "Nothing to do" : "None"}</p>`}
        row=${(/** @type {Row} */ row, /** @type {number} */ index) =>
          html`<${PlanRow} run=${run} row=${row} index=${index} open=${open.has(row.key)} toggle=${toggle} />`}
      />
    </div>
    ${
      filter === "all" &&
      stable > FOLD &&
      html`<div class="fold">
        <${Button}
          small
          kind="ghost"
          icon=${unfolded ? "up" : "down"}
          onClick=${() => setUnfolded(!unfolded)}
        >
          ${
            unfolded
              ? "Fold those that are stable"
              : `Show ${plural(stable, "resource")} that ${stable === 1 ? "is" : "are"} stable`
          }
        <//>
      </div>`
    }
  `;
}

const ROW = 34;
const LINE = 20;

/** Whether the diff of a row is hidden. @param {Run} run @param {Row} row */
const isFolded = (run, row) =>
  row.hidden !== undefined && (run.diffs !== "all" || !run.revealed.value.has(row.id));

/** How high the details of a row are. @param {Row} row @param {boolean} folded */
function detailHeight(row, folded) {
  const lines =
    row.changes.length +
    Math.max(row.waits_for?.length ?? 0, row.outcome === "provisional" ? 1 : 0) +
    (row.because ? 1 : 0) +
    (row.owed ? 1 : 0) +
    (row.error ? row.error.split("\n").length : 0);
  // Two lines of a diff name the files, and the last one is empty.
  const diff = folded
    ? 34
    : row.diff
      ? Math.min(Math.max(1, row.diff.split("\n").length - 3), 22) * LINE + 44
      : 0;
  return Math.min(600, lines * LINE + diff + 18);
}

/** @param {{run: Run, row: Row, index: number, open: boolean, toggle: (row: Row) => void}} props */
function PlanRow({ run, row, index, open, toggle }) {
  const folded = isFolded(run, row);
  const outcome = OUTCOMES[row.outcome];
  const details =
    row.changes.length > 0 || Boolean(row.diff || row.error || row.waits_for || row.because);
  const chosen = place.value.resource === row.id;
  return html`<div class=${`prow ${chosen ? "sel" : ""}`} role="listitem" id=${`plan-rows-${index}`}>
    <div class="pline" style=${{ paddingLeft: `${10 + row.depth * 18}px` }}>
      <button
        type="button"
        class="pt"
        aria-expanded=${details ? (open ? "true" : "false") : undefined}
        disabled=${!details}
        onClick=${() => toggle(row)}
        aria-label=${`${outcome.word} ${row.id}`}
      >
        <${Icon} name=${details ? (open ? "down" : "chev") : "dash"} class="tw" />
        <${Pill} kind=${outcome.kind} icon=${outcome.glyph}>
          ${outcome.word}
        <//>
      </button>
      <${Tile} type=${row.type} />
      <button
        type="button"
        class="pn bidi"
        title=${`Show ${row.id} in Design`}
        onClick=${() => selectNamed(row.id, { page: "design" })}
      >
        ${row.id}
        ${
          row.alias &&
          html`
            ${" "}
            <span class="muted">(${row.alias})</span>
          `
        }
      </button>
      <span class="pw bidi muted">${row.short}</span>
      <span class="muted pm">${row.micros > 0 && duration(row.micros)}</span>
    </div>
    ${
      open &&
      html`<div class="pdetail" style=${{ height: `${detailHeight(row, folded) - 8}px` }}>
        ${row.error && html`<p class="err bidi">${row.error}</p>`}
        ${
          row.waits_for &&
          html`<p class="muted">
            ${row.now ? `${row.now} now; ` : ""}provisional: after ${row.waits_for.join(", ")}
          </p>`
        }
        ${
          row.outcome === "provisional" &&
          !row.waits_for &&
          html`<p class="muted">provisional: known at apply</p>`
        }
        ${
          row.because &&
          html`<p class="muted">
            because ${row.because.join(", ")} ${row.because.length === 1 ? "changes" : "change"}
          </p>`
        }
        ${row.owed && html`<p class="muted">owed since an earlier run</p>`}
        ${
          row.changes.length > 0 &&
          html`<dl class="changes">
            ${row.changes.map(
              (change, at) =>
                html`<div key=${at}>
                  <dt>${change.property}</dt>
                  <dd class="mono bidi">${changeText(change)}</dd>
                </div>`,
            )}
          </dl>`
        }
        ${
          folded
            ? html`<p class="row hid">
              <${Icon} name="eyeoff" />
              <span class="muted">hidden, ${row.hidden}</span>
              ${
                run.isPlan &&
                html`<${Button} small onClick=${() => reveal(run, row)}>
                  Show<span class="sr"> the difference of ${row.id}</span>
                <//>`
              }
            </p>`
            : row.diff && html`<${DiffView} diff=${parseDiff(row.diff)} />`
        }
      </div>`
    }
  </div>`;
}

async function copyMarkdown() {
  const run = currentRun.peek();
  if (run) await copy(asMarkdown(run), "the plan");
}

/** @param {Run} run */
async function downloadReport(run) {
  try {
    const whole = await get(`runs/${run.id}`);
    download(
      `${run.mode}-${run.path.replaceAll("/", "-")}.json`,
      JSON.stringify(whole.report ?? whole, null, 2),
      "application/json",
    );
  } catch (error) {
    report(error, "get the report");
  }
}

/** The plan below Design: summary and rows, without a heading. */
export function PlanPanel() {
  const run = currentRun.value;
  if (!run || run.path !== current.value?.path.value) {
    return html`<p class="muted pad">No plan yet</p>`;
  }
  return html`<div class="planpanel">
    <p class="muted pad">
      ${run.stale.value ? "Stale: " : ""}
      ${summaryOf(run) || stateWord(run.state.value)}
    </p>
    <${Rows} run=${run} rows=${run.rows.value} />
  </div>`;
}

/** What the commands of the last plan or run printed, below Design. */
export function OutputPanel() {
  const lines = currentRun.value?.output.value ?? [];
  if (lines.length === 0) return html`<p class="muted pad">No output yet</p>`;
  return html`<pre class="output bidi">${lines.slice(-500).join("\n")}</pre>`;
}

/**
 * How many resources the plan below Design has; undefined without one.
 * @returns {number | undefined}
 */
export const planCount = () => {
  const run = currentRun.value;
  if (!run || run.path !== current.value?.path.value) return undefined;
  return run.rows.value.filter((row) => !["stable", "skipped"].includes(row.outcome)).length;
};
