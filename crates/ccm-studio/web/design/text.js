// The pane with the text.
import { EditorState, EditorView, yaml } from "../vendor/codemirror.js";
import { effect, html, useLayoutEffect, useRef, useSignalEffect } from "../vendor/preact.js";
import { copy, download } from "../core/actions.js";
import { extensions } from "../core/document.js";
import { place } from "../core/router.js";
import { current, idOf, select, selected } from "../core/store.js";
import { Button } from "../ui/parts.js";
import { report } from "../ui/toast.js";
import { editorExtensions, language, readOnly, setSelected } from "./editor.js";
import { setDimmed, setFindings } from "./findings.js";

extensions.push(...editorExtensions.map((one) => one));

/** @param {{document: OpenFile}} props */
export function TextPane({ document: doc }) {
  return html`<section class="pane code" aria-labelledby="h-code" id="pane-code">
    <header>
      <h2 id="h-code" class="bidi">
        ${doc.path.value}
      </h2>
      <span class="muted">${doc.kind === "template" ? "Template" : "YAML"}</span>
      <span class="push"></span>
      <${Button}
        small
        kind="ghost"
        icon="copy"
        onClick=${() => void copy(doc.text(), doc.path.peek())}
      >
        Copy
      <//>
      <${Button} small kind="ghost" icon="dl" onClick=${() => download(doc.path.peek(), doc.text())}>
        Download
      <//>
    </header>
    <${Editor} key=${doc.path.value} document=${doc} />
  </section>`;
}

/** @param {{document: OpenFile}} props */
function Editor({ document: doc }) {
  const host = useRef(/** @type {HTMLDivElement | null} */ (null));
  useLayoutEffect(() => {
    const outer = /** @type {HTMLDivElement} */ (host.current);
    // In a shadow root the editor's styles are adopted sheets, which the policy allows.
    const root = outer.shadowRoot ?? outer.attachShadow({ mode: "open" });
    const view = new EditorView({
      state: doc.editor,
      root,
      parent: root,
      dispatchTransactions(transactions, editor) {
        editor.update(transactions);
        for (const transaction of transactions) doc.accept(transaction);
      },
    });
    doc.view = view;
    view.contentDOM.setAttribute("aria-label", `Text of ${doc.path.peek()}`);
    view.dispatch({ effects: language.reconfigure(doc.kind === "template" ? [] : yaml()) });
    view.dispatch({ scrollIntoView: true });
    const fix = (/** @type {Fix} */ chosen) =>
      void doc.edit(chosen.operations).catch((error) => report(error, chosen.title));
    const stops = [
      effect(() => {
        const found = doc.check.value?.findings ?? [];
        view.dispatch({ effects: setFindings.of({ findings: found, fix }) });
      }),
      effect(() => {
        const locked = doc.locked.value;
        view.dispatch({
          effects: readOnly.reconfigure(locked ? [EditorState.readOnly.of(true)] : []),
        });
      }),
      dimWhileSlow(doc, view),
      effect(() => {
        // The outline is of the checked text: while it is older, the lines move with the text.
        const entry = selected.value;
        const fresh = doc.checked === doc.editor.doc;
        if (!fresh && entry) return;
        const lines = entry && {
          from: entry.range[0],
          to:
            entry.range[3] === 0 && entry.range[2] > entry.range[0]
              ? entry.range[2] - 1
              : entry.range[2],
        };
        doc.mark(setSelected.of(lines));
      }),
    ];
    return () => {
      for (const stop of stops) stop();
      doc.view = null;
      view.destroy();
    };
  }, [doc]);

  // An address that names a resource shows it, once it is known where it is.
  const revealed = useRef(false);
  useSignalEffect(() => {
    const entry = selected.value;
    if (!entry || revealed.current || current.value !== doc) return;
    revealed.current = true;
    if (doc.cursor.peek()[0] === 0) doc.reveal(entry.range[0], entry.range[1]);
  });

  // The cursor's place chooses the resource.
  useSignalEffect(() => {
    const [line] = doc.cursor.value;
    // A name that was changed in the text is the same resource still.
    const lost = doc.outline.value && selected.value === null && place.value.resource !== "";
    const entry = entryAt(doc, line);
    const now = selected.peek();
    // On the way to another file, its address is not ours to change.
    const leaving = place.value.file !== "" && place.value.file !== doc.path.peek();
    if (leaving || current.peek() !== doc) return;
    // Noted also where there is nothing to choose: later it would look like a move.
    const elsewhere = moved(doc);
    if (!entry || (!lost && now && !elsewhere)) return;
    if (!now || now.number !== entry.number || idOf(now) !== idOf(entry)) {
      select(entry, { reveal: false });
    }
  });
  return html`<div class="editor" ref=${host}></div>`;
}

/** Where the cursor was when it last moved. @type {WeakMap<OpenFile, string>} */
const chosenAt = new WeakMap();

/**
 * Whether the cursor is elsewhere than before: an outline that changes beneath it chooses nothing.
 * @param {OpenFile} doc
 */
function moved(doc) {
  const at = doc.cursor.peek().join();
  const before = chosenAt.get(doc);
  chosenAt.set(doc, at);
  return before !== at;
}

/** @param {OpenFile} doc @param {EditorView} view */
function dimWhileSlow(doc, view) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const stop = effect(() => {
    clearTimeout(timer);
    if (doc.checking.value) {
      timer = setTimeout(() => view.dispatch({ effects: setDimmed.of(true) }), 500);
    } else view.dispatch({ effects: setDimmed.of(false) });
  });
  return () => {
    clearTimeout(timer);
    stop();
  };
}

/** The resource that a line belongs to. @param {OpenFile} doc @param {number} line */
export function entryAt(doc, line) {
  const outline = doc.outline.peek();
  const at = doc.lineWhenChecked(line);
  let [low, high] = [0, outline.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (/** @type {OutlineEntry} */ (outline[middle]).range[0] <= at) low = middle;
    else high = middle - 1;
  }
  const found = outline[low];
  if (!found || found.range[0] > at) return null;
  const last = found.range[3] === 0 ? found.range[2] - 1 : found.range[2];
  return at <= Math.max(last, found.range[0]) ? found : null;
}
