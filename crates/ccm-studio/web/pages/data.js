// The page Data: resolved data with the origin of every key, and facts.
import { html, useState } from "../vendor/preact.js";
import { get } from "../core/api.js";
import { useAnswerAbout, useGet } from "../core/asked.js";
import { copy } from "../core/actions.js";
import { go } from "../core/router.js";
import { current, facts } from "../core/store.js";
import { matches, plural } from "../core/words.js";
import { Page } from "../frame/page.js";
import { Icon } from "../ui/icons.js";
import { Banner, Button, Empty, Loading, Pill, Tabs, typed } from "../ui/parts.js";
import { report } from "../ui/toast.js";
import { Tree } from "../ui/tree.js";
import { FactsSource, WhatIf } from "./facts-choice.js";

/** More keys than this are not listed at once. */
const MOST = 400;

export function Data() {
  const document = current.value;
  const [tab, setTab] = useState("keys");
  const hasData = document?.isManifest || document?.kind === "data";
  const asked = useAnswerAbout("data", hasData ? document : null);
  const { answer, problem } = asked;
  const broken = (answer?.rules ?? []).filter((rule) => !rule.holds).length;
  const about = html`
    What templates of <span class="mono bidi">${document?.path.value ?? "a manifest"}</span> see as${" "}
    <code>Data</code> on a machine with these facts
  `;
  if (!document) {
    return html`<${Page} title="Data" about="Choose a manifest in Design">
      <${Empty} icon="layers" title="No file is open" />
    <//>`;
  }
  return html`<${Page}
    title="Data"
    about=${about}
    actions=${html`
      <${FactsSource} />
      ${
        answer &&
        html`<${Button}
          icon="copy"
          onClick=${() => void copy(JSON.stringify(answer.data, null, 2), "the data")}
        >
          Copy as JSON
        <//>`
      }
    `}
  >
    ${
      problem &&
      html`<${Banner} kind="bad">
        <b>The data cannot be resolved:</b> ${problem.message}
        ${
          problem.hint &&
          html`
            ${" "}
            <span class="muted">${problem.hint}</span>
          `
        }
      <//>`
    }
    ${(answer?.findings ?? []).map(
      (finding, index) =>
        html`<${Banner} key=${index} kind="bad">
          ${finding.message}
          ${
            finding.hint &&
            html`
              ${" "}
              <span class="muted">${finding.hint}</span>
            `
          }
        <//>`,
    )}
    ${!answer && !problem && hasData && html`<${Loading} asked=${asked} label="Resolving the data" />`}
    ${
      answer &&
      html`<div class="datagrid">
        <div class="stack">
          <section class="card" aria-labelledby="h-order">
            <div class="ch">
              <h2 id="h-order">Hierarchy</h2>
              <${Pill} square>merge: ${String(answer.merge)}<//>
            </div>
            <${Order} order=${answer.order} />
          </section>
          <section class="card" aria-labelledby="h-used">
            <div class="ch">
              <h2 id="h-used">Facts used</h2>
              <span class="r">
                <${Button} small kind="ghost" onClick=${() => setTab("facts")}>
                  All facts
                <//>
              </span>
            </div>
            <${Used} used=${answer.facts_used} />
            <${WhatIf} />
          </section>
        </div>
        <section class="card" aria-label="Values">
          <div class="ch tabbed">
            <${Tabs}
              id="data"
              label="Values"
              value=${tab}
              onChange=${setTab}
              tabs=${[
                { id: "keys", label: "Keys", count: answer.origins.length },
                { id: "rules", label: "Rules", count: answer.rules.length },
                { id: "facts", label: "Facts" },
              ]}
            />
          </div>
          ${
            answer.rules.length > 0 &&
            html`<span class="held">
              <${Pill} kind=${broken > 0 ? "bad" : "ok"} icon=${broken > 0 ? "alert" : "check"}>
                ${
                  broken > 0
                    ? `${plural(broken, "rule")} broken`
                    : `${plural(answer.rules.length, "rule")} hold${answer.rules.length === 1 ? "s" : ""}`
                }
              <//>
            </span>`
          }
          <div role="tabpanel" id=${`data-${tab}`} aria-labelledby=${`data-tab-${tab}`}>
            ${tab === "keys" && html`<${Keys} answer=${answer} />`}
            ${tab === "rules" && html`<${Rules} rules=${answer.rules} />`}
            ${tab === "facts" && html`<${FactsView} used=${answer.facts_used} />`}
          </div>
        </section>
      </div>`
    }
  <//>`;
}

