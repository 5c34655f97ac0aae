// The page History: runs of this Studio, of the state directory, sessions, reports.
import { html, useState } from "../vendor/preact.js";
import { post } from "../core/api.js";
import { useGet } from "../core/asked.js";
import { download } from "../core/actions.js";
import { parseDiff } from "../core/diff.js";
import { OUTCOMES, Run, changeText, currentRun, follow, occurring, rowOf } from "../core/runs.js";
import { go, place } from "../core/router.js";
import { studio } from "../core/store.js";
import { duration, fullDate, plural, when } from "../core/words.js";
import { Page } from "../frame/page.js";
import { confirm } from "../ui/dialog.js";
import { DiffView } from "../ui/diff.js";
import { Icon, Tile } from "../ui/icons.js";
import { Banner, Button, Empty, Loading, Pill } from "../ui/parts.js";
import { report } from "../ui/toast.js";

/** @typedef {Api.HistoryEntry} Entry */

const KINDS = /** @type {Record<Api.HistoryKind, string>} */ ({
  run: "this Studio",
  state: "this machine",
  session: "session",
  report: "report",
});
/** More rows than this are counted. */
const MOST = 300;

export function History() {
  const [slowest, setSlowest] = useState(false);
  const wanted = place.value.rest["run"] ?? "";
  const list = useGet("history", [currentRun.value?.state.value]);
  const one = useGet(wanted ? `history/${encodeURIComponent(wanted)}` : null, [], {
    keep: false,
  });
  const entries = list.answer?.history ?? null;
  const shown = wanted ? one.answer : null;
  const entry = entries?.find((run) => run.id === wanted);
  return html`<${Page}
    title="History"
    about="Runs of this Studio, of this machine, sessions and reports"
    actions=${
      shown &&
      html`
        <${Button}
          icon="clock"
          aria-pressed=${slowest ? "true" : "false"}
          onClick=${() => setSlowest(!slowest)}
        >
          Slowest first
        <//>
        <${Button}
          icon="dl"
          onClick=${() =>
            download("report.json", JSON.stringify(shown.record, null, 2), "application/json")}
        >
          JSON
        <//>
        ${entry?.kind === "state" && html`<${UndoButton} entry=${entry} />`}
      `
    }
  >
    ${[list, one].map(
      (asked, index) =>
        asked.problem &&
        html`<${Banner} key=${index} kind="bad">
          ${asked.problem.message}
        <//>`,
    )}
    ${
      entries === null
        ? html`<${Loading} asked=${list} label="Reading the history" />`
        : entries.length === 0
          ? html`<${Empty} icon="clock" title="Nothing happened yet">
            <p>
              Plans and runs appear here, and what <code>ccm apply</code> changed on this machine.
            </p>
          <//>`
          : html`<div class="historygrid">
            <nav class="card runs" aria-label="Runs">
              <div class="ch">
                <h2>Runs</h2>
                <span class="r">
                  <${Pill}>${entries.length}<//>
                </span>
              </div>
              ${entries.map(
                (run, index) =>
                  html`<${EntryLink} key=${run.id ?? index} entry=${run} current=${run.id === wanted} />`,
              )}
            </nav>
            <section class="card" aria-label="Run">
              ${
                wanted
                  ? shown
                    ? html`<${Details} shown=${shown} entry=${entry} slowest=${slowest} />`
                    : html`<${Loading} asked=${one} label="Reading this run" />`
                  : html`<p class="muted pad">Choose a run on the left</p>`
              }
            </section>
          </div>`
    }
  <//>`;
}

/** «2 to create, 1 stable» of a plan, «2 created, 1 stable» of a run. @param {Entry} entry */
function counted(entry) {
  if (entry.changed !== undefined) {
    const counts = { changed: entry.changed, failed: entry.failed };
    return Object.entries(counts).flatMap(([word, count]) => (count ? [`${count} ${word}`] : []));
  }
  return occurring(entry.counts).map(
    ({ count, many, done }) => `${count} ${entry.is_preview ? many : done}`,
  );
}

