// Findings in the text: a mark in the gutter, a wavy line over the engine's
// span, and below the line carets, message, hint and fixes.
import {
  Decoration,
  EditorView,
  GutterMarker,
  RangeSet,
  StateEffect,
  StateField,
  WidgetType,
  gutter,
} from "../vendor/codemirror.js";
import { PATHS } from "../ui/icons.js";
import { span, startOf } from "../core/positions.js";

/** More than this below their lines would hide the text. */
const MOST_WIDGETS = 50;

/**
 * @type {import("../vendor/codemirror.js").StateEffectType<{findings: Finding[], fix: (fix: Fix) =>
 *   void}>}
 */
export const setFindings = StateEffect.define();
/**
 * Findings that wait for an answer are dimmed.
 * @type {import("../vendor/codemirror.js").StateEffectType<boolean>}
 */
export const setDimmed = StateEffect.define();

class Explanation extends WidgetType {
  /**
   * @param {Finding} finding
   * @param {number} column
   * @param {number} length
   * @param {(fix: Fix) => void} fix
   */
  constructor(finding, column, length, fix) {
    super();
    this.finding = finding;
    this.column = column;
    this.length = length;
    this.fix = fix;
  }

  /** @param {Explanation} other */
  eq(other) {
    const [a, b] = [this.finding, other.finding];
    return (
      a.message === b.message &&
      a.hint === b.hint &&
      this.column === other.column &&
      this.length === other.length &&
      a.severity === b.severity &&
      a.fixes.length === b.fixes.length
    );
  }

  toDOM() {
    const { finding } = this;
    const box = element("div", `cm-finding ${finding.severity}`);
    box.setAttribute("role", "note");
    const inner = element("div", "cm-finding-in");
    inner.style.paddingLeft = `${this.column}ch`;
    const carets = element("div", "cm-carets", "^".repeat(Math.max(1, Math.min(this.length, 80))));
    carets.setAttribute("aria-hidden", "true");
    inner.append(carets, element("div", "cm-message", finding.message));
    if (finding.hint) inner.append(element("div", "cm-hint", `hint: ${finding.hint}`));
    if (finding.fixes.length > 0) {
      const actions = element("div", "cm-acts");
      for (const fix of finding.fixes) {
        const button = /** @type {HTMLButtonElement} */ (element("button", "", fix.title));
        button.type = "button";
        button.addEventListener("click", () => this.fix(fix));
        actions.append(button);
      }
      inner.append(actions);
    }
    box.append(inner);
    return box;
  }

  ignoreEvent() {
    return true;
  }
}

/** @param {string} tag @param {string} name @param {string} [text] */
function element(tag, name, text) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text !== undefined) made.textContent = text;
  return made;
}

class Mark extends GutterMarker {
  /** @param {"error" | "warning"} severity @param {string} message */
  constructor(severity, message) {
    super();
    this.severity = severity;
    this.message = message;
  }

  /** @param {Mark} other */
  eq(other) {
    return this.severity === other.severity && this.message === other.message;
  }

  toDOM() {
    const box = element("span", `cm-mark ${this.severity}`);
    box.title = this.message;
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 24 24");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", PATHS[this.severity === "error" ? "alert" : "warn"] ?? "");
    svg.append(path);
    box.append(svg);
    return box;
  }
}

/**
 * @typedef {{
 *   decorations: import("../vendor/codemirror.js").DecorationSet, marks: RangeSet<GutterMarker>,
 *   list: Finding[], dimmed: boolean,
 * }} Shown
 */

/** @type {StateField<Shown>} */
export const findingsField = StateField.define({
  create: () =>
    /** @type {Shown} */ ({
      decorations: Decoration.none,
      marks: RangeSet.empty,
      list: [],
      dimmed: false,
    }),
  update(shown, transaction) {
    let next = shown;
    if (transaction.docChanged) {
      next = {
        ...next,
        decorations: next.decorations.map(transaction.changes),
        marks: next.marks.map(transaction.changes),
      };
    }
    for (const effect of transaction.effects) {
      if (effect.is(setFindings)) {
        next = {
          ...make(transaction.state.doc, effect.value.findings, effect.value.fix),
          dimmed: false,
        };
      }
      if (effect.is(setDimmed)) next = { ...next, dimmed: effect.value };
    }
    return next;
  },
  provide: (field) => [
    EditorView.decorations.from(field, (shown) => shown.decorations),
    EditorView.editorAttributes.from(field, (shown) => ({
      class: shown.dimmed ? "cm-dimmed" : "",
    })),
  ],
});

/**
 * @param {import("../vendor/codemirror.js").Text} doc
 * @param {Finding[]} findings
 * @param {(fix: Fix) => void} fix
 */
function make(doc, findings, fix) {
  /** @type {import("../vendor/codemirror.js").Range<Decoration>[]} */
  const decorations = [];
  /** @type {Map<number, Mark>} */
  const marks = new Map();
  let widgets = 0;
  for (const finding of findings) {
    const start = startOf(finding);
    if (!start) continue;
    const { from, to } = span(doc, finding.range ?? [...start, ...start]);
    const line = doc.lineAt(from);
    const end = Math.min(to, line.to);
    if (end > from) {
      decorations.push(Decoration.mark({ class: `cm-wavy ${finding.severity}` }).range(from, to));
    }
    decorations.push(
      Decoration.line({ class: `cm-bad-line ${finding.severity}` }).range(line.from),
    );
    if (widgets < MOST_WIDGETS) {
      const column = width(line.text.slice(0, from - line.from));
      decorations.push(
        Decoration.widget({
          widget: new Explanation(
            finding,
            column,
            width(line.text.slice(from - line.from, end - line.from)),
            fix,
          ),
          block: true,
          side: 1,
        }).range(line.to),
      );
      widgets += 1;
    }
    const known = marks.get(line.from);
    if (!known || known.severity === "warning") {
      marks.set(line.from, new Mark(finding.severity, finding.message));
    }
  }
  return {
    decorations: Decoration.set(decorations, true),
    marks: RangeSet.of(
      [...marks].map(([at, mark]) => mark.range(at)),
      true,
    ),
    list: findings,
  };
}

/** Columns of a text, where a tab takes two. @param {string} text */
const width = (text) => text.length + (text.match(/\t/g)?.length ?? 0);

export const findings = [
  findingsField,
  gutter({
    class: "cm-findings",
    markers: (view) => view.state.field(findingsField).marks,
    initialSpacer: () => new Mark("error", ""),
  }),
];
