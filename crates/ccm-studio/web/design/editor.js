// The editor's extensions: what every open file has.
import {
  Compartment,
  Decoration,
  EditorState,
  EditorView,
  HighlightStyle,
  MatchDecorator,
  Prec,
  StateEffect,
  StateField,
  ViewPlugin,
  acceptCompletion,
  autocompletion,
  bracketMatching,
  closeBrackets,
  closeBracketsKeymap,
  codeFolding,
  completionKeymap,
  crosshairCursor,
  defaultKeymap,
  drawSelection,
  dropCursor,
  foldGutter,
  foldKeymap,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSelectionMatches,
  highlightSpecialChars,
  history,
  historyKeymap,
  indentOnInput,
  indentUnit,
  indentWithTab,
  keymap,
  lineNumbers,
  rectangularSelection,
  search,
  searchKeymap,
  syntaxHighlighting,
  tags,
  yaml,
} from "../vendor/codemirror.js";
import { complete, hover } from "./completion.js";
import { findings } from "./findings.js";
import { theme } from "./editor-theme.js";

const style = HighlightStyle.define([
  { tag: [tags.definition(tags.propertyName), tags.propertyName], color: "var(--y-key)" },
  { tag: [tags.string, tags.content, tags.attributeValue], color: "var(--y-str)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--y-num)" },
  { tag: tags.comment, color: "var(--y-com)", fontStyle: "italic" },
  {
    tag: [tags.punctuation, tags.separator, tags.squareBracket, tags.brace, tags.meta],
    color: "var(--y-punct)",
  },
  { tag: [tags.labelName, tags.typeName], color: "var(--violet)" },
]);

/** Placeholders, wherever they stand. */
const placeholders = (() => {
  const matcher = new MatchDecorator({
    regexp: /\{\{[^{}\n]*\}\}/g,
    decoration: Decoration.mark({ class: "cm-tpl" }),
  });
  return ViewPlugin.define(
    (view) => {
      const plugin = {
        decorations: matcher.createDeco(view),
        /** @param {import("../vendor/codemirror.js").ViewUpdate} update */
        update(update) {
          plugin.decorations = matcher.updateDeco(update, plugin.decorations);
        },
      };
      return plugin;
    },
    { decorations: (plugin) => plugin.decorations },
  );
})();

/**
 * The lines of the resource that is selected.
 * @type {import("../vendor/codemirror.js").StateEffectType<{from: number, to: number} | null>}
 */
export const setSelected = StateEffect.define();

const selectedLine = Decoration.line({ class: "cm-chosen" });

const selectedField = StateField.define({
  create: () => Decoration.none,
  update(shown, transaction) {
    let next = transaction.docChanged ? shown.map(transaction.changes) : shown;
    for (const effect of transaction.effects) {
      if (!effect.is(setSelected)) continue;
      const { doc } = transaction.state;
      const lines = [];
      if (effect.value) {
        const last = Math.min(effect.value.to, doc.lines - 1);
        for (let line = effect.value.from; line <= last; line += 1) {
          lines.push(selectedLine.range(doc.line(line + 1).from));
        }
      }
      next = Decoration.set(lines);
    }
    return next;
  },
  provide: (field) => EditorView.decorations.from(field),
});

export const readOnly = new Compartment();
export const language = new Compartment();

/** Keys of the page that the editor must not take. */
const left = Prec.highest(
  keymap.of([
    { key: "Mod-Enter", run: () => false },
    { key: "Mod-.", run: () => false },
  ]),
);

export const editorExtensions = [
  left,
  findings,
  lineNumbers(),
  foldGutter({ markerDOM }),
  codeFolding(),
  highlightSpecialChars(),
  history(),
  drawSelection(),
  dropCursor(),
  // It takes the focus without this; those who look for a way to scroll by keys want to read it.
  EditorView.contentAttributes.of({ tabindex: "0" }),
  EditorState.allowMultipleSelections.of(true),
  EditorState.tabSize.of(2),
  indentUnit.of("  "),
  indentOnInput(),
  bracketMatching(),
  closeBrackets(),
  rectangularSelection(),
  crosshairCursor(),
  highlightActiveLine(),
  highlightActiveLineGutter(),
  highlightSelectionMatches(),
  search({ top: true }),
  autocompletion({ override: [complete], icons: false }),
  hover,
  placeholders,
  selectedField,
  syntaxHighlighting(style),
  theme,
  language.of(yaml()),
  readOnly.of([]),
  keymap.of([
    { key: "Tab", run: acceptCompletion },
    ...closeBracketsKeymap,
    // What Enter with a modifier means, the page says.
    ...defaultKeymap.filter((binding) => binding.key !== "Mod-Enter"),
    ...searchKeymap,
    ...historyKeymap,
    ...foldKeymap,
    ...completionKeymap,
    indentWithTab,
  ]),
];

/** @param {boolean} open */
function markerDOM(open) {
  const mark = document.createElement("span");
  mark.className = "cm-fold";
  mark.textContent = open ? "⌄" : "›";
  mark.title = open ? "Fold" : "Unfold";
  return mark;
}
