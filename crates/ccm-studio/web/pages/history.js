// The page History.
import { html } from "../vendor/preact.js";
import { Page } from "../frame/page.js";

export function History() {
  return html`<${Page} title="History" about="Not written yet."><//>`;
}
