// The page Templates: Expr, Jet and Go, tried out while they are written.
import { html, signal, useEffect, useRef, useState } from "../vendor/preact.js";
import { encodePath, get, post } from "../core/api.js";
import { usePost } from "../core/asked.js";
import { copy } from "../core/actions.js";
import { go, place } from "../core/router.js";
import { current, facts, files, handleOf, selected } from "../core/store.js";
import { duration, plural } from "../core/words.js";
import { tinted } from "../design/controls.js";
import { Page } from "../frame/page.js";
import { Icon } from "../ui/icons.js";
import { Banner, Button, Loading, Pill, Segmented, typed } from "../ui/parts.js";
import { report } from "../ui/toast.js";
import { FactsSource, WhatIf } from "./facts-choice.js";

const SAMPLES = {
  expr: "Hello {{ Facts.host.info.hostname }}, on {{ Facts.host.info.os | upper() }}\n",
  jet: "[[ range name, value := data ]][[ name ]] = [[ value ]]\n[[ end ]]",
  go: "{{ range $name, $value := .data }}{{ $name }} = {{ $value }}\n{{ end }}",
};

/**
 * What is being tried; it stays while other pages are looked at. `file`: where the text came from;
 * `scaffold`: the directory whose templates it can render.
 */
const draft = signal({
  language: "expr",
  mode: "string",
  left: "",
  right: "",
  text: SAMPLES.expr,
  from: "text",
  file: "",
  scaffold: "",
});

/** @param {Partial<typeof draft.value>} change */
const set = (change) => (draft.value = { ...draft.peek(), ...change });

/** @param {string} path */
const languageOf = (path) => (path.endsWith(".templ") ? "go" : "jet");

