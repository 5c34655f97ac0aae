// The form of the selected resource. It knows no type and no property: all
// of it comes from the table of types and from what the engine reads.
import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import {
  current,
  handleOf,
  idOf,
  selectNamed,
  selected,
  studio,
  typeNamed,
  types,
} from "../core/store.js";
import { plural, rank } from "../core/words.js";
import { go } from "../core/router.js";
import { Icon, Tile } from "../ui/icons.js";
import { Banner, Button, Segmented, Skeleton } from "../ui/parts.js";
import { report } from "../ui/toast.js";
import { YamlControl } from "./as-yaml.js";
import { ReadOnlyValue } from "./collections.js";
import { openCopyAs } from "./copy-as.js";
import { Control, isComposite } from "./field.js";
import { InnerPane, chosenInner } from "./inner.js";
import { duplicate, moveBy, remove, rename } from "./operations.js";
import { shown, stopAsking } from "./state.js";
import { TypePalette } from "./welcome.js";

/** Puts the focus into the form. */
export const focusForm = () =>
  focusWhenDrawn(".pane.form fieldset :is(textarea, input, select, button):not([tabindex='-1'])");

/**
 * Moves the focus into the form. Keys are faster than its answer: until that is there, nothing in
 * it takes the focus.
 * @param {string} selector
 */
export function focusWhenDrawn(selector) {
  const before = document.activeElement;
  const focus = () => {
    if (document.activeElement !== before) return;
    /** @type {HTMLElement | null} */ (document.querySelector(selector))?.focus();
  };
  const waits = () => {
    const entry = selected.peek();
    return (
      entry !== null && !current.peek()?.broken.peek() && shown.peek()?.handle !== handleOf(entry)
    );
  };
  if (!waits()) return focus();
  const stop = shown.subscribe(() => {
    if (waits()) return;
    requestAnimationFrame(() => {
      stop();
      focus();
    });
  });
  setTimeout(() => stop(), 1000);
}

export function FormPane() {
  const entry = selected.value;
  const doc = current.value;
  const inner = chosenInner.value;
  return html`<section class="pane form" aria-labelledby="h-form" id="pane-form">
    ${
      inner
        ? html`<${InnerPane} entry=${inner} />`
        : entry && doc
          ? html`<${Resource} key=${`${doc.path.value} ${entry.type}`} entry=${entry} />`
          : html`
            <header>
              <div class="title">
                <h2 id="h-form" class="plain">
                  ${doc?.isManifest === false ? "No form" : "No resource chosen"}
                </h2>
              </div>
            </header>
            ${
              doc?.isManifest === false
                ? html`<p class="muted pad">Only manifests have a form. Edit this file as text.</p>`
                : html`<${TypePalette} />`
            }
          `
    }
  </section>`;
}

