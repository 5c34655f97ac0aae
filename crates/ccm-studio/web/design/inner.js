// Resources that the text does not hold: those of child manifests, below the
// resource that applies them, and those that a template makes. All are read-only.
import { effect, html, signal } from "../vendor/preact.js";
import { go, place } from "../core/router.js";
import { current, files, idOf } from "../core/store.js";
import { plural } from "../core/words.js";
import { Icon, Tile } from "../ui/icons.js";
import { Button } from "../ui/parts.js";

/** The resources whose child manifests are shown, by `type#name`. */
export const unfolded = signal(/** @type {Set<string>} */ (new Set()));
/** @type {Signal<Api.InnerResource | null>} the one that is looked at */
export const chosenInner = signal(null);
// What is selected elsewhere takes its place.
effect(() => {
  void place.value.resource;
  void current.value;
  chosenInner.value = null;
});

/** @type {WeakMap<OpenFile, InnerEntry[]>} of the last text that was YAML */
const last = new WeakMap();

/** @param {OpenFile | null} doc @returns {InnerEntry[]} */
export function innerOf(doc) {
  const check = doc?.check.value;
  if (!doc || !check) return [];
  if (!doc.broken.value) last.set(doc, check.inner);
  return last.get(doc) ?? [];
}

/**
 * What stands below each resource of the text; 0 has what a template made.
 * @param {InnerEntry[]} inner
 */
export function byParent(inner) {
  /** @type {Map<number, InnerEntry[]>} */
  const found = new Map();
  for (const entry of inner) {
    const list = found.get(entry.parent ?? 0);
    if (list) list.push(entry);
    else found.set(entry.parent ?? 0, [entry]);
  }
  return found;
}

/** @param {string} id @param {boolean} [open] */
export function fold(id, open = !unfolded.peek().has(id)) {
  const next = new Set(unfolded.peek());
  if (open) next.add(id);
  else next.delete(id);
  unfolded.value = next;
}

/** Whether a file can be opened here. @param {string} file */
const isHere = (file) => files.value?.some((one) => one.path === file) ?? false;

/** Shows where a resource is written. @param {Api.InnerResource} entry */
export function openInner(entry) {
  if (isHere(entry.file)) {
    go({ page: "design", file: entry.file, resource: entry.rendered ? "" : idOf(entry) });
  }
}

/** «of child.yaml, line 4». @param {Api.InnerResource} entry */
const origin = (entry) =>
  entry.rendered
    ? `made by ${entry.file}`
    : `${entry.file}${entry.line ? `, line ${entry.line}` : ""}`;

/** How many stand below a resource. @param {{id: string, inner: InnerEntry[]}} props */
export function Below({ id, inner }) {
  const count = inner.filter((entry) => !("note" in entry)).length;
  const open = unfolded.value.has(id);
  return html`<span
    class="below"
    title=${`${open ? "Fold" : "Show"} what it applies (${open ? "←" : "→"})`}
    onClick=${(/** @type {Event} */ event) => {
      event.stopPropagation();
      fold(id);
    }}
  >
    <span class="sr">
      , ${plural(count, "resource")} inside${open ? "" : ", folded"}
    </span>
    <span aria-hidden="true">${count}</span>
    <${Icon} name=${open ? "down" : "chev"} />
  </span>`;
}

/**
 * @param {{
 *   entry: InnerEntry, index: number, indent: number, through: {lane: number}[], chosen: boolean,
 *   place: number, size: number,
 * }} props
 */
export function InnerRow({ entry, index, indent, through, chosen, place: at, size }) {
  const lines = through.map(
    (line) =>
      html`<i
        key=${line.lane}
        class=${`thru l${line.lane}`}
        style=${{ left: `${15 + line.lane * 10}px` }}
      ></i>`,
  );
  const left = { paddingLeft: `${indent + Math.min(4, entry.depth) * 12}px` };
  if ("note" in entry) {
    return html`<div class="inner note" role="presentation" style=${left} title=${entry.note}>
      ${lines}
      <span class="bidi">${entry.note}</span>
    </div>`;
  }
  return html`<div
    class="inner"
    role="option"
    id=${`outline-${index}`}
    aria-selected=${chosen ? "true" : "false"}
    aria-setsize=${size}
    aria-posinset=${at}
    style=${left}
    onClick=${() => (chosenInner.value = entry)}
    onDblClick=${() => openInner(entry)}
  >
    ${lines}
    <span class="sr">${idOf(entry)}, read-only, </span>
    <${Tile} type=${entry.type} />
    <span class="nm">
      <span class="n" aria-hidden="true" title=${entry.name}>
        <bdi>${entry.name}</bdi>
      </span>
      <span class="s bidi">${origin(entry)}</span>
    </span>
  </div>`;
}

/** Above the resources that a template made. @param {{entry: Api.InnerResource}} props */
export function RenderedNote({ entry }) {
  return html`<p class="rendered muted">
    <${Icon} name="braces" />
    <span>
      Made by${" "}
      ${
        isHere(entry.file)
          ? html`<button type="button" class="link bidi" onClick=${() => openInner(entry)}>
            ${entry.file}
          </button>`
          : html`<code class="bidi">${entry.file}</code>`
      }
      , read-only
    </span>
  </p>`;
}

/** In the place of the form. @param {{entry: Api.InnerResource}} props */
export function InnerPane({ entry }) {
  const rows = [
    ["ensure", entry.ensure],
    ["alias", entry.alias],
    ["require", entry.require.join(", ")],
    ["subscribe", entry.subscribe.join(", ")],
  ].filter(([, value]) => value);
  return html`
    <header>
      <${Tile} type=${entry.type} large />
      <div class="title">
        <h2 id="h-form" class="bidi" title=${idOf(entry)}>
          ${idOf(entry)}
        </h2>
        <p class="bidi">
          ${entry.rendered ? "made by a template" : "of a child manifest"} · read-only here
        </p>
      </div>
    </header>
    <div class="scroll" tabindex="0" role="region" aria-label="Properties">
      <fieldset>
        <legend>Where it comes from</legend>
        <div class="f">
          <span class="l">${entry.rendered ? "template" : "manifest"}</span>
          <div class="ctl">
            <p class="none mono bidi">
              ${entry.file}
              ${entry.line && !entry.rendered ? `:${entry.line}` : ""}
            </p>
          </div>
        </div>
        ${rows.map(
          ([name, value]) =>
            html`<div key=${name} class="f">
              <span class="l">${name}</span>
              <div class="ctl">
                <p class="none mono bidi">${value}</p>
              </div>
            </div>`,
        )}
        ${
          isHere(entry.file)
            ? html`<p class="pad">
              <${Button} icon="file" onClick=${() => openInner(entry)}>
                Open ${entry.file}
              <//>
            </p>`
            : html`<p class="muted pad">This file is not in the directory of this Studio.</p>`
        }
      </fieldset>
    </div>
  `;
}
