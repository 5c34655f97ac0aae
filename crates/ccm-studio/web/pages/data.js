// The page Data: resolved data with the origin of every key, and facts.
import { html, useEffect, useState } from "../vendor/preact.js";
import { aborted, get, post } from "../core/api.js";
import { copy } from "../core/actions.js";
import { go } from "../core/router.js";
import { current, facts } from "../core/store.js";
import { matches, plural } from "../core/words.js";
import { Page } from "../frame/page.js";
import { Icon } from "../ui/icons.js";
import { Banner, Button, Empty, Pill, Skeleton, Tabs } from "../ui/parts.js";
import { report } from "../ui/toast.js";
import { Tree } from "../ui/tree.js";
import { FactsChoice } from "./facts-choice.js";

/** More keys than this are not listed at once. */
const MOST = 400;

export function Data() {
  const document = current.value;
  const [answer, setAnswer] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const [tab, setTab] = useState("keys");
  const revision = document?.revision.value;
  const choice = facts.value;
  useEffect(() => {
    if (!document?.isManifest && document?.kind !== "data") return;
    const controller = new AbortController();
    const timer = setTimeout(() => {
      post("data", { path: document.path.peek(), text: document.text(), revision, ...(choice ? { facts: choice } : {}) }, { signal: controller.signal })
        .then((found) => {
          setAnswer(found);
          setProblem(null);
        })
        .catch((error) => !aborted(error) && setProblem(error));
    }, 150);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [document, revision, choice]);
  const about = html`Data of <span class="mono bidi">${document?.path.value ?? "a manifest"}</span> for the chosen facts`;
  if (!document) return html`<${Page} title="Data" about="Choose a manifest in Design"><${Empty} icon="layers" title="No file is open" /><//>`;
  return html`<${Page} title="Data" about=${about} actions=${answer && html`<${Button} icon="copy" onClick=${() => void copy(JSON.stringify(answer.data, null, 2), "the data")}>Copy as JSON<//>`}>
    <${FactsChoice} />
    ${problem && html`<${Banner} kind="bad"><b>The data cannot be resolved:</b> ${problem.message}${problem.hint && html` <span class="muted">${problem.hint}</span>`}<//>`}
    ${(answer?.findings ?? []).map((/** @type {any} */ finding, /** @type {number} */ index) => html`<${Banner} key=${index} kind="bad">${finding.message}${finding.hint && html` <span class="muted">${finding.hint}</span>`}<//>`)}
    ${!answer && !problem && html`<${Skeleton} label="Resolving the data" />`}
    ${answer && html`<div class="datagrid">
      <section class="card" aria-labelledby="h-order"><div class="ch"><h2 id="h-order">Hierarchy</h2><span class="r"><${Pill} square>merge ${String(answer.merge)}<//></span></div><${Order} order=${answer.order} /></section>
      <section class="card" aria-label="Values"><div class="ch tabbed"><${Tabs} id="data" label="Values" value=${tab} onChange=${setTab} tabs=${[{ id: "keys", label: "Keys", count: answer.origins.length }, { id: "rules", label: "Rules", count: answer.rules.length }, { id: "facts", label: "Facts" }]} /></div>
        <div role="tabpanel" id=${`data-${tab}`} aria-labelledby=${`data-tab-${tab}`}>
          ${tab === "keys" && html`<${Keys} answer=${answer} />`}
          ${tab === "rules" && html`<${Rules} rules=${answer.rules} />`}
          ${tab === "facts" && html`<${FactsView} used=${answer.facts_used} />`}
        </div></section>
    </div>`}
  <//>`;
}

/** Shows a place of the text in Design. @param {number[] | undefined} range */
function reveal(range) {
  if (!range) return;
  go({ page: "design" });
  current.peek()?.reveal(range[0] ?? 0, range[1] ?? 0);
}

/** @param {{order: any[]}} props */
function Order({ order }) {
  if (order.length === 0) return html`<p class="muted pad">No hierarchy: only the data itself counts</p>`;
  return html`<ol class="order">${order.map((entry, index) => html`<li key=${index} class=${entry.matched ? "on" : ""}>
    <${Icon} name=${entry.matched ? "check" : "dash"} /><div><button type="button" class="link mono bidi" onClick=${() => reveal(entry.range)}>${entry.written}</button>
      <p class="muted bidi">${entry.matched ? html`matched as <span class="mono">${entry.entry}</span>` : html`${entry.why}${entry.entry && html` (<span class="mono">${entry.entry}</span>)`}`}</p></div>
  </li>`)}</ol>`;
}

/** @param {{answer: any}} props */
function Keys({ answer }) {
  const [query, setQuery] = useState("");
  const found = answer.origins.filter((/** @type {any} */ key) => !query || matches(`${key.key} ${JSON.stringify(key.value)}`, query));
  return html`<div class="search"><${Icon} name="search" /><input type="search" aria-label="Search keys and values" placeholder="Search keys and values" value=${query} onInput=${(/** @type {Event} */ event) => setQuery(/** @type {HTMLInputElement} */ (event.target).value)} /></div>
    ${found.length === 0 ? html`<p class="muted pad">Nothing found</p>` : html`<div class="tablebox" tabindex="0" role="group" aria-label="Keys"><table class="keys"><thead><tr><th scope="col">Key</th><th scope="col">Value</th><th scope="col">Type</th><th scope="col">From</th></tr></thead>
      <tbody>${found.slice(0, MOST).map((/** @type {any} */ key) => html`<tr key=${key.key}><th scope="row" class="mono bidi">${key.key}</th><td class="mono bidi">${key.secret ? "[redacted]" : JSON.stringify(key.value)}</td><td class="muted">${key.type}</td>
        <td>${key.range ? html`<button type="button" class="link bidi" onClick=${() => reveal(key.range)}>${key.layer}, line ${key.line}</button>` : html`<span class="bidi">${key.layer ?? ""}${key.file ? ` (${key.file}${key.line ? `:${key.line}` : ""})` : ""}</span>`}
          ${key.replaced.length > 0 && html`<p class="muted">replaces ${key.replaced.map((/** @type {any} */ from) => from.layer).join(", ")}</p>`}</td></tr>`)}</tbody></table></div>`}
    ${found.length > MOST && html`<p class="muted pad">${plural(found.length - MOST, "more key")}</p>`}`;
}

/** @param {{rules: any[]}} props */
function Rules({ rules }) {
  if (rules.length === 0) return html`<p class="muted pad">No rules. Write <code># @require</code> or <code># @validate isInt(value)</code> above a key.</p>`;
  return html`<ul class="rules">${rules.map((rule, index) => html`<li key=${index}><${Pill} kind=${rule.holds ? "ok" : "bad"} icon=${rule.holds ? "check" : "alert"}>${rule.holds ? "holds" : "broken"}<//>
    <button type="button" class="link mono bidi" onClick=${() => reveal(rule.range)}>${rule.key}</button>
    <span class="muted bidi">${[rule.required && "required", rule.validation, rule.secret && "secret"].filter(Boolean).join(", ")}</span></li>`)}</ul>`;
}

/** @param {{used: any[]}} props */
function FactsView({ used }) {
  const [all, setAll] = useState(/** @type {any} */ (null));
  const [query, setQuery] = useState("");
  const [variables, setVariables] = useState(/** @type {Record<string, string>} */ ({}));
  useEffect(() => {
    get("facts").then(setAll).catch((error) => report(error, "get the facts"));
  }, []);
  /** @param {string} name */
  const show = (name) => {
    get(`facts?environ=${encodeURIComponent(name)}`).then((found) => setVariables({ ...variables, ...found.environ })).catch((error) => report(error, `show ${name}`));
  };
  return html`${used.length > 0 && html`<h3>Used by this file</h3><ul class="rules">${used.map((fact) => html`<li key=${fact.name}><code class="bidi">Facts.${fact.name}</code><span class="muted bidi">${fact.is_set ? JSON.stringify(fact.value) : "not set"}</span></li>`)}</ul>`}
    <div class="search"><${Icon} name="search" /><input type="search" aria-label="Search facts" placeholder="Search facts" value=${query} onInput=${(/** @type {Event} */ event) => setQuery(/** @type {HTMLInputElement} */ (event.target).value)} /></div>
    ${!all ? html`<${Skeleton} label="Getting the facts" />` : html`<div class="facttree"><${Tree} id="facts" label="Facts" value=${all.facts} filter=${query} onOpen=${(/** @type {any} */ row) => void copy(`Facts.${row.path}`, `Facts.${row.path}`)} /></div>
      <details class="environ"><summary>Environ: ${plural(all.environ.length, "variable")}, hidden until asked for</summary>
        <ul class="rules">${all.environ.map((/** @type {string} */ name) => html`<li key=${name}><code class="bidi">${name}</code>${variables[name] === undefined ? html`<${Button} small kind="ghost" onClick=${() => show(name)}>Show<span class="sr"> ${name}</span><//>` : html`<span class="mono bidi">${variables[name]}</span>`}</li>`)}</ul></details>`}`;
}