/** @param {{entry: OutlineEntry}} props */
function Resource({ entry }) {
  const doc = /** @type {OpenFile} */ (current.value);
  const state = shown.value;
  const handle = handleOf(entry);
  const form = state && state.handle === handle ? state.form : null;
  const drawn = useDrawn(entry, handle, form, state?.revision ?? 0);
  const broken = doc.broken.value;
  const type = typeNamed(entry.type);
  const readOnly = doc.locked.value || broken !== null || studio.value?.read_only === true;
  const total = doc.outline.value.length;
  // While the next form is on its way, this one is not drawn again.
  const groups = useMemo(
    () =>
      drawn &&
      html`<${Groups} key=${drawn.handle} ...${drawn} fields=${type?.fields ?? []} readOnly=${readOnly} />`,
    [drawn, type, readOnly],
  );
  const users = usersOf(form);
  const wakes = users.filter((one) => one.relation === "subscribe");
  const line = [
    `runs ${rank(entry.number, total)}`,
    wakes.length > 0
      ? `changes wake ${wakes
          .slice(0, 2)
          .map((one) => one.resource)
          .join(", ")}${wakes.length > 2 ? ` and ${wakes.length - 2} more` : ""}`
      : "",
  ]
    .filter(Boolean)
    .join(" · ");
  return html`
    <header>
      <${Tile} type=${entry.type} large />
      <div class="title">
        <h2 id="h-form" class="bidi" title=${idOf(entry)}>
          ${idOf(entry)}
        </h2>
        <p>${line}</p>
      </div>
      <${Button}
        small
        kind="ghost"
        icon="pen"
        label="Rename"
        disabled=${readOnly}
        onClick=${() => void rename(entry)}
      />
      <${Button}
        small
        kind="ghost"
        icon="up"
        label="Move up"
        keys="Alt+↑"
        disabled=${readOnly || entry.number === 1}
        onClick=${() => moveBy(entry, -1)}
      />
      <${Button}
        small
        kind="ghost"
        icon="dn"
        label="Move down"
        keys="Alt+↓"
        disabled=${readOnly || entry.number === total}
        onClick=${() => moveBy(entry, 1)}
      />
      <${Button}
        small
        kind="ghost"
        icon="copy"
        label="Duplicate"
        disabled=${readOnly}
        onClick=${() => void duplicate(entry)}
      />
      <${Button}
        small
        kind="ghost"
        icon="trash"
        label="Delete resource"
        disabled=${readOnly}
        onClick=${() => void remove(entry)}
      />
    </header>
    <div
      class=${`scroll ${broken ? "stale" : ""}`}
      tabindex="0"
      role="region"
      aria-label="Properties"
      inert=${drawn !== null && form === null}
    >
      ${
        broken &&
        html`<div class="pad">
          <${Banner}
            kind="warn"
            actions=${html`<${Button} small onClick=${() => doc.reveal((broken.line ?? 1) - 1, 0)}>
              Go to line ${broken.line}
            <//>`}
          >
            The text is not YAML. The form shows the last good values and waits for line${" "}
            ${broken.line}.
          <//>
        </div>`
      }
      ${
        state?.error &&
        html`<div class="pad">
          <${Banner} kind="bad">${state.error}<//>
        </div>`
      }
      ${
        !type &&
        html`<div class="pad">
          <${Banner} kind="warn">
            The type <code>${entry.type}</code> is not known to this ccm.
          <//>
        </div>`
      }
      ${entry.block.loops && html`<${Loops} loops=${entry.block.loops} />`}
      ${
        drawn
          ? groups
          : !state?.error &&
            html`<${Skeleton} rows=${9} label="Loading the form" onStop=${stopAsking} />`
      }
    </div>
  `;
}

/**
 * What a form says of the loops around its resource.
 * @param {{loops: Api.OutlineLoop[]}} props
 */
function Loops({ loops }) {
  return html`<div class="pad">
    <${Banner} kind="info">
      Repeated
      ${loops.map(
        (loop, at) =>
          html`<span key=${at}>
            ${at > 0 ? ", and within it" : ""} for each item of <code>${loop.for_each}</code>, which is
            <code>${loop.as ?? "Item"}</code> here
          </span>`,
      )}.
      Change the loop in the text.
    <//>
  </div>`;
}

/**
 * Those that refer to a resource.
 * @param {Form | null} form
 * @returns {Api.User[]}
 */
const usersOf = (form) => form?.used_by ?? [];

/** Loading that takes longer than this shows a skeleton. */
const LATE = 150;

/**
 * The form to draw: that of the entry, or for a moment the one before it, as most answers take no
 * longer.
 * @param {OutlineEntry} entry
 * @param {string | number} handle
 * @param {Form | null} form
 * @param {number} revision
 */
function useDrawn(entry, handle, form, revision) {
  const last = useRef(
    /** @type {{entry: OutlineEntry, handle: string | number, form: Form, revision: number} | null} */ (
      null
    ),
  );
  const [late, setLate] = useState(false);
  useEffect(() => {
    setLate(false);
    if (form) return;
    const timer = setTimeout(() => setLate(true), LATE);
    return () => clearTimeout(timer);
  }, [handle, form === null]);
  const now = last.current;
  if (form && (now?.form !== form || now.entry !== entry || now.revision !== revision)) {
    last.current = { entry, handle, form, revision };
  } else if (!form && late) last.current = null;
  return last.current;
}

/** @typedef {{title: string, fields: Field[]}} Group */

/**
 * The groups of a form: required fields first, then the table's order, then
 * relations and what all types have.
 * @param {Field[]} fields @param {string[]} common
 * @returns {{groups: Group[], relations: Field[], rest: Field[]}}
 */
