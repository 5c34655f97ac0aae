// The status bar.
import { html, useEffect, useState } from "../vendor/preact.js";
import { current, studio } from "../core/store.js";
import { runCommand } from "../core/commands.js";
import { duration, plural } from "../core/words.js";
import { Icon } from "../ui/icons.js";

export function StatusBar() {
  const document = current.value;
  const about = studio.value;
  return html`<footer class="status" aria-label="Status">
    ${document?.isManifest && html`<${Checked} document=${document} />`}
    ${
      about &&
      (about.apply_allowed
        ? html`<span class="on">
          <${Icon} name="play" />
          Applying is on
        </span>`
        : html`<span class="lock" title="Start with --allow-apply to apply from here">
          <${Icon} name="lock" />
          ${about.read_only ? "Read-only" : "Looks only: applying is off"}
        </span>`)
    }
    <span class="right">
      ${
        document &&
        html`
          <${Cursor} document=${document} />
          <span class="wide">UTF-8</span>
          <span class="wide">
            ${{ lf: "LF", crlf: "CRLF", mixed: "LF and CRLF" }[document.eol.value]}
          </span>
        `
      }
      ${
        about &&
        html`
          <span class="wide">
            ${about.host} · ${about.user}
          </span>
          <span class="wide" title=${about.commit}>
            ccm ${about.version}
          </span>
        `
      }
    </span>
  </footer>`;
}

/** @param {{document: OpenFile}} props */
function Cursor({ document }) {
  const [line, column] = document.cursor.value;
  return html`<span>
    Ln ${line + 1}, Col ${column + 1}
  </span>`;
}

/** @param {{document: OpenFile}} props */
function Checked({ document }) {
  const { errors, warnings, check, checking } = document;
  const [slow, setSlow] = useState(false);
  const began = checking.value;
  useEffect(() => {
    setSlow(false);
    if (!began) return;
    const timer = setTimeout(() => setSlow(true), 500);
    return () => clearTimeout(timer);
  }, [began]);
  return html`
    <button
      type="button"
      class=${errors.value > 0 ? "bad" : ""}
      onClick=${() => runCommand("problems")}
    >
      <${Icon} name=${errors.value > 0 ? "alert" : "check"} />
      ${plural(errors.value, "error")}
    </button>
    <span class=${warnings.value > 0 ? "warn" : ""}>${plural(warnings.value, "warning")}</span>
    <span class="wide" data-checking=${slow ? "slow" : undefined}>
      ${
        slow
          ? "Checking …"
          : check.value
            ? `Checked in ${duration(check.value.micros)}`
            : "Not checked yet"
      }
    </span>
  `;
}
