// The page Design.
import { html } from "../vendor/preact.js";
import { Page } from "../frame/page.js";

export function Design() {
  return html`<${Page} title="Design" about="Not written yet."><//>`;
}
