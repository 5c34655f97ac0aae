// The page Design: outline, form, text, and results below them.
import { html, signal, useEffect } from "../vendor/preact.js";
import { register } from "../core/commands.js";
import { remembered } from "../core/prefs.js";
import { announce } from "../core/announce.js";
import { file, format, go, place } from "../core/router.js";
import { copy } from "../core/actions.js";
import {
  current,
  files,
  filesStopped,
  openError,
  selected,
  stopOpening,
  types,
} from "../core/store.js";
import { FileBanners } from "../frame/banners.js";
import { Modal, show } from "../ui/dialog.js";
import { Tile } from "../ui/icons.js";
import { Button, Segmented, Skeleton } from "../ui/parts.js";
import { Splitter } from "../ui/split.js";
import { contextAt } from "../design/context.js";
import { copyAs } from "../design/copy-as.js";
import { Files, FilesHeader } from "../design/files.js";
import { FormPane, focusWhenDrawn } from "../design/form.js";
import { addResource, canEdit, duplicate, redo, undo } from "../design/operations.js";
import { Adder, Outline } from "../design/outline.js";
import { Panel, panelOpen } from "../design/panel.js";
import { followSelection } from "../design/state.js";
import { TextPane } from "../design/text.js";
import { Welcome } from "../design/welcome.js";

const outlineWidth = remembered("outline-width", 282);
const codeHeight = remembered("code-height", 320);
const panelHeight = remembered("panel-height", 240);
const closed = remembered("closed-panes", /** @type {string[]} */ ([]));
/** The pane that is shown where there is room for one. */
const onePane = signal("outline");

/** @param {string} query */
function media(query) {
  const list = matchMedia(query);
  const matches = signal(list.matches);
  list.addEventListener("change", () => (matches.value = list.matches));
  return matches;
}
const medium = media("(max-width: 1180px)");
const narrow = media("(max-width: 760px)");

const PANES = [
  { value: "outline", label: "Resources" },
  { value: "form", label: "Form" },
  { value: "code", label: "Text" },
  { value: "panel", label: "Results" },
];

/** @param {string} pane */
function toggle(pane) {
  const now = closed.peek();
  closed.value = now.includes(pane) ? now.filter((one) => one !== pane) : [...now, pane];
}

/** Moves the focus to the next pane that is shown. @param {1 | -1} step */
function nextPane(step) {
  if (narrow.peek()) {
    const at = PANES.findIndex((pane) => pane.value === onePane.peek());
    onePane.value = PANES[(at + step + PANES.length) % PANES.length]?.value ?? "outline";
    requestAnimationFrame(() => focusPane(onePane.peek()));
    return;
  }
  const there = PANES.map((pane) => pane.value).filter((pane) =>
    document.getElementById(`pane-${pane}`),
  );
  const active = document.activeElement;
  const at = there.findIndex((pane) => document.getElementById(`pane-${pane}`)?.contains(active));
  const next = there[(at + step + there.length) % there.length];
  if (next) focusPane(next);
}

/** @param {string} pane */
function focusPane(pane) {
  if (pane === "code") return current.peek()?.view?.focus();
  if (pane === "form") return focusWhenDrawn("#pane-form .scroll");
  const inside = { outline: "#outline", panel: "[role=tab][aria-selected=true]" }[pane] ?? "button";
  /** @type {HTMLElement | null | undefined} */ (
    document.getElementById(`pane-${pane}`)?.querySelector(inside)
  )?.focus();
}

