// The page Data.
import { html } from "../vendor/preact.js";
import { Page } from "../frame/page.js";

export function Data() {
  return html`<${Page} title="Data" about="Not written yet."><//>`;
}
