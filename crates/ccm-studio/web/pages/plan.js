// The page Plan.
import { html } from "../vendor/preact.js";
import { Page } from "../frame/page.js";

export function Plan() {
  return html`<${Page} title="Plan" about="Not written yet."><//>`;
}
