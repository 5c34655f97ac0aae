// Which facts data and templates are resolved with.
import { html, useState } from "../vendor/preact.js";
import { facts, files } from "../core/store.js";
import { Segmented, typed } from "../ui/parts.js";

/**
 * The choice as it is sent; undefined is this machine.
 * @param {{source?: string, path?: string, set?: string[]}} next
 */
function choose(next) {
  const plain = (next.source ?? "machine") === "machine" && (next.set ?? []).length === 0;
  facts.value = plain ? undefined : next;
}

/**
 * Whose facts: this machine's, those of a file, none.
 * @param {{named?: boolean}} props `named`: with its label before it
 */
export function FactsSource({ named = false }) {
  const choice = facts.value ?? {};
  const source = choice["source"] ?? "machine";
  const set = choice["set"] ?? [];
  const candidates = (files.value ?? []).filter((file) => /\.(ya?ml|json)$/.test(file.path));
  return html`
    <span class=${named ? "" : "sr"} id="facts-label">
      Facts of
    </span>
    <${Segmented}
      labelledBy="facts-label"
      value=${source}
      options=${[
        { value: "machine", label: "This machine", title: "Facts of this machine" },
        { value: "file", label: "A file", title: "Facts of a file" },
        { value: "none", label: "None", title: "No facts" },
      ]}
      onChange=${(/** @type {string} */ value) =>
        choose({
          source: value,
          set,
          ...(value === "file" ? { path: choice["path"] ?? candidates[0]?.path ?? "" } : {}),
        })}
    />
    ${
      source === "file" &&
      html`<div class="in narrow">
        <select
          aria-label="File with facts"
          value=${choice["path"]}
          onChange=${(/** @type {Event} */ event) => choose({ source, set, path: typed(event) })}
        >
          ${candidates.map(
            (file) =>
              html`<option key=${file.path} value=${file.path}>
                ${file.path}
              </option>`,
          )}
        </select>
      </div>`
    }
  `;
}

/** Facts that only this page sees. */
export function WhatIf() {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  const choice = facts.value ?? {};
  /** @type {string[]} */
  const set = choice["set"] ?? [];
  const source = choice["source"] ?? "machine";
  /** @param {Event} event */
  const add = (event) => {
    event.preventDefault();
    const entry = text.trim();
    if (!/^[^=\s]+=/.test(entry)) return setProblem("Write it as role=web or a.b=value");
    setProblem("");
    setText("");
    choose({
      ...choice,
      source,
      set: [...set.filter((one) => one.split("=")[0] !== entry.split("=")[0]), entry],
    });
  };
  return html`<form class="row whatif" onSubmit=${add} noValidate>
    <label for="what-if">What if</label>
    <div class=${`in narrow ${problem ? "bad" : ""}`}>
      <input
        id="what-if"
        value=${text}
        placeholder="role=web"
        autocomplete="off"
        spellcheck=${false}
        aria-invalid=${problem ? "true" : undefined}
        aria-describedby="what-if-help"
        onInput=${(/** @type {Event} */ event) => setText(typed(event))}
      />
    </div>
    <button type="submit" class="btn small">
      Set
    </button>
    ${
      set.length > 0 &&
      html`<span class="chips">
        ${set.map(
          (entry) =>
            html`<span key=${entry} class="chip bidi">
              ${entry}
              <button
                type="button"
                aria-label=${`Remove ${entry}`}
                onClick=${() =>
                  choose({ ...choice, source, set: set.filter((one) => one !== entry) })}
              >
                ×
              </button>
            </span>`,
        )}
      </span>`
    }
    <span id="what-if-help" class=${problem ? "err" : "sr"}>
      ${problem || "Facts that only this page sees, such as role=web"}
    </span>
  </form>`;
}
