// The frame around all pages.
import { html, useEffect, useRef } from "../vendor/preact.js";
import { refused } from "../core/session.js";
import { file, page } from "../core/router.js";
import { current, studio } from "../core/store.js";
import { PAGES } from "../pages/registry.js";
import { Dialogs } from "../ui/dialog.js";
import { Toasts } from "../ui/toast.js";
import { GlobalBanners } from "./banners.js";
import { Connect } from "./connect.js";
import { Rail } from "./rail.js";
import { StatusBar } from "./status.js";
import { TopBar } from "./topbar.js";

export function App() {
  // Without a key there is nothing to show; unsaved text stays below the page that says so.
  if (refused.value && !current.value) return html`<${Connect} />`;
  return html`
    <a class="skip" href="#main" onClick=${skip}>
      Skip to the page
    </a>
    <div class="app">
      <${TopBar} />
      <${Rail} />
      <main id="main" tabindex="-1">
        <${GlobalBanners} />
        <${Shown} />
      </main>
      <${StatusBar} />
    </div>
    <${Toasts} />
    <${Dialogs} />
  `;
}

/** @param {Event} event */
function skip(event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Shown() {
  const known = PAGES.find((one) => one.id === page.value) ?? PAGES[0];
  const first = useRef(true);
  const shown = file.value;
  useEffect(() => {
    document.title = [known?.title, shown, "ccm Studio"].filter(Boolean).join(" · ");
  }, [known, shown]);
  useEffect(() => {
    // Another page begins at its top, also for those who do not see it.
    if (!first.current) document.getElementById("main")?.focus();
    first.current = false;
  }, [known]);
  if (!studio.value) {
    return html`<p class="sr" role="status">
      Loading
    </p>`;
  }
  return known && html`<${known.view} key=${known.id} />`;
}
