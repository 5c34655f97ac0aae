// A property written as YAML in its place in the form. What it means is set as
// any other value is, so what stays equal keeps its comments.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { ApiError, post } from "../core/api.js";
import { current } from "../core/store.js";
import { span } from "../core/positions.js";
import { Button, typed } from "../ui/parts.js";

/**
 * The lines of a value as if it stood alone.
 * @param {TextRange | undefined} range
 * @returns {string}
 */
export function written(range) {
  const doc = current.peek();
  if (!doc || !range) return "";
  const { from, to } = span(doc.checked, range);
  const first = doc.checked.lineAt(from);
  const lines = doc.checked.sliceString(from, to).trimEnd().split("\n");
  // The first line begins behind its key or dash; the others at their own place.
  const indents = lines
    .slice(1)
    .filter((line) => /\S/.test(line))
    .map((line) => line.search(/\S/));
  const own =
    /^\s*$/.test(first.text.slice(0, from - first.from)) || lines.length === 1
      ? from - first.from
      : undefined;
  const indent = Math.min(...indents, own ?? Infinity);
  const outdented = (/** @type {string} */ line) =>
    line.slice(Math.min(indent, Math.max(0, line.search(/\S|$/))));
  return `${lines.map((line, index) => (index === 0 ? line : outdented(line))).join("\n")}\n`;
}

/**
 * @param {{
 *   id: string, name: string, range: TextRange | undefined, onChange: (value: any) => void,
 *   onClose: () => void,
 * }} props
 */
export function YamlControl({ id, name, range, onChange, onClose }) {
  const [text, setText] = useState(() => written(range));
  const [problem, setProblem] = useState("");
  const box = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  useEffect(() => box.current?.focus(), []);
  const take = async () => {
    try {
      const { value } = await post("yaml", { text });
      onChange(value ?? undefined);
      onClose();
    } catch (error) {
      const line =
        error instanceof ApiError && error.details["range"]
          ? `Line ${error.details["range"][0] + 1}: `
          : "";
      setProblem(`${line}${/** @type {Error} */ (error).message}`);
      box.current?.focus();
    }
  };
  return html`<div class="yamlbox">
    <div class=${`in lines ${problem ? "bad" : ""}`}>
      <textarea
        ref=${box}
        id=${`${id}-yaml`}
        class="mono"
        aria-label=${`${name} as YAML`}
        aria-invalid=${problem ? "true" : undefined}
        aria-describedby=${problem ? `${id}-yaml-err` : undefined}
        rows=${Math.min(18, Math.max(4, text.split("\n").length))}
        value=${text}
        spellcheck=${false}
        wrap="off"
        onInput=${(/** @type {Event} */ event) => setText(typed(event))}
        onKeyDown=${(/** @type {KeyboardEvent} */ event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void take();
          else if (event.key === "Escape") onClose();
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      ></textarea>
    </div>
    ${
      problem &&
      html`<p class="err" id=${`${id}-yaml-err`}>
        ${problem}
      </p>`
    }
    <div class="row">
      <${Button} small kind="primary" onClick=${() => void take()}>
        Take over
      <//>
      <${Button} small onClick=${onClose}>
        Cancel
      <//>
    </div>
  </div>`;
}
