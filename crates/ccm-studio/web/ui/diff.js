// A diff as rows, words that differ marked, long ones folded.
import { html, useState } from "../vendor/preact.js";
import { plural } from "../core/words.js";
import { Icon } from "./icons.js";
import { Button, Pill } from "./parts.js";

/** @typedef {import("../core/diff.js").DiffRow} DiffRow */

const MOST = 200;
const SIGNS = { added: "+", removed: "−", same: " ", hunk: "", note: "" };
const CLASSES = { added: "a", removed: "r", same: "", hunk: "hunk", note: "hunk" };

/**
 * @param {{diff: import("../core/diff.js").Diff, title?: string}} props
 */
export function DiffView({ diff, title = diff.to === "/dev/null" ? diff.from : diff.to }) {
  const [all, setAll] = useState(false);
  const rows = all ? diff.rows : diff.rows.slice(0, MOST);
  return html`<figure class="diff">
    <figcaption class="dh">
      <${Icon} name="file" />
      <span class="bidi">${title}</span>
      <${Pill} square>
        +${diff.added}
        <span class="sr"> lines added</span>
      <//>
      <${Pill} square>
        −${diff.removed}
        <span class="sr"> lines removed</span>
      <//>
    </figcaption>
    <div class="dlines" tabindex="0" role="group" aria-label=${`Difference of ${title}`}>
      ${rows.map((row, index) =>
        row.kind === "hunk" || row.kind === "note"
          ? html`<div key=${index} class="hunk">
            ${row.text}
          </div>`
          : html`<div key=${index} class=${`dl ${CLASSES[row.kind]}`}>
            <i aria-hidden="true">${row.old}</i>
            <i aria-hidden="true">${row.new}</i>
            <span class="sg">
              ${SIGNS[row.kind]}
              ${row.kind !== "same" && html`<span class="sr">${row.kind}: </span>`}
            </span>
            <span class="bidi">${marked(row)}</span>
          </div>`,
      )}
    </div>
    ${
      diff.rows.length > MOST &&
      html`<div class="dmore">
        <${Button} small kind="ghost" onClick=${() => setAll(!all)}>
          ${all ? "Show less" : `Show ${plural(diff.rows.length - MOST, "more line")}`}
        <//>
      </div>`
    }
  </figure>`;
}

/** @param {DiffRow} row */
function marked({ text, marks }) {
  if (!marks || marks.length === 0) return text;
  const parts = [];
  let at = 0;
  for (const [from, to] of marks) {
    parts.push(text.slice(at, from), html`<mark key=${from}>${text.slice(from, to)}</mark>`);
    at = to;
  }
  parts.push(text.slice(at));
  return parts;
}