export function Templates() {
  const document = current.value;
  const { language, mode, left, right, text, from, file, scaffold } = draft.value;
  const choice = facts.value;
  const path = document?.path.value;
  useProperty(document);
  const isScaffold = language !== "expr" && from === "scaffold";
  const asked = usePost(
    isScaffold && !scaffold ? null : "template",
    () => ({
      language,
      text: isScaffold ? "" : text,
      ...(language === "expr" ? { mode } : {}),
      ...(left && right && language !== "expr" ? { left, right } : {}),
      // A template may render and write as in the scaffold that it belongs to.
      ...(isScaffold
        ? { scaffold }
        : from === "file" && file.includes("/") && /\b(render|write)\b/.test(text)
          ? { scaffold: file.replace(/\/[^/]*$/, "") }
          : {}),
      ...(path && !document?.draft.peek() ? { path } : {}),
      ...(choice ? { facts: choice } : {}),
    }),
    [draft.value, path, choice],
  );
  const { answer, problem } = asked;
  const mirror = useRef(/** @type {HTMLElement | null} */ (null));
  const placeholders = (problem ? problem.details?.placeholders : answer?.placeholders) ?? [];
  const directories = [
    ...new Set((files.value ?? []).map((one) => one.path.replace(/\/?[^/]*$/, "")).filter(Boolean)),
  ].sort();
  const templates = (files.value ?? []).filter((one) => one.kind === "template");
  return html`<${Page}
    title="Templates"
    about=${html`
      With the data of <span class="mono bidi">${path ?? "no file"}</span>. Nothing is written.
    `}
    actions=${html`<${Segmented}
      label="Language"
      value=${language}
      options=${[
        { value: "expr", label: "Expr" },
        { value: "jet", label: "Jet" },
        { value: "go", label: "Go" },
      ]}
      onChange=${(/** @type {keyof typeof SAMPLES} */ next) =>
        set({
          language: next,
          ...(next === "expr" ? { from: "text" } : {}),
          ...(Object.values(SAMPLES).includes(text) ? { text: SAMPLES[next] } : {}),
        })}
    />`}
  >
    <div class="row tplbar">
      <${FactsSource} named />
      <${WhatIf} />
      <span class="push"></span>
      ${
        language === "expr"
          ? html`<${Segmented}
            label="Mode"
            value=${mode}
            options=${[
              { value: "string", label: "string" },
              { value: "typed", label: "typed" },
            ]}
            onChange=${(/** @type {string} */ next) => set({ mode: next })}
          />`
          : html`
            <${Segmented}
              label="Template from"
              value=${from}
              options=${[
                { value: "text", label: "text" },
                { value: "file", label: "a file" },
                { value: "scaffold", label: "a scaffold" },
              ]}
              onChange=${(/** @type {string} */ next) => void choose(next, templates, directories)}
            />
            ${
              from === "file" &&
              html`<div class="in narrow">
                <select
                  aria-label="Template file"
                  value=${file}
                  onChange=${(/** @type {Event} */ event) => void load(typed(event))}
                >
                  ${templates.map(
                    (one) =>
                      html`<option key=${one.path} value=${one.path}>
                        ${one.path}
                      </option>`,
                  )}
                </select>
              </div>`
            }
            ${
              from === "scaffold" &&
              html`<div class="in narrow">
                <input
                  aria-label="Directory of templates"
                  list="tpl-dirs"
                  value=${scaffold}
                  placeholder="templates"
                  spellcheck=${false}
                  onInput=${(/** @type {Event} */ event) => set({ scaffold: typed(event) })}
                />
                <datalist id="tpl-dirs">
                  ${directories.map((one) => html`<option key=${one} value=${one}></option>`)}
                </datalist>
              </div>`
            }
            <span class="row nowrap">
              <label for="tpl-left">Delimiters</label>
              <div class="in tiny">
                <input
                  id="tpl-left"
                  aria-label="Left delimiter"
                  value=${left}
                  placeholder=${language === "jet" ? "[[" : "{{"}
                  onInput=${(/** @type {Event} */ event) => set({ left: typed(event) })}
                />
              </div>
              <div class="in tiny">
                <input
                  aria-label="Right delimiter"
                  value=${right}
                  placeholder=${language === "jet" ? "]]" : "}}"}
                  onInput=${(/** @type {Event} */ event) => set({ right: typed(event) })}
                />
              </div>
            </span>
          `
      }
    </div>
    <div class=${isScaffold ? "tplgrid one" : "tplgrid"}>
      ${
        !isScaffold &&
        html`<section class="card" aria-labelledby="h-tpl">
          <div class="ch">
            <h2 id="h-tpl">Template</h2>
            ${
              from === "file" &&
              language !== "expr" &&
              html`<span class="r muted mono bidi">${file}</span>`
            }
          </div>
          <div class="tplbox">
            <div class="mirror" aria-hidden="true" ref=${mirror}>
              ${tinted(text, language === "jet" ? /(\[\[.*?\]\])/s : /(\{\{.*?\}\})/s)}
            </div>
            <textarea
              class="tpl mono"
              aria-labelledby="h-tpl"
              wrap="off"
              onScroll=${(/** @type {Event} */ event) =>
                mirror.current?.scrollTo(
                  /** @type {Element} */ (event.currentTarget).scrollLeft,
                  /** @type {Element} */ (event.currentTarget).scrollTop,
                )}
              spellcheck=${false}
              value=${text}
              onInput=${(/** @type {Event} */ event) => set({ text: typed(event) })}
            ></textarea>
          </div>
        </section>`
      }
      <section class="card" aria-labelledby="h-result">
        <div class="ch">
          <h2 id="h-result">Result</h2>
          <div class="r">
            ${
              !problem &&
              answer &&
              html`
                ${!isScaffold && html`<${Pill} square>${answer.type}<//>`}${" "}
                <span class="muted">${duration(answer.micros)}</span>
                ${
                  !isScaffold &&
                  html`<${Button}
                    small
                    kind="ghost"
                    icon="copy"
                    onClick=${() => void copy(answer.text ?? "", "the result")}
                  >
                    Copy
                  <//>`
                }
              `
            }
          </div>
        </div>
        ${
          problem
            ? html`<${Banner} kind="bad">
              <pre class="frame">${problem.details?.frame ?? problem.message}</pre>
              ${problem.hint && html`<p class="muted">${problem.hint}</p>`}
            <//>`
            : isScaffold && !scaffold
              ? html`<p class="muted pad">
                Name the directory of templates that a scaffold renders. Studio lists the files that
                it would make.
              </p>`
              : !answer
                ? html`<${Loading} asked=${asked} label="Rendering" />`
                : !isScaffold &&
                  html`<pre class="result mono bidi" tabindex="0" role="group" aria-label="Rendered text">
                    ${
                      answer.value !== undefined && mode === "typed"
                        ? JSON.stringify(answer.value, null, 2)
                        : (answer.text ?? "")
                    }
                  </pre>`
        }
        ${!problem && answer?.files && html`<${Made} files=${answer.files} />`}
        ${answer?.truncated && html`<p class="muted pad">The result is longer than can be shown</p>`}
        ${(answer?.warnings ?? []).map(
          (/** @type {string} */ warning, /** @type {number} */ index) =>
            html`<${Banner} key=${index} kind="warn">
              ${warning}
            <//>`,
        )}
      </section>
    </div>
    ${
      placeholders.length > 0 &&
      html`<section class="card placeholders" aria-labelledby="h-holes">
        <div class="ch">
          <h2 id="h-holes">Placeholders</h2>
        </div>
        <div class="tablebox" tabindex="0" role="group" aria-label="Placeholders">
          <table class="keys">
            <thead>
              <tr>
                <th scope="col">Line</th>
                <th scope="col">Expression</th>
                <th scope="col">Value</th>
                <th scope="col">Type</th>
              </tr>
            </thead>
            <tbody>
              ${placeholders.map(
                (hole, index) =>
                  html`<tr key=${index}>
                    <td class="muted">${hole.range[0] + 1}</td>
                    <th scope="row" class="mono bidi">
                      ${hole.expression}
                    </th>
                    <td class=${`mono bidi ${hole.error ? "err" : ""}`}>
                      ${hole.error ?? JSON.stringify(hole.value)}
                    </td>
                    <td class="muted">${hole.error ? "error" : hole.type}</td>
                  </tr>`,
              )}
            </tbody>
          </table>
        </div>
      </section>`
    }
  <//>`;
}

