// The page Templates.
import { html } from "../vendor/preact.js";
import { Page } from "../frame/page.js";

export function Templates() {
  return html`<${Page} title="Templates" about="Not written yet."><//>`;
}