export function arrange(fields, common) {
  const own = fields.filter((field) => !common.includes(field.name));
  const isReference = (/** @type {Field} */ field) =>
    field.shape === "reference" || field.items?.shape === "reference";
  const relations = fields.filter(isReference);
  const first = fields.filter((field) => field.name === "ensure" || field.name === "alias");
  /** @type {Map<string, Field[]>} */
  const named = new Map([["Desired state", first]]);
  const ordered = [
    ...own.filter((field) => field.required),
    ...own.filter((field) => !field.required),
  ];
  for (const field of ordered) {
    if (isReference(field)) continue;
    const title = field.group ?? "Properties";
    named.set(title, [...(named.get(title) ?? []), field]);
  }
  const taken = new Set(["name", "ensure", "alias"]);
  const rest = fields.filter(
    (field) => common.includes(field.name) && !taken.has(field.name) && !isReference(field),
  );
  return {
    groups: [...named]
      .map(([title, list]) => ({ title, fields: list }))
      .filter((group) => group.fields.length > 0),
    relations,
    rest,
  };
}

/** @param {Context & {fields: Field[]}} props */
function Groups({ entry, form, revision, fields, readOnly }) {
  const users = usersOf(form);
  const { common } = types.value;
  const { groups, relations, rest } = useMemo(() => arrange(fields, common), [fields, common]);
  const known = new Set(fields.flatMap((field) => [field.name, ...field.aliases]));
  const unknown = Object.keys(form.properties).filter(
    (name) =>
      form.properties[name]?.unknown ||
      (!known.has(name) && form.properties[name]?.own !== undefined),
  );
  const context = { entry, form, revision, readOnly };
  return html`
    ${unknown.length > 0 && html`<${Unknown} names=${unknown} context=${context} />`}
    ${groups.map(
      (group) =>
        html`<fieldset key=${group.title}>
          <legend>${group.title}</legend>
          ${choices(group.fields, form).map((choice) =>
            Array.isArray(choice)
              ? html`<${Choice}
                key=${choice.map((field) => field.name).join()}
                fields=${choice}
                context=${context}
              />`
              : html`<${FieldRow} key=${choice.name} field=${choice} context=${context} />`,
          )}
        </fieldset>`,
    )}
    <fieldset>
      <legend>Relations</legend>
      ${relations.map(
        (field) => html`<${FieldRow} key=${field.name} field=${field} context=${context} />`,
      )}
      <div class="f">
        <span class="l">used by</span>
        ${
          users.length === 0
            ? html`<span class="none">nothing</span>`
            : html`<ul class="chips">
              ${users.map(
                (one) =>
                  html`<li key=${one.resource} class="chip">
                    <button type="button" class="go bidi" onClick=${() => selectNamed(one.resource)}>
                      ${one.resource}
                    </button>
                    ${one.relation && html`<span class="pill info">${one.relation}</span>`}
                  </li>`,
              )}
            </ul>`
        }
      </div>
    </fieldset>
    ${rest.map((field) => html`<${Folded} key=${field.name} field=${field} context=${context} />`)}
    <p class="formend">
      <${Button}
        small
        kind="ghost"
        icon="copy"
        disabled=${!current.value?.check.value?.valid}
        title=${current.value?.check.value?.valid ? undefined : "The manifest has errors"}
        onClick=${() => void openCopyAs(entry)}
      >
        Copy as YAML, command or request
      <//>
    </p>
  `;
}

/** @typedef {{entry: OutlineEntry, form: Form, revision: number, readOnly: boolean}} Context */

/**
 * Fields that exclude each other become one choice, while at most one is set.
 * @param {Field[]} fields @param {Form} form
 * @returns {(Field | Field[])[]}
 */
export function choices(fields, form) {
  /** @type {(Field | Field[])[]} */
  const result = [];
  const used = new Set();
  for (const field of fields) {
    if (used.has(field.name)) continue;
    const others = fields.filter(
      (other) =>
        other !== field &&
        (other.conflicts.includes(field.name) || field.conflicts.includes(other.name)),
    );
    const together = [field, ...others];
    const set = together.filter((one) => propertyOf(form, one).own !== undefined);
    if (others.length === 0 || set.length > 1) result.push(field);
    else {
      result.push(together);
      for (const one of together) used.add(one.name);
    }
  }
  return result;
}

/**
 * What the engine says of a property, by any of its names.
 * @param {Form} form
 * @param {Field} field
 * @returns {Property}
 */
function propertyOf(form, field) {
  for (const name of [field.name, ...field.aliases]) {
    const found = form.properties[name];
    if (found) return found;
  }
  return { editable: true, required: false, shown: null };
}

