// What is shown where there is no manifest yet, and where no resource is chosen.
import { html } from "../vendor/preact.js";
import { newManifest } from "../core/actions.js";
import { openDraft, studio, types } from "../core/store.js";
import { Icon, Tile } from "../ui/icons.js";
import { Button } from "../ui/parts.js";
import { EXAMPLES } from "./examples.js";
import { addResource } from "./operations.js";

export function Welcome() {
  const locked = studio.value?.read_only ?? false;
  return html`<div class="page welcome">
    <div class="wbox">
      <h1>No manifests here yet</h1>
      <p>
        A manifest is a YAML file that says what a machine should look like: files, packages,
        services and commands, in the order in which they are brought about. ccm changes only what
        differs, and <b>Plan</b> shows what that would be before anything happens.
      </p>
      <p>
        <${Button} kind="primary" icon="plus" disabled=${locked} onClick=${() => void newManifest()}>
          New manifest
        <//>
      </p>
      <h2>Or begin with an example</h2>
      <p class="muted">It opens as a draft. Nothing is written before you save.</p>
      <ul class="examples">
        ${EXAMPLES.map(
          (example) =>
            html`<li key=${example.path}>
              <button type="button" onClick=${() => openDraft(example.path, example.text)}>
                <${Icon} name="file" />
                <span>
                  <b>${example.title}</b>
                  <small>${example.about}</small>
                </span>
              </button>
            </li>`,
        )}
      </ul>
    </div>
  </div>`;
}

/** The types with a line each, to add one. */
export function TypePalette() {
  return html`<div class="scroll types">
    <h3>Choose a resource, or add one</h3>
    <ul>
      ${types.value.types.map(
        (type) =>
          html`<li key=${type.name}>
            <button type="button" onClick=${() => void addResource(type.name)}>
              <${Tile} type=${type.name} large />
              <span>
                <b>${type.name}</b>
                <small>${type.about}</small>
              </span>
            </button>
          </li>`,
      )}
    </ul>
  </div>`;
}
