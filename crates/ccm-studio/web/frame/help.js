// The list of keys.
import { html } from "../vendor/preact.js";
import { commands } from "../core/commands.js";
import { keyText } from "../core/words.js";
import { Modal, show } from "../ui/dialog.js";
import { Button } from "../ui/parts.js";

/**
 * Keys that parts of the page handle by themselves.
 * @type {{group: string, keys: string, title: string}[]}
 */
const ELSEWHERE = [
  { group: "Lists", keys: "↑ ↓ Home End", title: "Choose" },
  { group: "Lists", keys: "Enter", title: "Open" },
  { group: "Lists", keys: "Alt+↑, Alt+↓", title: "Move the resource or item" },
  { group: "Lists", keys: "Delete", title: "Delete" },
  { group: "Text", keys: "Mod+F", title: "Search and replace" },
  { group: "Text", keys: "Ctrl+Space", title: "Complete" },
  { group: "Text", keys: "Esc, Tab", title: "Leave the editor" },
  { group: "Everywhere", keys: "Esc", title: "Close, back to where the focus was" },
];

export function openHelp() {
  const groups = new Map();
  for (const item of [...commands.peek(), ...ELSEWHERE]) {
    if (!item.keys) continue;
    const name = item.group ?? "Everywhere";
    groups.set(name, [...(groups.get(name) ?? []), item]);
  }
  void show(
    (close) =>
      html`<${Modal} label="Keyboard" class="wide help" onClose=${() => close()}>
        <h2>Keyboard</h2>
        <div class="body keys">
          ${[...groups].map(
            ([name, items]) =>
              html`<section key=${name}>
                <h3>${name}</h3>
                <dl>
                  ${items.map(
                    (/** @type {{title: string, keys: string}} */ item) =>
                      html`<div key=${item.title}>
                        <dt>${item.title}</dt>
                        <dd>
                          ${item.keys.split(", ").map(
                            (keys) =>
                              html`
                                <kbd key=${keys}>
                                  ${
                                    keys.includes(" ")
                                      ? keys.toUpperCase()
                                      : keyText(keys.length === 1 ? keys.toUpperCase() : keys)
                                  }
                                </kbd>${" "}
                              `,
                          )}
                        </dd>
                      </div>`,
                  )}
                </dl>
              </section>`,
          )}
        </div>
        <footer>
          <${Button} data-autofocus onClick=${() => close()}>
            Close
          <//>
        </footer>
      <//>`,
  );
}
