// The common shape of a page that scrolls as a whole.
import { html } from "../vendor/preact.js";
import { FileBanners } from "./banners.js";

/**
 * @param {{title: string, about?: Children, actions?: Children, children?: Children}} props
 */
export function Page({ title, about, actions, children }) {
  return html`<div class="page">
    <div class="head">
      <div>
        <h1>${title}</h1>
        ${about && html`<p>${about}</p>`}
      </div>
      ${actions && html`<div class="r">${actions}</div>`}
    </div>
    <${FileBanners} />
    ${children}
  </div>`;
}
