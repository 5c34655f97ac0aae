// The page Templates: Expr, Jet and Go, tried out while they are written.
import { html, signal, useEffect, useState } from "../vendor/preact.js";
import { aborted, post } from "../core/api.js";
import { copy } from "../core/actions.js";
import { go, place } from "../core/router.js";
import { current, facts, handleOf, selected } from "../core/store.js";
import { report } from "../ui/toast.js";
import { duration } from "../core/words.js";
import { Page } from "../frame/page.js";
import { Banner, Button, Pill, Segmented } from "../ui/parts.js";
import { FactsChoice } from "./facts-choice.js";

/** What is being tried; it stays while other pages are looked at. Other pages put a template here. */
export const draft = signal({
  language: "expr",
  mode: "string",
  left: "",
  right: "",
  text: "Hello {{ Facts.host.info.hostname }}, on {{ Facts.host.info.os | upper() }}\n",
});

const SAMPLES = {
  expr: "Hello {{ Facts.host.info.hostname }}, on {{ Facts.host.info.os | upper() }}\n",
  jet: "[[ range name, value := data ]][[ name ]] = [[ value ]]\n[[ end ]]",
  go: "{{ range $name, $value := .data }}{{ $name }} = {{ $value }}\n{{ end }}",
};

export function Templates() {
  const document = current.value;
  const wanted = draft.value;
  const choice = facts.value;
  const [answer, setAnswer] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const path = document?.path.value;
  // «Try the template» of a property leads here.
  const property = place.value.rest["property"];
  useEffect(() => {
    const entry = selected.peek();
    if (!property || !entry || !document) return;
    go({ rest: {} }, { replace: true });
    post("form", { path: document.path.peek(), text: document.text(), resource: handleOf(entry) })
      .then((form) => {
        const own = form.properties[property]?.own;
        if (typeof own === "string") draft.value = { ...draft.peek(), language: "expr", text: own };
      })
      .catch((error) => report(error, `show ${property}`));
  }, [property, document]);
  useEffect(() => {
    const controller = new AbortController();
    const timer = setTimeout(() => {
      const { language, mode, left, right, text } = wanted;
      const delimiters = left && right && language !== "expr" ? { left, right } : {};
      post("template", { language, text, ...(language === "expr" ? { mode } : {}), ...delimiters, ...(path && !document?.draft.peek() ? { path } : {}), ...(choice ? { facts: choice } : {}) }, { signal: controller.signal })
        .then((found) => {
          setAnswer(found);
          setProblem(null);
        })
        .catch((error) => {
          if (aborted(error)) return;
          setProblem(error);
        });
    }, 150);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [wanted, path, choice]);
  /** @param {Partial<typeof wanted>} change */
  const set = (change) => (draft.value = { ...draft.peek(), ...change });
  const placeholders = (problem ? problem.details?.placeholders : answer?.placeholders) ?? [];
  return html`<${Page} title="Templates" about=${html`With the data of <span class="mono bidi">${path ?? "no file"}</span>. Nothing is written.`}>
    <${FactsChoice} />
    <div class="row tplbar">
      <${Segmented} label="Language" value=${wanted.language} options=${[{ value: "expr", label: "Expr" }, { value: "jet", label: "Jet" }, { value: "go", label: "Go" }]}
        onChange=${(/** @type {"expr" | "jet" | "go"} */ language) => set({ language, ...(Object.values(SAMPLES).includes(wanted.text) ? { text: SAMPLES[language] } : {}) })} />
      ${wanted.language === "expr"
        ? html`<${Segmented} label="Mode" value=${wanted.mode} options=${[{ value: "string", label: "string" }, { value: "typed", label: "typed" }]} onChange=${(/** @type {string} */ mode) => set({ mode })} />`
        : html`<label for="tpl-left">Delimiters</label><div class="in tiny"><input id="tpl-left" aria-label="Left delimiter" value=${wanted.left} placeholder=${wanted.language === "jet" ? "[[" : "{{"} onInput=${(/** @type {Event} */ event) => set({ left: /** @type {HTMLInputElement} */ (event.target).value })} /></div>
          <div class="in tiny"><input aria-label="Right delimiter" value=${wanted.right} placeholder=${wanted.language === "jet" ? "]]" : "}}"} onInput=${(/** @type {Event} */ event) => set({ right: /** @type {HTMLInputElement} */ (event.target).value })} /></div>`}
    </div>
    <div class="tplgrid">
      <section class="card" aria-labelledby="h-tpl"><div class="ch"><h2 id="h-tpl">Template</h2></div>
        <textarea class="tpl mono" aria-labelledby="h-tpl" spellcheck=${false} value=${wanted.text} onInput=${(/** @type {Event} */ event) => set({ text: /** @type {HTMLTextAreaElement} */ (event.target).value })}></textarea></section>
      <section class="card" aria-labelledby="h-result"><div class="ch"><h2 id="h-result">Result</h2><div class="r">${!problem && answer && html`<${Pill} square>${answer.type}<//> <span class="muted">${duration(answer.micros)}</span><${Button} small kind="ghost" icon="copy" onClick=${() => void copy(answer.text ?? "", "the result")}>Copy<//>`}</div></div>
        ${problem ? html`<${Banner} kind="bad"><pre class="frame">${problem.details?.frame ?? problem.message}</pre>${problem.hint && html`<p class="muted">${problem.hint}</p>`}<//>`
          : html`<pre class="result mono bidi" tabindex="0" role="group" aria-label="Rendered text">${answer?.value !== undefined && wanted.mode === "typed" ? JSON.stringify(answer.value, null, 2) : (answer?.text ?? "")}</pre>`}
        ${answer?.truncated && html`<p class="muted pad">The result is longer than can be shown</p>`}
        ${(answer?.warnings ?? []).map((/** @type {string} */ warning, /** @type {number} */ index) => html`<${Banner} key=${index} kind="warn">${warning}<//>`)}
      </section>
    </div>
    ${placeholders.length > 0 && html`<section class="card placeholders" aria-labelledby="h-holes"><div class="ch"><h2 id="h-holes">Placeholders</h2></div>
      <div class="tablebox" tabindex="0" role="group" aria-label="Placeholders"><table class="keys"><thead><tr><th scope="col">Line</th><th scope="col">Expression</th><th scope="col">Value</th><th scope="col">Type</th></tr></thead>
      <tbody>${placeholders.map((/** @type {any} */ hole, /** @type {number} */ index) => html`<tr key=${index}><td class="muted">${hole.range[0] + 1}</td><th scope="row" class="mono bidi">${hole.expression}</th><td class=${`mono bidi ${hole.error ? "err" : ""}`}>${hole.error ?? JSON.stringify(hole.value)}</td><td class="muted">${hole.error ? "error" : hole.type}</td></tr>`)}</tbody></table></div></section>`}
  <//>`;
}