/** Shows a place of the text in Design. @param {number[] | undefined} range */
function reveal(range) {
  if (!range) return;
  go({ page: "design" });
  current.peek()?.reveal(range[0] ?? 0, range[1] ?? 0);
}

/** @param {{order: Api.OrderEntry[]}} props */
function Order({ order }) {
  if (order.length === 0) {
    return html`<p class="muted pad">No hierarchy: only the data itself counts</p>`;
  }
  return html`<ol class="order">
    ${order.map(
      (entry, index) =>
        html`<li key=${index} class=${entry.matched ? "on" : ""}>
          <span class="num" aria-hidden="true">
            ${index + 1}
          </span>
          <div>
            <span class="mono bidi">${entry.matched ? entry.entry : entry.entry || "–"}</span>
            <button
              type="button"
              class="link mono bidi"
              title=${entry.written}
              onClick=${() => reveal(entry.range)}
            >
              ${entry.written}
            </button>
            ${!entry.matched && html`<p class="muted bidi">${entry.why}</p>`}
          </div>
          <${Pill} kind=${entry.matched ? "ok" : ""} icon=${entry.matched ? "check" : "dash"}>
            ${entry.matched ? "matches" : "no match"}
          <//>
        </li>`,
    )}
    <li class="on">
      <span class="num" aria-hidden="true">
        ${order.length + 1}
      </span>
      <div>
        <span class="mono">data</span>
        <p class="muted">the base</p>
      </div>
      <${Pill}>always<//>
    </li>
  </ol>`;
}

/** The facts that a file asks for. @param {{used: Api.FactUsed[]}} props */
function Used({ used }) {
  if (used.length === 0) return html`<p class="muted pad">No fact decides anything here</p>`;
  return html`<ul class="used">
    ${used.map(
      (fact) =>
        html`<li key=${fact.name}>
          <code class="bidi">${fact.name}</code>
          ${
            (facts.value?.["set"] ?? []).some((/** @type {string} */ one) =>
              one.startsWith(`${fact.name}=`),
            ) && html`<${Pill} kind="warn">what if<//>`
          }
          <span class=${`mono bidi ${fact.is_set ? "" : "muted"}`}>
            ${fact.is_set ? JSON.stringify(fact.value) : "not set"}
          </span>
        </li>`,
    )}
  </ul>`;
}

/** @param {{answer: Api.Data}} props */
function Keys({ answer }) {
  const [query, setQuery] = useState("");
  const found = answer.origins.filter(
    (key) => !query || matches(`${key.key} ${JSON.stringify(key.value)}`, query),
  );
  return html`
    <div class="search">
      <${Icon} name="search" />
      <input
        type="search"
        aria-label="Search keys and values"
        placeholder="Search keys and values"
        value=${query}
        onInput=${(/** @type {Event} */ event) => setQuery(typed(event))}
      />
    </div>
    ${
      found.length === 0
        ? html`<p class="muted pad">Nothing found</p>`
        : html`<div class="tablebox" tabindex="0" role="group" aria-label="Keys">
          <table class="keys">
            <thead>
              <tr>
                <th scope="col">Key</th>
                <th scope="col">Value</th>
                <th scope="col">Type</th>
                <th scope="col">From</th>
                ${answer.rules.length > 0 && html`<th scope="col">Rule</th>`}
              </tr>
            </thead>
            <tbody>
              ${found.slice(0, MOST).map(
                (key) =>
                  html`<tr key=${key.key} class=${key.replaced.length > 0 ? "over" : ""}>
                    <th scope="row" class="mono bidi">
                      ${key.key}
                    </th>
                    <td class="mono bidi">${key.secret ? "[redacted]" : JSON.stringify(key.value)}</td>
                    <td class="muted">${key.type}</td>
                    <td>
                      <${Origin} from=${key} />
                      ${
                        key.replaced.length > 0 &&
                        html`<p class="muted">
                          replaces${" "}
                          ${key.replaced.map(
                            (from, at) =>
                              html`
                                ${at > 0 && ", "}
                                ${
                                  from.value !== undefined &&
                                  html`
                                    <span class="mono bidi">
                                      ${key.secret ? "[redacted]" : JSON.stringify(from.value)}
                                    </span>${" "}
                                    from${" "}
                                  `
                                }
                                <${Origin} from=${from} />
                              `,
                          )}
                        </p>`
                      }
                    </td>
                    ${
                      answer.rules.length > 0 &&
                      html`<td>
                        ${answer.rules
                          .filter((rule) => rule.key === key.key)
                          .map(
                            (rule) =>
                              html`<${Pill} key=${rule.key} square kind=${rule.holds ? "" : "bad"}>
                                ${ruleText(rule)}
                              <//>`,
                          )}
                      </td>`
                    }
                  </tr>`,
              )}
            </tbody>
          </table>
        </div>`
    }
    ${found.length > MOST && html`<p class="muted pad">${plural(found.length - MOST, "more key")}</p>`}
  `;
}

