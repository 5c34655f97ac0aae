// What is shown to those who have no key.
import { html } from "../vendor/preact.js";
import { refused } from "../core/session.js";
import { Icon } from "../ui/icons.js";
import { Logo } from "./topbar.js";

/** @type {Record<string, [string, string]>} */
const WORDS = {
  token_used: [
    "This link was used before",
    "Each link works once. If you did not open it yourself, someone else on this machine may have: " +
      "end this Studio and start it again.",
  ],
  token_expired: ["This link is too old", "A link works for ten minutes."],
  key_missing: ["Not connected", "This page has no key for the Studio that serves it."],
  key_wrong: [
    "Not connected",
    "The key of this page is not one of this Studio. It may have been started again since.",
  ],
};

/**
 * How to get in.
 * @param {{code: string, inline?: boolean}} props `inline`: within a page that has its heading
 */
export function HowToConnect({ code, inline = false }) {
  const [title, why] = WORDS[code] ?? /** @type {[string, string]} */ (WORDS["key_wrong"]);
  return html`
    ${inline ? html`<b>${title}</b>` : html`<h1>${title}</h1>`}
    <p>${why}</p>
    <p>
      To get a new link, press <kbd>Enter</kbd> in the terminal where <code>ccm studio</code>${" "}
      runs, and open what it prints. If it has ended, start it again.
    </p>
  `;
}

export function Connect() {
  return html`<main class="connect" id="main">
    <div class="card">
      <${Logo} />
      <${HowToConnect} code=${refused.value ?? "key_missing"} />
      <p class="muted">
        <${Icon} name="lock" /> Studio listens only to this machine, and the link is its only key.
      </p>
    </div>
  </main>`;
}
