// Below the panes: problems, plan, output.
import { html, useEffect } from "../vendor/preact.js";
import { copy } from "../core/actions.js";
import { register } from "../core/commands.js";
import { remembered } from "../core/prefs.js";
import { startPlan } from "../core/runs.js";
import { current } from "../core/store.js";
import { announce } from "../core/announce.js";
import { startOf } from "../core/positions.js";
import { OutputPanel, PlanPanel, planCount } from "../pages/plan.js";
import { Icon } from "../ui/icons.js";
import { Button, Tabs } from "../ui/parts.js";
import { report } from "../ui/toast.js";

export const panelTab = remembered("panel-tab", "problems");
export const panelOpen = remembered("panel-open", true);

/** @param {string} tab */
export function openPanel(tab) {
  panelTab.value = tab;
  panelOpen.value = true;
}

export function Panel() {
  const doc = current.value;
  const found = doc?.check.value?.findings ?? [];
  const errors = doc?.errors.value ?? 0;
  const tab = panelTab.value;
  const count = planCount();
  useEffect(
    () =>
      register([
        {
          id: "problems",
          title: "Show the problems",
          icon: "alert",
          group: "Design",
          run: () => {
            openPanel("problems");
            document.getElementById("results-tab-problems")?.focus();
          },
        },
        {
          id: "next-problem",
          title: "Next problem",
          keys: "F8",
          group: "Design",
          run: () => goTo(1),
        },
        {
          id: "previous-problem",
          title: "Previous problem",
          keys: "Shift+F8",
          group: "Design",
          run: () => goTo(-1),
        },
        {
          id: "fix",
          title: "Fix the problem at the cursor",
          keys: "Mod+.",
          group: "Design",
          inText: true,
          run: fixHere,
        },
      ]),
    [],
  );
  if (!panelOpen.value) return null;
  const tabs = [
    {
      id: "problems",
      label: "Problems",
      ...(found.length > 0 ? { count: found.length, bad: errors > 0 } : {}),
    },
    { id: "plan", label: "Plan", ...(count !== undefined ? { count } : {}) },
    { id: "output", label: "Output" },
  ];
  return html`<section class="pane panel" aria-label="Results" id="pane-panel">
    <header>
      <${Tabs}
        id="results"
        label="Results"
        tabs=${tabs}
        value=${tab}
        onChange=${(/** @type {string} */ id) => (panelTab.value = id)}
      />
      <div class="r">
        ${
          tab === "problems" &&
          found.length > 0 &&
          html`<${Button}
            small
            kind="ghost"
            icon="copy"
            onClick=${() =>
              void copy(found.map((one) => one.frame || one.message).join("\n\n"), "the problems")}
          >
            Copy
          <//>`
        }
        ${
          tab === "plan" &&
          html`<${Button} small icon="redo" onClick=${startPlan}>
            ${count === undefined ? "Plan" : "Plan again"}
          <//>`
        }
        <${Button}
          small
          kind="ghost"
          icon="x"
          label="Close the results"
          onClick=${() => (panelOpen.value = false)}
        />
      </div>
    </header>
    <div
      class="scroll"
      role="tabpanel"
      id=${`results-${tab}`}
      aria-labelledby=${`results-tab-${tab}`}
      tabindex="0"
    >
      ${tab === "problems" && html`<${Problems} findings=${found} />`}
      ${tab === "plan" && html`<${PlanPanel} />`}
      ${tab === "output" && html`<${OutputPanel} />`}
    </div>
  </section>`;
}

/** More than this are counted, not listed. */
const MOST = 200;

/** @param {{findings: Finding[]}} props */
function Problems({ findings }) {
  const doc = current.value;
  if (!doc?.check.value) {
    return html`<p class="muted pad">${doc?.isManifest ? "Not checked yet" : "Only manifests are checked"}</p>`;
  }
  if (findings.length === 0) {
    return html`<p class="fine">
      <${Icon} name="check" />
      No problems found
    </p>`;
  }
  return html`<ul class="problems">
    ${findings.slice(0, MOST).map(
      (finding, index) =>
        html`<li key=${index} class=${finding.severity}>
          <button type="button" class="where" onClick=${() => show(finding)}>
            <${Icon} name=${finding.severity === "error" ? "alert" : "warn"} />
            <span class="m">
              <span class="sr">${finding.severity}: </span>
              ${finding.message}
            </span>
            ${
              finding.line !== null &&
              html`<span class="l mono">
                ${finding.file}:${finding.line}:${finding.column}
              </span>`
            }
          </button>
          ${finding.hint && html`<p class="h">hint: ${finding.hint}</p>`}
          ${
            finding.fixes.length > 0 &&
            html`<div class="acts">
              ${finding.fixes.map(
                (fix) =>
                  html`<${Button}
                    small
                    key=${fix.title}
                    onClick=${() =>
                      void doc.edit(fix.operations).catch((error) => report(error, fix.title))}
                  >
                    ${fix.title}
                  <//>`,
              )}
            </div>`
          }
        </li>`,
    )}
    ${findings.length > MOST && html`<li class="muted pad">${findings.length - MOST} more</li>`}
  </ul>`;
}

/** @param {Finding} finding */
function show(finding) {
  const doc = current.peek();
  const start = startOf(finding);
  if (start) doc?.reveal(...start);
  doc?.view?.focus();
}

/** @param {1 | -1} step */
function goTo(step) {
  const doc = current.peek();
  const place = (/** @type {Finding} */ one) => {
    const [line, column] = startOf(one) ?? [0, 0];
    return line * 1e5 + column;
  };
  const found = (doc?.check.peek()?.findings ?? [])
    .filter((one) => startOf(one))
    .sort((a, b) => place(a) - place(b));
  if (!doc || found.length === 0) return announce("No problems");
  const [line, column] = doc.cursor.peek();
  const here = line * 1e5 + column;
  const next =
    step > 0
      ? (found.find((one) => place(one) > here) ?? found[0])
      : (found.findLast((one) => place(one) < here) ?? found.at(-1));
  if (!next) return;
  show(next);
  announce(`${next.severity}: ${next.message}`);
}

/** Takes the first fix of what is wrong on the cursor's line. */
function fixHere() {
  const doc = current.peek();
  const line = (doc?.cursor.peek()[0] ?? 0) + 1;
  const fix = doc?.check
    .peek()
    ?.findings.find((finding) => finding.line === line && finding.fixes.length > 0)?.fixes[0];
  if (!doc || !fix) return announce("No fix for this line");
  void doc.edit(fix.operations).then(
    () => announce(`${fix.title}: done`),
    (error) => report(error, fix.title),
  );
}
