// Proposals for names in expressions, below the text that is being typed.
import { html, useState } from "../vendor/preact.js";
import { expressionNames, matching, typedName } from "../core/names.js";

/**
 * @param {string} id of the text area
 * @param {{current: HTMLTextAreaElement | null}} box
 * @param {boolean} all whether the whole text is an expression
 * @param {(text: string, cursor: number) => void} take
 */
export function useProposals(id, box, all, take) {
  const [found, setFound] = useState(
    /** @type {{names: import("../core/names.js").Name[], from: number, to: number, at: number} | null} */ (
      null
    ),
  );
  const close = () => setFound(null);
  const look = async () => {
    const area = box.current;
    if (!area) return;
    const to = area.selectionStart;
    const text = area.value;
    const typed = typedName(text.slice(0, to), all);
    if (!typed) return close();
    const names = matching(await expressionNames(), typed).filter((name) => name.value !== typed);
    if (box.current?.value !== text || document.activeElement !== area) return;
    setFound(names.length > 0 ? { names, from: to - typed.length, to, at: 0 } : null);
  };
  /** @param {number} at */
  const accept = (at) => {
    const name = found?.names[at]?.value;
    const area = box.current;
    if (!found || !name || !area) return;
    take(
      area.value.slice(0, found.from) + name + area.value.slice(found.to),
      found.from + name.length,
    );
    close();
  };
  /** Whether a key was for the proposals. @param {KeyboardEvent} event */
  const keys = (event) => {
    if (!found) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      setFound({ ...found, at: (found.at + step + found.names.length) % found.names.length });
    } else if ((event.key === "Enter" || event.key === "Tab") && !event.ctrlKey && !event.metaKey) {
      accept(found.at);
    } else if (event.key === "Escape") close();
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  };
  return {
    look: () => void look(),
    close,
    keys,
    attributes: {
      "aria-autocomplete": "list",
      "aria-controls": found ? `${id}-names` : undefined,
      "aria-activedescendant": found ? `${id}-name-${found.at}` : undefined,
    },
    list:
      found &&
      html`<ul id=${`${id}-names`} class="options" role="listbox" aria-label="Proposals">
        ${found.names.map(
          (name, index) =>
            html`<li
              key=${name.value}
              id=${`${id}-name-${index}`}
              role="option"
              aria-selected=${index === found.at ? "true" : "false"}
              ref=${(/** @type {Element | null} */ row) =>
                index === found.at && row?.scrollIntoView({ block: "nearest" })}
              onMouseDown=${(/** @type {Event} */ event) => {
                event.preventDefault();
                accept(index);
              }}
            >
              <span class="bidi">${name.value}</span>
              ${name.detail && html`<small class="bidi">${name.detail}</small>`}
            </li>`,
        )}
      </ul>`,
  };
}
