// What must be said about the server or the file, wherever one is.
import { html } from "../vendor/preact.js";
import { connection } from "../core/connection.js";
import { copy, download, save } from "../core/actions.js";
import { compareTexts } from "../core/diff.js";
import { refused } from "../core/session.js";
import { current, openError, studio } from "../core/store.js";
import { DiffView } from "../ui/diff.js";
import { Modal, show } from "../ui/dialog.js";
import { Banner, Button } from "../ui/parts.js";
import { report } from "../ui/toast.js";
import { HowToConnect } from "./connect.js";

/** Shown above every page. */
export function GlobalBanners() {
  const document = current.value;
  const rescue =
    document &&
    html`
      <${Button} small onClick=${() => void copy(document.text(), "the text")}>
        Copy text
      <//>
      <${Button} small onClick=${() => download(document.path.value, document.text())}>
        Download
      <//>
    `;
  if (refused.value) {
    return html`<div class="over">
      <${Banner} kind="bad" actions=${rescue}>
        <${HowToConnect} code=${refused.value} inline />
        <p>The text below stays as it is.</p>
      <//>
    </div>`;
  }
  if (connection.value === "gone") {
    return html`<div class="over">
      <${Banner} kind="bad" actions=${rescue}>
        <b>ccm studio has ended.</b> Your text stays here. The page looks for it again every two
        seconds.
      <//>
    </div>`;
  }
  if (connection.value === "stopping") {
    return html`<div class="over">
      <${Banner} kind="warn" actions=${rescue}>
        <b>ccm studio is ending.</b> Save now, or keep a copy of your text.
      <//>
    </div>`;
  }
  return null;
}

/** Notes that have banners of their own. */
const SAID = new Set(["mixed_eol", "read_only"]);

/** Shown where the file is worked on. */
export function FileBanners() {
  const document = current.value;
  if (!document) {
    const error = openError.value;
    return (
      error &&
      html`<${Banner} kind="bad">
        ${error.message}
        ${hint(error)}
      <//>`
    );
  }
  const conflict = document.conflict.value;
  const failed = document.failed.value;
  const name = document.path.value;
  return html`<div class="banners">
    ${
      failed &&
      html`<${Banner}
        kind="bad"
        actions=${html`<${Button} small onClick=${() => document.scheduleCheck(0)}>
          Try again
        <//>`}
      >
        <b>The server could not answer:</b> ${failed.message}
        ${hint(failed)} <span class="mono">request ${failed.request}</span>
      <//>`
    }
    ${
      conflict === "removed" &&
      html`<${Banner}
        kind="warn"
        actions=${html`<${Button} small onClick=${() => document.keepMine()}>
          Keep as a draft
        <//>`}
      >
        <b class="bidi">${name}</b> was removed. Its text is still here.
      <//>`
    }
    ${
      conflict &&
      conflict !== "removed" &&
      html`<${Banner}
        kind="warn"
        actions=${html`
          <${Button} small onClick=${() => showDifference(document, conflict.text)}>
            Show difference
          <//>
          <${Button}
            small
            onClick=${() =>
              void document.takeTheirs().catch((error) => report(error, `read ${name}`))}
          >
            Take theirs
          <//>
          <${Button} small onClick=${() => document.keepMine()}>
            Keep mine
          <//>
        `}
      >
        <b class="bidi">${name}</b> was changed on disk since you opened it.
      <//>`
    }
    ${
      document.eol.value === "mixed" &&
      !document.locked.value &&
      html`<${Banner}
        kind="warn"
        actions=${html`
          <${Button} small onClick=${() => void save({ eol: "lf" })}>
            Save with LF
          <//>
          <${Button} small onClick=${() => void save({ eol: "crlf" })}>
            Save with CRLF
          <//>
        `}
      >
        This file has both LF and CRLF line ends. Choose one; nothing is changed silently.
      <//>`
    }
    ${
      !document.writable.value &&
      html`<${Banner} kind="info">
        <b class="bidi">${name}</b>${" "}
        ${
          studio.value?.read_only
            ? "cannot be saved, as this Studio was started with --read-only"
            : `cannot be written by ${studio.value?.user}`
        }
        . The text is read-only.
      <//>`
    }
    ${document.notes.value
      .filter((note) => !SAID.has(note.code))
      .map(
        (note) =>
          html`<${Banner} key=${note.code} kind="warn">
            ${note.message}
          <//>`,
      )}
  </div>`;
}

/** @param {unknown} error */
function hint(error) {
  const text = /** @type {{hint?: string}} */ (error).hint;
  return text
    ? html`
      ${" "}
      <span class="muted">${text}</span>
    `
    : null;
}

/** @param {OpenFile} document @param {string} theirs */
function showDifference(document, theirs) {
  const diff = compareTexts(document.text(), theirs);
  void show(
    (close) =>
      html`<${Modal} label="Difference" class="wide" onClose=${() => close()}>
        <h2>From your text to the one on disk</h2>
        <div class="body">
          <${DiffView} diff=${diff} title=${document.path.value} />
        </div>
        <footer>
          <${Button} data-autofocus onClick=${() => close()}>
            Close
          <//>
          <${Button}
            onClick=${() => {
              close();
              document.keepMine();
            }}
          >
            Keep mine
          <//>
          <${Button}
            onClick=${() => {
              close();
              void document.takeTheirs().catch((error) => report(error, "take their text"));
            }}
          >
            Take theirs
          <//>
        </footer>
      <//>`,
  );
}
