// The top bar: what is open, its state, and what can be done with it.
import { html } from "../vendor/preact.js";
import { save } from "../core/actions.js";
import { runCommand } from "../core/commands.js";
import { shownTheme, theme } from "../core/prefs.js";
import { startApply, startPlan } from "../core/runs.js";
import { current, studio } from "../core/store.js";
import { Icon } from "../ui/icons.js";
import { Button } from "../ui/parts.js";
import { keyText } from "../core/words.js";

export function Logo() {
  return html`<div class="brand">
    <svg viewBox="0 0 24 24" aria-hidden="true">
      <rect width="24" height="24" rx="6" fill="var(--accent)" />
      <path
        d="M6.5 12.5 10 16l7.5-8"
        fill="none"
        stroke="var(--on-accent)"
        stroke-width="2.4"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
    <b>
      ccm <span>Studio</span>
    </b>
  </div>`;
}

export function TopBar() {
  const document = current.value;
  const about = studio.value;
  const applying = about?.apply_allowed ?? false;
  const dark = shownTheme.value === "dark";
  return html`<header class="top">
    <${Logo} />
    <div class="crumbs">
      <span class="dir bidi" title=${about?.directory}>
        ${about?.directory.split("/").at(-1)}
      </span>
      ${
        document &&
        html`
          <span class="sep" aria-hidden="true">
            /
          </span>
          <b class="bidi" title=${document.path.value}>
            ${document.path.value}
          </b>
          ${
            document.draft.value
              ? html`<span class="unsaved">draft</span>`
              : document.saving.value
                ? html`<span class="muted">saving</span>`
                : document.dirty.value && html`<span class="unsaved">unsaved</span>`
          }
        `
      }
    </div>
    <button type="button" class="omni" onClick=${() => runCommand("palette")}>
      <${Icon} name="search" />
      <span>Search resources, files, commands</span>
      <kbd aria-hidden="true">${keyText("Mod+K")}</kbd>
    </button>
    <div class="tools">
      <${Button}
        icon="save"
        keys="Mod+S"
        class="t-save"
        disabled=${!document || about?.read_only}
        title=${about?.read_only ? "Started with --read-only" : undefined}
        onClick=${() => void save()}
      >
        Save
      <//>
      <${Button}
        icon="plan"
        kind="primary"
        keys="Mod+Enter"
        class="t-plan"
        disabled=${!document?.isManifest}
        onClick=${startPlan}
      >
        Plan
      <//>
      <${Button}
        icon=${applying ? "play" : "lock"}
        class="t-apply"
        disabled=${!applying}
        title=${
          applying
            ? `Apply (${keyText("Mod+Shift+Enter")})`
            : "Start with --allow-apply to apply from here"
        }
        onClick=${startApply}
      >
        Apply
      <//>
      <${Button}
        icon=${dark ? "sun" : "moon"}
        kind="ghost"
        label=${dark ? "Light theme" : "Dark theme"}
        onClick=${() => (theme.value = dark ? "light" : "dark")}
      />
      <${Button}
        icon="help"
        kind="ghost"
        label="Keyboard and help"
        keys="?"
        onClick=${() => runCommand("help")}
      />
    </div>
  </header>`;
}
