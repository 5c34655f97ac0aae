// One resource, to be used elsewhere: as YAML, as a command, as a request.
import { html } from "../vendor/preact.js";
import { post } from "../core/api.js";
import { copy } from "../core/actions.js";
import { span } from "../core/positions.js";
import { current, facts, handleOf, idOf, selected } from "../core/store.js";
import { Modal, show } from "../ui/dialog.js";
import { Banner, Button } from "../ui/parts.js";
import { report } from "../ui/toast.js";

/** The lines of a resource, moved to the left. @param {OutlineEntry} entry */
function asYaml(entry) {
  const doc = /** @type {OpenFile} */ (current.peek());
  const { from, to } = span(doc.checked, entry.range);
  const start = doc.checked.lineAt(from);
  const indent = start.text.match(/^\s*(?:- +)*/)?.[0].length ?? 0;
  const lines = doc.checked.sliceString(start.from, to).trimEnd().split("\n");
  const outdented = (/** @type {string} */ line, /** @type {number} */ index) =>
    line.slice(index === 0 ? indent : Math.min(indent, line.search(/\S|$/)));
  return `${lines.map(outdented).join("\n")}\n`;
}

/**
 * @param {OutlineEntry} entry
 * @returns {Promise<Api.Ensure>}
 */
function asked(entry) {
  const doc = current.peek();
  return post("ensure", {
    path: doc?.path.peek(),
    text: doc?.checked.toString(),
    resource: handleOf(entry),
    ...(facts.peek() ? { facts: facts.peek() } : {}),
  });
}

/** Copies the selected resource. @param {"yaml" | "command" | "request"} form */
export async function copyAs(form) {
  const entry = selected.peek();
  if (!entry) return;
  const id = idOf(entry);
  if (form === "yaml") return copy(asYaml(entry), id);
  try {
    const answer = await asked(entry);
    if (form === "request") {
      return await copy(JSON.stringify(answer.request), `the request for ${id}`);
    }
    if (answer.command === null) {
      throw new Error(`ccm ensure does not offer the type ${entry.type}`);
    }
    await copy(
      answer.command,
      `the command for ${id}${answer.left_out.length > 0 ? `, without ${answer.left_out.join(", ")}` : ""}`,
    );
  } catch (error) {
    report(error, `copy ${id}`);
  }
}

/** Shows a resource in all its forms. @param {OutlineEntry} entry */
export async function openCopyAs(entry) {
  const id = idOf(entry);
  try {
    const answer = await asked(entry);
    const forms = [
      { title: "YAML", text: asYaml(entry) },
      ...(answer.command === null
        ? []
        : [
            {
              title: "Command",
              text: answer.command,
              note:
                answer.left_out.length > 0
                  ? `Without ${answer.left_out.join(", ")}, which ccm ensure has no flag for.`
                  : "",
            },
          ]),
      { title: "API request", text: JSON.stringify(answer.request, null, 2) },
    ];
    await show(
      (close) =>
        html`<${Modal} label=${`Copy ${id}`} class="ask wide" onClose=${() => close()}>
          <h2 class="bidi">Copy ${id}</h2>
          <div class="body">
            ${
              answer.redacted &&
              html`<${Banner} kind="warn">Secrets are left out. Put them in where it says [redacted].<//>`
            }
            ${forms.map(
              (one, index) =>
                html`<section key=${one.title} class="form-of">
                  <h3>
                    ${one.title}
                    <${Button}
                      small
                      icon="copy"
                      data-autofocus=${index === 0 ? "" : undefined}
                      onClick=${() => void copy(one.text, one.title)}
                    >
                      Copy<span class="sr"> as ${one.title}</span>
                    <//>
                  </h3>
                  <pre class="mono bidi" tabindex="0" role="group" aria-label=${one.title}>
                    ${one.text}
                  </pre>
                  ${"note" in one && one.note && html`<p class="muted">${one.note}</p>`}
                </section>`,
            )}
          </div>
          <footer>
            <${Button} onClick=${() => close()}>Close<//>
          </footer>
        <//>`,
    );
  } catch (error) {
    report(error, `copy ${id}`);
  }
}