/**
 * One of several properties that exclude each other.
 * @param {{fields: Field[], context: Context}} props
 */
function Choice({ fields, context }) {
  const set = fields.find((field) => propertyOf(context.form, field).own !== undefined);
  const inherited = fields.find((field) => propertyOf(context.form, field).default !== undefined);
  const [chosen, choose] = useState((set ?? inherited ?? fields[0])?.name ?? "");
  useEffect(() => {
    if (set) choose(set.name);
  }, [set?.name]);
  const field = fields.find((one) => one.name === chosen) ?? /** @type {Field} */ (fields[0]);
  return html`
    <div class="f choice">
      <span class="l sr">One of</span>
      <div class="wide">
        <${Segmented}
          label=${`One of ${fields.map((one) => one.name).join(", ")}`}
          value=${field.name}
          disabled=${context.readOnly}
          options=${fields.map((one) => ({ value: one.name, label: one.name }))}
          onChange=${choose}
        />
      </div>
    </div>
    <${FieldRow}
      key=${field.name}
      field=${field}
      context=${context}
      instead=${set && set !== field ? set : undefined}
    />
  `;
}

/**
 * @param {Context} context
 * @param {Field} field
 * @param {any} value
 * @param {Field | undefined} instead
 */
function change({ entry }, field, value, instead) {
  const doc = current.peek();
  const resource = handleOf(entry);
  const operations = [];
  if (instead) operations.push({ op: "unset_property", resource, property: instead.name });
  if (value === undefined) {
    operations.push({ op: "unset_property", resource, property: field.name });
  } else operations.push({ op: "set_property", resource, property: field.name, value });
  return doc?.edit(operations) ?? Promise.resolve(false);
}

/**
 * The property as it was last chosen, until the form is about a text that has
 * it: an answer on its way is about an older one. An edit that failed is not
 * shown, but what was typed for it stays.
 * @param {Context} context @param {Field} field @param {Field | undefined} instead
 * @returns {{property: Property, choose: (value: any) => void, failed: boolean}}
 */
function useProperty(context, field, instead) {
  const property = propertyOf(context.form, field);
  const [chosen, setChosen] = useState({
    value: /** @type {any} */ (undefined),
    since: 0,
    failed: -1,
  });
  const choose = (/** @type {any} */ value) => {
    const mine = { value, since: Infinity, failed: -1 };
    const settle = (/** @type {number} */ since, /** @type {number} */ failed) =>
      setChosen((now) => (now === mine ? { value, since, failed } : now));
    setChosen(mine);
    change(context, field, value, instead).then(
      () => settle(current.peek()?.revision.peek() ?? 0, -1),
      (error) => {
        settle(0, shown.peek()?.revision ?? 0);
        report(error, `set ${field.name}`);
      },
    );
  };
  const waits = context.revision < chosen.since;
  return {
    property: waits ? { ...property, own: chosen.value } : property,
    choose,
    failed: context.revision === chosen.failed,
  };
}

/**
 * The findings about a property.
 * @param {Context} context
 * @param {Field} field
 * @param {Property} property
 * @returns {Finding[]}
 */
function findingsOf({ entry }, field, property) {
  const all = current.value?.check.value?.findings ?? [];
  if (all.length === 0 || entry.findings === 0) return [];
  const [first, , last, end] = entry.range;
  const names = [field.name, ...field.aliases];
  return all.filter((finding) => {
    const { range } = finding;
    if (!range || range[0] < first || range[0] > last || (range[0] === last && end === 0)) {
      return (
        finding.resource === idOf(entry) &&
        names.some((name) => new RegExp(`(^|[ \`])${name}(\`|:| is )`).test(finding.message))
      );
    }
    if (
      property.range &&
      range[0] >= property.range[0] &&
      range[2] <= property.range[2] &&
      (property.range[0] !== property.range[2] || range[0] === property.range[0])
    ) {
      return property.own !== undefined;
    }
    return (
      property.own === undefined &&
      names.some((name) => new RegExp(`(^|[ \`:])${name}(\`|:| is | must )`).test(finding.message))
    );
  });
}