/** The types, by keys. */
async function chooseType() {
  const type = await show(
    (close) =>
      html`<${Modal} label="Add a resource" class="ask" onClose=${() => close()}>
        <h2>Add a resource</h2>
        <div class="body types">
          <ul>
            ${types.peek().types.map(
              (one, index) =>
                html`<li key=${one.name}>
                  <button
                    type="button"
                    data-autofocus=${index === 0 ? "" : undefined}
                    onKeyDown=${arrows}
                    onClick=${() => close(one.name)}
                  >
                    <${Tile} type=${one.name} large />
                    <span>
                      <b>${one.name}</b>
                      <small>${one.about}</small>
                    </span>
                  </button>
                </li>`,
            )}
          </ul>
        </div>
      <//>`,
  );
  if (typeof type === "string") await addResource(type);
}

/** @param {KeyboardEvent} event */
function arrows(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const item = /** @type {HTMLElement} */ (event.currentTarget).parentElement;
  const next = step > 0 ? item?.nextElementSibling : item?.previousElementSibling;
  next?.querySelector("button")?.focus();
}

/** Opens the template of the property at the cursor. */
function tryTemplate() {
  const doc = current.peek();
  if (!doc) return;
  const { path, key } = contextAt(doc.editor.doc, doc.editor.selection.main.head);
  const property = path[4] ?? key;
  if (selected.peek() && property) go({ page: "templates", rest: { property } });
  else announce("The cursor is in no property");
}

