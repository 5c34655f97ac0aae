// The files below the directory.
import { html, useRef } from "../vendor/preact.js";
import { newManifest } from "../core/actions.js";
import { file, format } from "../core/router.js";
import {
  current,
  documents,
  files,
  filesStopped,
  filesTruncated,
  loadFiles,
  stopListing,
  studio,
} from "../core/store.js";
import { plural } from "../core/words.js";
import { Icon } from "../ui/icons.js";
import { Button, Loading, Pill } from "../ui/parts.js";
import { report } from "../ui/toast.js";

const ICONS = { manifest: "file", template: "braces", data: "layers", other: "file" };

export function FilesHeader() {
  const about = studio.value;
  return html`<header>
    <h2 id="h-out" class="bidi">
      ${about?.directory.split("/").at(-1) || "/"}
    </h2>
    <span class="muted mono grow bidi" title=${about?.directory}>
      ${about?.directory}
    </span>
    <${Button}
      small
      kind="ghost"
      icon="plus"
      label="New manifest"
      disabled=${about?.read_only}
      onClick=${() => void newManifest()}
    />
  </header>`;
}

export function Files() {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const list = files.value;
  if (!list) {
    return html`<${Loading}
      rows=${4}
      label="Loading the files"
      asked=${{
        stopped: filesStopped.value,
        stop: stopListing,
        again: () => void loadFiles().catch((error) => report(error, "list the files")),
      }}
    />`;
  }
  const shown = file.value;
  const drafts = [...documents].filter(
    ([path, document]) => document.draft.value && !list.some((one) => one.path === path),
  );
  /** @param {KeyboardEvent} event */
  const keys = (event) => {
    const links = [...(box.current?.querySelectorAll("a") ?? [])];
    const at = links.indexOf(/** @type {HTMLAnchorElement} */ (event.target));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1 }[event.key];
    if (to === undefined || at < 0) return;
    event.preventDefault();
    links[Math.max(0, Math.min(links.length - 1, to))]?.focus();
  };
  return html`<nav class="files" aria-label="Files" ref=${box} onKeyDown=${keys}>
    ${drafts.map(
      ([path]) =>
        html`<a
          key=${path}
          href=${format({ file: path })}
          aria-current=${path === shown ? "true" : undefined}
        >
          <${Icon} name="file" />
          <span class="n bidi">${path}</span>
          <span class="tail">
            <${Pill} kind="warn">draft<//>
          </span>
        </a>`,
    )}
    ${list.map(
      (one) =>
        html`<a
          key=${one.path}
          href=${format({ file: one.path })}
          aria-current=${one.path === shown ? "true" : undefined}
        >
          <${Icon} name=${ICONS[one.kind]} />
          <span class="n bidi" title=${one.path}>
            ${one.path}
          </span>
          <span class="tail">
            <${Count} file=${one} />
          </span>
        </a>`,
    )}
    ${filesTruncated.value && html`<p class="muted">More files than can be listed</p>`}
  </nav>`;
}

/** @param {{file: FileEntry}} props */
function Count({ file }) {
  const document = documents.get(file.path);
  const open = current.value === document && document?.check.value ? document : undefined;
  const errors = open ? open.errors.value : (file.errors ?? 0);
  const resources = open ? open.outline.value.length : file.resources;
  const changed =
    document?.dirty.value &&
    html`<span class="changed" title="Unsaved">
      <span class="sr">, unsaved</span>
    </span>`;
  if (errors > 0) {
    return html`
      ${changed}
      <${Pill} kind="bad" icon="alert">
        ${errors}
        <span class="sr"> ${errors === 1 ? "error" : "errors"}</span>
      <//>
    `;
  }
  if (file.kind !== "manifest" || resources === undefined) return changed || null;
  return html`
    ${changed}
    <span class="muted" title=${plural(resources, "resource")}>
      ${resources.toLocaleString("en")}
      <span class="sr"> ${resources === 1 ? "resource" : "resources"}, valid</span>
    </span>
  `;
}