/**
 * The files that a scaffold would make.
 * @param {{files: {path: string, bytes: number, text: string | null}[]}} props
 */
function Made({ files: made }) {
  const [shown, show] = useState("");
  return html`
    <h3>
      ${
        made.length === 0
          ? "It would make no files"
          : `It would make ${plural(made.length, "file")}`
      }
    </h3>
    <ul class="made">
      ${made.map(
        (file) =>
          html`<li key=${file.path}>
            <button
              type="button"
              aria-expanded=${shown === file.path ? "true" : "false"}
              onClick=${() => show(shown === file.path ? "" : file.path)}
            >
              <${Icon} name=${shown === file.path ? "down" : "chev"} />
              <span class="mono bidi">${file.path}</span>
              <span class="muted">${plural(file.bytes, "byte")}</span>
            </button>
            ${
              shown === file.path &&
              html`<pre
                class="result mono bidi"
                tabindex="0"
                role="group"
                aria-label=${`Content of ${file.path}`}
              >
                ${file.text ?? "This is not text, or too long to show."}
              </pre>`
            }
          </li>`,
      )}
    </ul>
  `;
}

/** «Try the template» of a property leads here. @param {OpenFile | null} document */
function useProperty(document) {
  const property = place.value.rest["property"];
  useEffect(() => {
    const entry = selected.peek();
    if (!property || !entry || !document) return;
    go({ rest: {} }, { replace: true });
    post("form", { path: document.path.peek(), text: document.text(), resource: handleOf(entry) })
      .then((form) => {
        const own = form.properties[property]?.own;
        if (typeof own === "string") set({ language: "expr", from: "text", text: own });
      })
      .catch((error) => report(error, `show ${property}`));
  }, [property, document]);
}

/** @param {string} from @param {{path: string}[]} templates @param {string[]} directories */
async function choose(from, templates, directories) {
  set({ from });
  const { file, scaffold } = draft.peek();
  const open = current.peek();
  if (from === "scaffold" && !scaffold) set({ scaffold: directories[0] ?? "" });
  const first = open?.kind === "template" ? open.path.peek() : file || templates[0]?.path;
  if (from === "file" && first) await load(first);
}

/** Takes the text of a template file; what is typed then stays here. @param {string} path */
async function load(path) {
  try {
    const open = current.peek();
    const text =
      open?.path.peek() === path ? open.text() : (await get(`files/${encodePath(path)}`)).text;
    set({ file: path, text, language: languageOf(path) });
  } catch (error) {
    report(error, `read ${path}`);
  }
}
