// The pages, at the left.
import { html } from "../vendor/preact.js";
import { href, page, place } from "../core/router.js";
import { current } from "../core/store.js";
import { PAGES } from "../pages/registry.js";
import { Icon } from "../ui/icons.js";

export function Rail() {
  const errors = current.value?.errors.value ?? 0;
  // The links follow the address.
  void place.value;
  return html`<nav class="rail" aria-label="Pages">
    ${PAGES.map(
      (one) =>
        html`<a
          key=${one.id}
          href=${href({ page: one.id })}
          aria-current=${page.value === one.id ? "page" : undefined}
          aria-keyshortcuts=${`G ${one.key.toUpperCase()}`}
        >
          <${Icon} name=${one.icon} />
          ${one.title}
          ${
            one.id === "design" &&
            errors > 0 &&
            html`<span class="dot">
              ${errors > 99 ? "99+" : errors}
              <span class="sr"> ${errors === 1 ? "error" : "errors"}</span>
            </span>`
          }
        </a>`,
    )}
  </nav>`;
}
