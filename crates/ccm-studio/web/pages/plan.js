// The page Plan.
import { html } from "../vendor/preact.js";
import { Page } from "../frame/page.js";

export function Plan() {
  return html`<${Page} title="Plan" about="Not written yet."><//>`;
}

/** The plan below Design: summary and rows, without a heading. */
export function PlanPanel() {
  return html`<p class="muted pad">No plan yet</p>`;
}

/** What the commands of the last plan or run printed, below Design. */
export function OutputPanel() {
  return html`<p class="muted pad">No output yet</p>`;
}

/** How many resources the plan below Design has; undefined without one. @returns {number | undefined} */
export const planCount = () => undefined;
