// The palette: resources, files, pages, commands, by a few letters.
import { html, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { commands } from "../core/commands.js";
import { go } from "../core/router.js";
import { current, files, select } from "../core/store.js";
import { keyText, matches } from "../core/words.js";
import { PAGES } from "../pages/registry.js";
import { Modal, show } from "../ui/dialog.js";
import { Icon, Tile } from "../ui/icons.js";

/**
 * @typedef {{
 *   group: string, title: string, icon?: string, type?: string, keys?: string, run: () => void,
 * }} Item
 */

let isOpen = false;

export async function openPalette() {
  if (isOpen) return;
  isOpen = true;
  const chosen = await show((close) => html`<${Palette} close=${close} />`);
  isOpen = false;
  /** @type {Item | undefined} */ (chosen)?.run();
}

/** @param {string} query @returns {Item[]} */
function find(query) {
  /** @type {Item[]} */
  const found = [];
  const take = (/** @type {Item[]} */ items, /** @type {number} */ most) =>
    found.push(...items.slice(0, most));
  const outline = current.peek()?.outline.peek() ?? [];
  const resources = [];
  for (const entry of outline) {
    if (query && !matches(`${entry.type}#${entry.name} ${entry.alias ?? ""}`, query)) continue;
    resources.push({
      group: "Resources",
      title: `${entry.type}#${entry.name}`,
      type: entry.type,
      run: () => {
        go({ page: "design" });
        select(entry, { replace: false });
      },
    });
    if (resources.length >= 30) break;
  }
  take(resources, query ? 30 : 5);
  const inFiles = (files.peek() ?? []).filter((file) => !query || matches(file.path, query));
  take(
    inFiles.map((file) => ({
      group: "Files",
      title: file.path,
      icon: file.kind === "template" ? "braces" : "file",
      run: () => go({ page: "design", file: file.path, resource: "" }),
    })),
    query ? 20 : 5,
  );
  take(
    PAGES.filter((page) => !query || matches(page.title, query)).map((page) => ({
      group: "Pages",
      title: page.title,
      icon: page.icon,
      keys: `G ${page.key.toUpperCase()}`,
      run: () => go({ page: page.id }),
    })),
    6,
  );
  const able = commands
    .peek()
    .filter(
      (command) =>
        !command.hidden && (command.when?.() ?? true) && (!query || matches(command.title, query)),
    );
  take(
    able.map((command) => ({
      group: "Commands",
      title: command.title,
      icon: command.icon ?? "chev",
      ...(command.keys ? { keys: command.keys } : {}),
      run: () => command.run(),
    })),
    40,
  );
  return found;
}

/** @param {{close: (item?: Item) => void}} props */
function Palette({ close }) {
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  const items = useMemo(() => find(query.trim()), [query]);
  useLayoutEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [at, items]);
  /** @param {KeyboardEvent} event */
  const keys = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setAt((at + step + items.length) % Math.max(1, items.length));
    else if (event.key === "Enter" && !event.isComposing) close(items[at]);
    else return;
    event.preventDefault();
  };
  let group = "";
  return html`<${Modal} label="Search" class="pal" onClose=${() => close()}>
    <input
      data-autofocus
      role="combobox"
      aria-expanded="true"
      aria-controls="pal-list"
      aria-activedescendant=${items.length > 0 ? `pal-${at}` : undefined}
      aria-label="Search resources, files, commands"
      placeholder="Search resources, files, commands"
      spellcheck=${false}
      autocomplete="off"
      value=${query}
      onKeyDown=${keys}
      onInput=${(/** @type {Event} */ event) => {
        setQuery(/** @type {HTMLInputElement} */ (event.currentTarget).value);
        setAt(0);
      }}
    />
    <div id="pal-list" ref=${list} role="listbox" aria-label="Found" class="found">
      ${items.map((item, index) => {
        const heading = item.group !== group;
        group = item.group;
        return html`
          ${
            heading &&
            html`<div key=${`g-${item.group}`} class="lab" role="presentation">
              ${item.group}
            </div>`
          }
          <div
            key=${index}
            id=${`pal-${index}`}
            role="option"
            class="li"
            aria-selected=${index === at ? "true" : "false"}
            onClick=${() => close(item)}
          >
            ${item.type ? html`<${Tile} type=${item.type} />` : html`<${Icon} name=${item.icon ?? "chev"} />`}
            <span class="bidi">${item.title}</span>
            ${item.keys && html`<kbd>${keyText(item.keys.split(", ")[0] ?? "")}</kbd>`}
          </div>
        `;
      })}
    </div>
    ${
      items.length === 0 &&
      html`<p class="muted pad" role="status">
        Nothing found
      </p>`
    }
  <//>`;
}