/** @param {{entry: Entry, current: boolean}} props */
function EntryLink({ entry, current }) {
  const kind = KINDS[entry.kind];
  const time = entry.started ? new Date(entry.started) : null;
  const title = entry.mode ? `${entry.mode} ${entry.title}` : entry.title;
  if (!entry.id) {
    return html`<div class="he bad">
      <${Icon} name="warn" />
      <div class="tx2">
        <span class="bidi">${title}</span>
        <span class="muted">${entry.error}</span>
      </div>
    </div>`;
  }
  const failed = entry.failed > 0 || entry.state === "failed";
  const words = counted(entry);
  const state = entry.state && entry.state !== "finished" ? [entry.state] : [];
  return html`<a
    class="he"
    href="#/history"
    aria-current=${current ? "true" : undefined}
    onClick=${(/** @type {Event} */ event) => {
      event.preventDefault();
      go({ rest: { run: entry.id ?? "" } });
    }}
  >
    <i class=${`mark ${failed ? "bad" : state.length > 0 ? "warn" : "ok"}`}></i>
    <div class="tx2">
      <span class="bidi">
        <b>${title}</b>
      </span>
      <span class="muted">
        ${[kind, ...state, ...words, entry.user].filter(Boolean).join(" · ")}
      </span>
    </div>
    ${
      time &&
      html`<span class="muted when" title=${fullDate(time)}>
        ${when(time)}
      </span>`
    }
  </a>`;
}