/** @param {{field: Field, context: Context, instead?: Field | undefined}} props */
function FieldRow({ field, context, instead }) {
  const { form, entry, readOnly } = context;
  const { property, choose, failed } = useProperty(context, field, instead);
  const own = (property.own !== undefined && property.own !== null) || property.hidden === true;
  const inherited = !own && property.default !== undefined;
  const value = own ? property.own : property.default?.value;
  const id = `f-${field.name}`;
  const problems = findingsOf(context, field, property);
  const ensure = typeNamed(entry.type)?.ensure.words;
  const composite = isComposite(field, ensure);
  const describedBy = [`${id}-help`, problems.length > 0 ? `${id}-err` : ""]
    .filter(Boolean)
    .join(" ");
  const [asYaml, setAsYaml] = useState(false);
  const name = html`
    ${field.name}
    ${
      property.required &&
      html`<span class="req" aria-hidden="true">
        *
      </span>`
    }
  `;
  return html`<div class=${`f ${problems.length > 0 ? "wrong" : ""}`} data-field=${field.name}>
    ${
      composite
        ? html`<span class="l" id=${`${id}-label`}>
          ${name}
        </span>`
        : html`<label for=${id} id=${`${id}-label`}>
          ${name}
        </label>`
    }
    <div class="ctl">
      ${
        property.editable === false || (property.hidden && field.shape === "list")
          ? html`<${ReadOnlyValue}
            ...${{
              value: property.shown ?? value,
              reason:
                property.reason ??
                (property.hidden
                  ? "This holds secrets, which are not sent. Change it in the text."
                  : "This cannot be changed in the form."),
            }}
          />`
          : asYaml
            ? html`<${YamlControl}
              id=${id}
              name=${field.name}
              range=${own ? property.range : undefined}
              onChange=${choose}
              onClose=${() => {
                setAsYaml(false);
                requestAnimationFrame(() => document.getElementById(`${id}-as-yaml`)?.focus());
              }}
            />`
            : html`<${Control}
              field=${field}
              value=${value}
              inherited=${inherited}
              readOnly=${readOnly}
              invalid=${problems.length > 0}
              id=${id}
              describedBy=${describedBy}
              hidden=${property.hidden === true}
              failed=${failed}
              type=${entry.type}
              number=${entry.number}
              onInside=${(/** @type {string} */ key, /** @type {any} */ next) =>
                void current
                  .peek()
                  ?.edit([{ op: "set", path: [...form.path, field.name, key], value: next }])
                  .catch((error) => report(error, `set ${field.name}`))}
              onChange=${choose}
            />`
      }
    </div>
    ${problems.map(
      (finding, index) =>
        html`<p key=${index} class="err" id=${index === 0 ? `${id}-err` : undefined}>
          <${Icon} name="alert" />
          <span>
            ${finding.message}
            ${
              finding.hint &&
              html`
                ${" "}
                <span class="muted">${finding.hint}</span>
              `
            }
            ${finding.fixes.map(
              (fix) =>
                html`
                  ${" "}
                  <${Button}
                    small
                    key=${fix.title}
                    onClick=${() =>
                      void current
                        .peek()
                        ?.edit(fix.operations)
                        .catch((error) => report(error, fix.title))}
                  >
                    ${fix.title}
                  <//>
                `,
            )}
          </span>
        </p>`,
    )}
    <p class="help" id=${`${id}-help`}>
      ${help(field, property, inherited)}
      ${
        canBeYaml(field, property, readOnly) &&
        !asYaml &&
        html`<button
          key="y"
          type="button"
          id=${`${id}-as-yaml`}
          class="link"
          onClick=${() => setAsYaml(true)}
        >
          Edit as YAML<span class="sr">: ${field.name}</span>
        </button>`
      }
    </p>
  </div>`;
}

/**
 * Whether the form offers YAML in the place of rows. Secrets are not sent here to be shown.
 * @param {Field} field
 * @param {Property} property
 * @param {boolean} readOnly
 */
const canBeYaml = (field, property, readOnly) =>
  !readOnly &&
  property.editable !== false &&
  !property.hidden &&
  !field.secret &&
  (["data", "texts", "struct", "rules"].includes(field.shape) ||
    (field.shape === "list" && field.items?.shape !== "reference"));

