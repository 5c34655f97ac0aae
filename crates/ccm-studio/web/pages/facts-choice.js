// Which facts data and templates are resolved with.
import { html, useState } from "../vendor/preact.js";
import { facts, files } from "../core/store.js";
import { Button, Segmented } from "../ui/parts.js";

/** The choice as it is sent; undefined is this machine. @param {{source?: string, path?: string, set?: string[]}} next */
function choose(next) {
  const plain = (next.source ?? "machine") === "machine" && (next.set ?? []).length === 0;
  facts.value = plain ? undefined : next;
}

export function FactsChoice() {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  const choice = facts.value ?? {};
  const source = choice["source"] ?? "machine";
  /** @type {string[]} */
  const set = choice["set"] ?? [];
  const candidates = (files.value ?? []).filter((file) => /\.(ya?ml|json)$/.test(file.path));
  /** @param {Event} event */
  const add = (event) => {
    event.preventDefault();
    const entry = text.trim();
    if (!/^[^=\s]+=/.test(entry)) {
      setProblem("Write it as role=web or a.b=value");
      return;
    }
    setProblem("");
    setText("");
    choose({ ...choice, source, set: [...set.filter((one) => one.split("=")[0] !== entry.split("=")[0]), entry] });
  };
  return html`<div class="factschoice">
    <div class="row"><span id="facts-label">Facts of</span>
      <${Segmented} labelledBy="facts-label" value=${source} options=${[{ value: "machine", label: "this machine" }, { value: "file", label: "a file" }, { value: "none", label: "none" }]}
        onChange=${(/** @type {string} */ value) => choose({ source: value, set, ...(value === "file" ? { path: choice["path"] ?? candidates[0]?.path ?? "" } : {}) })} />
      ${source === "file" && html`<div class="in narrow"><select aria-label="File with facts" value=${choice["path"]} onChange=${(/** @type {Event} */ event) => choose({ source, set, path: /** @type {HTMLSelectElement} */ (event.target).value })}>
        ${candidates.map((file) => html`<option key=${file.path} value=${file.path}>${file.path}</option>`)}</select></div>`}
    </div>
    <form class="row" onSubmit=${add} noValidate><label for="what-if">What if</label>
      <div class=${`in narrow ${problem ? "bad" : ""}`}><input id="what-if" value=${text} placeholder="role=web" autocomplete="off" spellcheck=${false} aria-invalid=${problem ? "true" : undefined} aria-describedby="what-if-help"
        onInput=${(/** @type {Event} */ event) => setText(/** @type {HTMLInputElement} */ (event.target).value)} /></div>
      <button type="submit" class="btn small">Set</button>
      <span class="chips">${set.map((entry) => html`<span key=${entry} class="chip bidi">${entry}<button type="button" aria-label=${`Remove ${entry}`} onClick=${() => choose({ ...choice, source, set: set.filter((one) => one !== entry) })}>×</button></span>`)}</span>
      <span id="what-if-help" class=${problem ? "err" : "sr"}>${problem || "Facts that only this page sees, such as role=web"}</span>
      ${set.length > 0 && html`<${Button} small kind="ghost" onClick=${() => choose({ ...choice, source, set: [] })}>Clear<//>`}
    </form>
  </div>`;
}