/** @param {{shown: Api.HistoryShown, entry: Entry | undefined, slowest: boolean}} props */
function Details({ shown, entry, slowest }) {
  const rows = shown.rows.map(rowOf);
  const started = shown.started ?? entry?.started;
  const ordered = slowest ? [...rows].sort((a, b) => b.micros - a.micros) : rows;
  const health = rows.flatMap((row) =>
    (row.health_check ?? []).map((check) => ({ ...check, of: row.id })),
  );
  return html`
    <div class="ch">
      <h2 class="bidi">${shown.manifest ?? entry?.title ?? "Run"}</h2>
      <div class="r muted">
        ${started && html`<span title=${fullDate(new Date(started))}>${when(new Date(started))}</span>`}
      </div>
    </div>
    <dl class="sums">
      <div>
        <dt>total</dt>
        <dd>${rows.filter((row) => !row.aggregate).length}</dd>
      </div>
      ${occurring(shown.counts).map(
        ({ name, word, count }) =>
          html`<div key=${name}>
            <dt>${word}</dt>
            <dd>${count}</dd>
          </div>`,
      )}
    </dl>
    ${
      shown.damaged &&
      html`<${Banner} kind="warn">Parts of this record are damaged and were left out.<//>`
    }
    ${shown.undo_of && html`<${Banner} kind="info">This run took back run ${shown.undo_of}.<//>`}
    ${
      health.length > 0 &&
      html`
        <h3>Health checks</h3>
        <ul class="rules">
          ${health.map(
            (check, index) =>
              html`<li key=${index}>
                <${Pill} kind=${["ok", "warn", "bad", "bad"][check.status] ?? ""}>
                  ${["OK", "WARNING", "CRITICAL", "UNKNOWN"][check.status] ?? "?"}
                <//>
                <code class="bidi">${check.of}</code>
                <span class="bidi">${check.name}</span>
                <span class="muted bidi">${check.output}</span>
              </li>`,
          )}
        </ul>
      `
    }
    <ul class="hrows">
      ${ordered.slice(0, MOST).map((row) => html`<${Line} key=${row.key} row=${row} />`)}
    </ul>
    ${
      ordered.length > MOST &&
      html`<p class="muted pad">${plural(ordered.length - MOST, "more resource")}</p>`
    }
    ${ordered.length === 0 && html`<p class="muted pad">No resources</p>`}
  `;
}

/** @param {{row: import("../core/runs.js").Row}} props */
function Line({ row }) {
  const [open, setOpen] = useState(false);
  const [revealed, setRevealed] = useState(false);
  const outcome = OUTCOMES[row.outcome];
  const problems = [...(row.error ? [row.error] : []), ...(row.cannot_undo ?? [])];
  return html`<li style=${row.depth > 0 ? { paddingLeft: `${row.depth * 18}px` } : undefined}>
    <div class="pline">
      <button
        type="button"
        class="pt"
        aria-expanded=${open ? "true" : "false"}
        aria-label=${`${outcome.word} ${row.id}`}
        onClick=${() => setOpen(!open)}
      >
        <${Icon} name=${open ? "down" : "chev"} class="tw" />
        <${Pill} kind=${outcome.kind} icon=${outcome.glyph}>
          ${outcome.word}
        <//>
      </button>
      <${Tile} type=${row.type} />
      <span class="mono bidi pn">${row.id}</span>
      <span class="pw bidi muted">${row.short}</span>
      <span class="muted pm">${row.micros > 0 && duration(row.micros)}</span>
    </div>
    ${
      open &&
      html`<div class="pdetail free">
        ${problems.length > 0 && html`<p class="err bidi">${problems.join("\n")}</p>`}
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
          row.hidden && !revealed
            ? html`<p class="row hid">
              <${Icon} name="eyeoff" />
              <span class="muted">hidden, ${row.hidden}</span>
              ${
                row.diff?.startsWith("---") &&
                html`<${Button} small onClick=${() => setRevealed(true)}>
                  Show<span class="sr"> the difference of ${row.id}</span>
                <//>`
              }
            </p>`
            : row.diff && html`<${DiffView} diff=${parseDiff(row.diff)} />`
        }
        <details>
          <summary>Properties and status</summary>
          <pre class="output bidi">
            ${JSON.stringify(
              { properties: row.properties ?? null, status: row.status ?? null },
              null,
              2,
            )}
          </pre>
        </details>
      </div>`
    }
  </li>`;
}

/** @param {string} label @param {(on: boolean) => void} choose */
function choice(label, choose) {
  return html`<p>
    <label>
      <input
        type="checkbox"
        onChange=${(/** @type {Event} */ event) =>
          choose(/** @type {HTMLInputElement} */ (event.currentTarget).checked)}
      />
      ${label}
    </label>
  </p>`;
}

/** @param {{entry: Entry}} props */
function UndoButton({ entry }) {
  const allowed = studio.value?.apply_allowed ?? false;
  const can = entry.undo !== "no";
  const id = encodeURIComponent(entry.id ?? "");
  /** @param {{noop?: boolean, partial?: boolean, refresh?: boolean}} options */
  const undo = async (options) => {
    try {
      const answer = await post(`history/${id}/undo`, options);
      go({ page: "plan" });
      await follow(
        new Run({ id: answer.id, mode: "undo", path: entry.title, text: null, diffs: "public" }),
      );
    } catch (error) {
      report(error, "undo this run");
    }
  };
  return html`
    <${Button} icon="eye" disabled=${!can} onClick=${() => void undo({ noop: true })}>
      Preview undo
    <//>
    <${Button}
      icon="undo"
      disabled=${!allowed || !can}
      title=${
        !can
          ? "This run cannot be undone"
          : allowed
            ? undefined
            : "Start Studio with --allow-apply to undo from here"
      }
      onClick=${async () => {
        const options = { partial: false, refresh: false };
        if (
          await confirm({
            title: "Undo this run?",
            body: html`
              <p>
                ccm restores what the run of <b class="bidi">${entry.title}</b> changed, on${" "}
                <b>${studio.peek()?.host}</b> as <b>${studio.peek()?.user}</b>. It leaves alone what
                was changed since.
              </p>
              ${choice("Restart the services that reacted to the run", (on) => {
                options.refresh = on;
              })}
              ${
                entry.undo === "partly" &&
                choice("Restore the rest where steps cannot be undone", (on) => {
                  options.partial = on;
                })
              }
            `,
            action: "Undo",
            kind: "danger",
          })
        ) {
          void undo(options);
        }
      }}
    >
      Undo
    <//>
  `;
}