/** @param {Field} field @param {Property} property @param {boolean} inherited */
function help(field, property, inherited) {
  const parts = [];
  if (property.resolved !== undefined && property.resolved !== property.own) {
    const text =
      typeof property.resolved === "string" ? property.resolved : JSON.stringify(property.resolved);
    parts.push(
      html`<span key="r" class="resolved">
        <${Icon} name="eye" />
        Resolves to${" "}
        <span class="mono bidi">${text.length > 160 ? `${text.slice(0, 158)}…` : text}</span>
      </span>`,
    );
  }
  if (inherited) {
    parts.push(
      html`<span key="d">
        From <code>defaults</code>
        ${
          property.default?.range
            ? html`
              ,${" "}
              <button
                type="button"
                class="link"
                onClick=${() => showLine(property.default?.range?.[0] ?? 0)}
              >
                line ${property.default.range[0] + 1}
              </button>
            `
            : ""
        }
        . Type to override.${" "}
      </span>`,
    );
  }
  if (property.aliases) {
    parts.push(
      html`<span key="a" class="resolved">
        <${Icon} name="warn" />
        An anchor: what you change here changes ${plural(property.aliases, "other place")} too.
      </span>`,
    );
  }
  parts.push(
    html`<span key="h">
      ${coded(field.doc)}
      ${field.doc && !/[.!?]$/.test(field.doc) ? "." : ""}
      ${field.phase === "deferred" ? " Resolved when the resource is applied." : ""}
      ${field.conflicts.length > 0 ? ` Not together with ${field.conflicts.join(", ")}.` : ""}${" "}
    </span>`,
  );
  if (property.editable === false && property.range) {
    parts.push(
      html`<button key="l" type="button" class="link" onClick=${() => showLine(property.range?.[0] ?? 0)}>
        Go to line ${property.range[0] + 1}
      </button>`,
    );
  }
  if (typeof property.own === "string" && property.own.includes("{{")) {
    parts.push(
      html`<button
        key="t"
        type="button"
        class="link"
        onClick=${() => go({ page: "templates", rest: { property: field.name } })}
      >
        Try the template
      </button>`,
    );
  }
  return parts;
}

/** A text with what stands between backticks as code. @param {string} text */
const coded = (text) =>
  text
    .split("`")
    .map((part, index) => (index % 2 === 1 ? html`<code key=${index}>${part}</code>` : part));

/** @param {number} line */
function showLine(line) {
  current.peek()?.reveal(line, 0);
  current.peek()?.view?.focus();
}

/**
 * What all types have, folded while it is unset.
 * @param {{field: Field, context: Context}} props
 */
function Folded({ field, context }) {
  const property = propertyOf(context.form, field);
  const count = Array.isArray(property.own) ? property.own.length : undefined;
  const set = property.own !== undefined || property.default !== undefined;
  return html`<details class="more" open=${set}>
    <summary>
      <${Icon} name="chev" />
      ${field.name}
      <span class="muted">${count ?? (set ? "set" : "not set")}</span>
    </summary>
    <div class="inside">
      <${FieldRow} field=${field} context=${context} />
    </div>
  </details>`;
}

/** @param {{names: string[], context: Context}} props */
function Unknown({ names, context }) {
  const findings = current.value?.check.value?.findings ?? [];
  return html`<fieldset>
    <legend>Not known</legend>
    ${names.map((name) => {
      const property = context.form.properties[name];
      const finding = findings.find(
        (one) =>
          one.range &&
          property?.range &&
          one.range[0] === property.range[0] &&
          one.message.includes(`\`${name}\``),
      );
      const meant = property?.suggestion;
      const fixes = finding?.fixes.length
        ? finding.fixes
        : meant
          ? [
              {
                title: `Rename to ${meant}`,
                operations: [{ op: "rename", path: [...context.form.path, name], key: meant }],
              },
            ]
          : [];
      return html`<div key=${name} class="f wrong">
        <span class="l">${name}</span>
        <div class="ctl">
          <pre class="mono ro">${JSON.stringify(property?.own)}</pre>
        </div>
        <p class="err">
          <${Icon} name="alert" />
          <span>
            ${finding?.message ?? `\`${name}\` is not a property of ${context.entry.type}`}
            ${
              finding?.hint &&
              html`
                ${" "}
                <span class="muted">${finding.hint}</span>
              `
            }${" "}
            ${fixes.map(
              (fix) =>
                html`
                  <${Button}
                    small
                    key=${fix.title}
                    onClick=${() =>
                      void current
                        .peek()
                        ?.edit(fix.operations)
                        .catch((error) => report(error, fix.title))}
                  >
                    ${fix.title}
                  <//>${" "}
                `,
            )}
          </span>
        </p>
      </div>`;
    })}
  </fieldset>`;
}