export function Design() {
  useEffect(() => followSelection(), []);
  useEffect(
    () =>
      register([
        {
          id: "add",
          title: "Add a resource",
          keys: "A",
          icon: "plus",
          group: "Design",
          when: canEdit,
          run: () => void chooseType(),
        },
        {
          id: "duplicate",
          title: "Duplicate the resource",
          keys: "Mod+D",
          icon: "copy",
          group: "Design",
          when: () => selected.peek() !== null && !inEditor(),
          run: () => {
            const entry = selected.peek();
            if (entry) void duplicate(entry);
          },
        },
        {
          id: "undo",
          title: "Undo",
          keys: "Mod+Z",
          icon: "undo",
          group: "Design",
          inText: true,
          run: undo,
        },
        {
          id: "redo",
          title: "Redo",
          keys: "Mod+Shift+Z",
          icon: "redo",
          group: "Design",
          inText: true,
          run: redo,
        },
        {
          id: "next-pane",
          title: "Next pane",
          keys: "F6",
          group: "Design",
          hidden: true,
          run: () => nextPane(1),
        },
        {
          id: "previous-pane",
          title: "Previous pane",
          keys: "Shift+F6",
          group: "Design",
          hidden: true,
          run: () => nextPane(-1),
        },
        .../** @type {const} */ ([
          ["yaml", "YAML"],
          ["command", "ccm ensure command"],
          ["request", "API request"],
        ]).map(([form, words]) => ({
          id: `copy-${form}`,
          title: `Copy the resource as ${words}`,
          icon: "copy",
          when: () => selected.peek() !== null,
          run: () => void copyAs(form),
        })),
        {
          id: "copy-text",
          title: "Copy the manifest",
          icon: "copy",
          run: () => void copy(current.peek()?.text() ?? "", current.peek()?.path.peek() ?? ""),
        },
        {
          id: "try-template",
          title: "Try the template at the cursor",
          icon: "braces",
          when: () => selected.peek() !== null,
          run: tryTemplate,
        },
        {
          id: "copy-link",
          title: "Copy a link to this place",
          icon: "link",
          run: () => void copy(new URL(format(place.peek()), location.href).href, "the link"),
        },
        {
          id: "pane-form",
          title: "Show or hide the form",
          icon: "panel",
          run: () => toggle("form"),
        },
        {
          id: "pane-code",
          title: "Show or hide the text",
          icon: "panel",
          run: () => toggle("code"),
        },
        {
          id: "pane-panel",
          title: "Show or hide the results",
          icon: "panel",
          run: () => (panelOpen.value = !panelOpen.peek()),
        },
      ]),
    [],
  );
  const doc = current.value;
  const list = files.value;
  const empty =
    list !== null && !list.some((file) => file.kind === "manifest") && !doc && !openError.value;
  if (empty) return html`<${Welcome} />`;
  const hidden = narrow.value
    ? PANES.map((pane) => pane.value).filter((pane) => pane !== onePane.value)
    : closed.value;
  const form = !hidden.includes("form");
  const code = !hidden.includes("code");
  const out = !hidden.includes("outline");
  const panel = !hidden.includes("panel") && (narrow.value || panelOpen.value);
  return html`<div class=${`design ${narrow.value ? "one" : medium.value ? "two" : "three"}`}>
    <h1 class="sr">Design ${file.value}</h1>
    ${
      narrow.value &&
      html`<div class="panes">
        <${Segmented}
          label="Pane"
          value=${onePane.value}
          options=${PANES}
          onChange=${(/** @type {string} */ pane) => (onePane.value = pane)}
        />
      </div>`
    }
    <div class="bansrow">
      <${FileBanners} />
    </div>
    <div class="work">
      ${
        out &&
        html`
          <section
            class="pane outline"
            aria-labelledby="h-out"
            id="pane-outline"
            style=${narrow.value ? {} : { width: `${outlineWidth.value}px` }}
          >
            <${FilesHeader} />
            <${Files} />
            <${Outline} />
            ${doc?.isManifest && html`<${Adder} />`}
          </section>
          ${
            !narrow.value &&
            html`<${Splitter}
              label="Width of the resources"
              orientation="vertical"
              size=${outlineWidth}
              min=${200}
              max=${520}
              initial=${282}
              controls="pane-outline"
            />`
          }
        `
      }
      <div class="desk">
        <div class="upper">
          ${
            form &&
            html`<div class="half" style=${formStyle(code)}>
              <${FormPane} />
            </div>`
          }
          ${
            form &&
            code &&
            !narrow.value &&
            (medium.value
              ? html`<${Splitter}
                label="Height of the text"
                orientation="horizontal"
                size=${codeHeight}
                min=${120}
                max=${900}
                initial=${320}
                invert
                controls="pane-code"
              />`
              : html`<${Splitter}
                label="Width of the form"
                orientation="vertical"
                size=${formSize}
                min=${320}
                max=${900}
                initial=${500}
                controls="pane-form"
              />`)
          }
          ${
            code &&
            html`<div
              class="half code"
              style=${
                medium.value && form && !narrow.value
                  ? { height: `${codeHeight.value}px`, flex: "none" }
                  : {}
              }
            >
              ${
                doc
                  ? html`<${TextPane} key=${doc.path.value} document=${doc} />`
                  : openError.value || (filesStopped.value && !file.value)
                    ? null
                    : html`<${Skeleton} rows=${16} label="Loading the text" onStop=${stopOpening} />`
              }
            </div>`
          }
        </div>
        ${
          panel &&
          html`
            ${
              !narrow.value &&
              html`<${Splitter}
                label="Height of the results"
                orientation="horizontal"
                size=${panelHeight}
                min=${90}
                max=${600}
                initial=${240}
                invert
                controls="pane-panel"
              />`
            }
            <div class="lower" style=${narrow.value ? {} : { height: `${panelHeight.value}px` }}>
              <${Panel} />
            </div>
          `
        }
        ${
          !panelOpen.value &&
          !narrow.value &&
          html`<div class="reopen">
            <${Button} small kind="ghost" icon="up" onClick=${() => (panelOpen.value = true)}>
              Results
            <//>
          </div>`
        }
      </div>
    </div>
  </div>`;
}

/** The width of the form while it was never changed: a share of what is there. */
const formSize = remembered(
  "form-size",
  Math.round(Math.max(360, (globalThis.innerWidth - 360) * 0.47)),
);

/** @param {boolean} code */
function formStyle(code) {
  if (narrow.value || medium.value || !code) return {};
  return { width: `${formSize.value}px`, flex: "none" };
}

const inEditor = () => document.activeElement?.classList.contains("editor") ?? false;
