// The page Graph.
import { html } from "../vendor/preact.js";
import { Page } from "../frame/page.js";

export function Graph() {
  return html`<${Page} title="Graph" about="Not written yet."><//>`;
}