/** @param {{rules: Api.DataRule[]}} props */
function Rules({ rules }) {
  if (rules.length === 0) {
    return html`<p class="muted pad">
      No rules. Write <code># @require</code> or <code># @validate isInt(value)</code> above a
      key.
    </p>`;
  }
  return html`<ul class="rules">
    ${rules.map(
      (rule, index) =>
        html`<li key=${index}>
          <${Pill} kind=${rule.holds ? "ok" : "bad"} icon=${rule.holds ? "check" : "alert"}>
            ${rule.holds ? "holds" : "broken"}
          <//>
          <button type="button" class="link mono bidi" onClick=${() => reveal(rule.range)}>
            ${rule.key}
          </button>
          <span class="muted bidi">${ruleText(rule)}</span>
        </li>`,
    )}
  </ul>`;
}

/** Where a value comes from. @param {{from: Partial<Api.DataLevel>}} props */
function Origin({ from }) {
  if (from.range) {
    return html`<button type="button" class="link bidi" onClick=${() => reveal(from.range)}>
      ${from.layer}, line ${from.line}
    </button>`;
  }
  return html`<span class="bidi">
    ${from.layer ?? ""}
    ${from.file ? ` (${from.file}${from.line ? `:${from.line}` : ""})` : ""}
  </span>`;
}

/** @param {Api.DataRule} rule */
const ruleText = (rule) =>
  [rule.required && "required", rule.validation, rule.secret && "secret"]
    .filter(Boolean)
    .join(", ");

/** @param {{used: Api.FactUsed[]}} props */
function FactsView({ used }) {
  const asked = useGet("facts", []);
  const all = asked.answer;
  const [query, setQuery] = useState("");
  const [variables, setVariables] = useState(/** @type {Record<string, string>} */ ({}));
  /** @param {string} name */
  const show = (name) => {
    get(`facts?environ=${encodeURIComponent(name)}`)
      .then((found) => setVariables({ ...variables, ...found.environ }))
      .catch((error) => report(error, `show ${name}`));
  };
  return html`
    ${
      used.length > 0 &&
      html`
        <h3>Used by this file</h3>
        <ul class="rules">
          ${used.map(
            (fact) =>
              html`<li key=${fact.name}>
                <code class="bidi">Facts.${fact.name}</code>
                <span class="muted bidi">
                  ${fact.is_set ? JSON.stringify(fact.value) : "not set"}
                </span>
              </li>`,
          )}
        </ul>
      `
    }
    <div class="search">
      <${Icon} name="search" />
      <input
        type="search"
        aria-label="Search facts"
        placeholder="Search facts"
        value=${query}
        onInput=${(/** @type {Event} */ event) => setQuery(typed(event))}
      />
    </div>
    ${
      !all
        ? html`<${Loading} asked=${asked} label="Getting the facts" />`
        : html`
          <div class="facttree">
            <${Tree}
              id="facts"
              label="Facts"
              value=${all.facts}
              filter=${query}
              onOpen=${(/** @type {import("../ui/tree.js").TreeRow} */ row) =>
                void copy(`Facts.${row.path}`, `Facts.${row.path}`)}
            />
          </div>
          <details class="environ">
            <summary>
              Environ: ${plural(all.environ.length, "variable")}, hidden until asked for
            </summary>
            <ul class="rules">
              ${all.environ.map(
                (/** @type {string} */ name) =>
                  html`<li key=${name}>
                    <code class="bidi">${name}</code>
                    ${
                      variables[name] === undefined
                        ? html`<${Button} small kind="ghost" onClick=${() => show(name)}>
                          Show<span class="sr"> ${name}</span>
                        <//>`
                        : html`<span class="mono bidi">${variables[name]}</span>`
                    }
                  </li>`,
              )}
            </ul>
          </details>
        `
    }
  `;
}
