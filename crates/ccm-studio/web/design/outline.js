// The resources in run order.
import { html, signal, useEffect, useMemo, useRef } from "../vendor/preact.js";
import { register } from "../core/commands.js";
import { OUTCOMES } from "../core/runs.js";
import { current, idOf, outcomes, select, selected, typeNamed, types } from "../core/store.js";
import { matches, plural } from "../core/words.js";
import { Icon, Tile } from "../ui/icons.js";
import { Button, Loading, Pill } from "../ui/parts.js";
import { VirtualList } from "../ui/virtual.js";
import { focusForm } from "./form.js";
import {
  Below,
  InnerRow,
  RenderedNote,
  byParent,
  chosenInner,
  fold,
  innerOf,
  openInner,
  unfolded,
} from "./inner.js";
import { lanes } from "./lanes.js";
import { addResource, canEdit, duplicate, moveBefore, moveBy, remove } from "./operations.js";

/** @typedef {import("./lanes.js").Lane} Lane */
/**
 * @typedef {{block: string, defaults: string, through: Lane["lines"]} | {entry: OutlineEntry, lane:
 *   Lane, below: InnerEntry[]} | {inner: InnerEntry, through: Lane["lines"]}} Item
 */

const filter = signal({ text: "", type: "", state: "" });
const filtering = signal(false);
/** @type {Signal<unknown>} the file whose first check was stopped */
const stopped = signal(null);

const STATES = [
  { value: "", label: "All states" },
  { value: "findings", label: "With problems" },
  { value: "related", label: "With relations" },
  ...Object.entries(OUTCOMES).map(([value, { word }]) => ({ value, label: `Plan: ${word}` })),
];

/** @type {InnerEntry[]} */
const NONE = [];

/**
 * What a filter needs of an entry, made once for an outline: most keys only filter.
 * @typedef {{entry: OutlineEntry, lane: Lane, block: string, words: string}} Prepared
 */

/** @param {OutlineEntry[]} outline @param {Lane[]} drawn @returns {Prepared[]} */
function prepare(outline, drawn) {
  return outline.map((entry, index) => ({
    entry,
    lane: drawn[index] ?? { own: -1, lines: [] },
    block: entry.block.path.join("\n"),
    words: `${entry.type}#${entry.name} ${entry.alias ?? ""}`.toLowerCase(),
  }));
}

/** @param {Prepared} prepared @param {{words: string[], type: string, state: string}} wanted */
function passes({ entry, words: all }, { words, type, state }) {
  if (type && entry.type !== type) return false;
  if (!words.every((word) => all.includes(word))) return false;
  if (!state) return true;
  if (state === "findings") return entry.findings > 0;
  if (state === "related") return entry.require.length + entry.subscribe.length > 0;
  return plannedOutcome(entry) === state;
}

/** @param {OutlineEntry} entry */
const plannedOutcome = (entry) =>
  outcomes.value.get(idOf(entry)) ??
  (entry.alias ? outcomes.value.get(`${entry.type}#${entry.alias}`) : undefined);

const height = (/** @type {Item} */ item) => ("entry" in item ? 42 : "inner" in item ? 36 : 29);

export function Outline() {
  const doc = current.value;
  const outline = doc?.outline.value;
  const wanted = filter.value;
  const planned = outcomes.value;
  const inner = innerOf(doc);
  const open = unfolded.value;
  const drawn = useMemo(() => lanes(outline ?? []), [outline]);
  const prepared = useMemo(() => prepare(outline ?? [], drawn.rows), [drawn]);
  const { items, places, byNumber } = useMemo(
    () => rows(doc, prepared, wanted, inner),
    [prepared, wanted, planned, inner, open],
  );
  const now = selected.value;
  const looked = chosenInner.value;
  const at = looked
    ? items.findIndex((item) => "inner" in item && item.inner === looked)
    : ((now && byNumber.get(now.number)) ?? -1);
  const dragged = useRef(/** @type {OutlineEntry | null} */ (null));
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(
    () =>
      register([
        {
          id: "filter",
          title: "Filter the resources",
          keys: "/",
          group: "Design",
          run: () => input.current?.focus(),
        },
      ]),
    [],
  );
  if (!doc) return null;
  if (!doc.isManifest) {
    return html`<p class="muted pad grow">This file has no resources of its own.</p>`;
  }
  if (!doc.check.value) {
    return html`<${Loading}
      rows=${8}
      label="Reading the resources"
      asked=${{
        stopped: stopped.value === doc,
        stop() {
          doc.request?.abort();
          stopped.value = doc;
        },
        again() {
          stopped.value = null;
          doc.scheduleCheck(0);
        },
      }}
    />`;
  }

  const entryOf = (/** @type {number} */ index) => {
    const item = items[index];
    return item && "entry" in item ? item.entry : undefined;
  };
  /** @param {number} index */
  const choose = (index) => {
    const item = items[index];
    if (item && "inner" in item && !("note" in item.inner)) chosenInner.value = item.inner;
    else {
      chosenInner.value = null;
      select(entryOf(index) ?? null);
    }
  };
  /** @param {KeyboardEvent} event @param {number} index */
  const keys = (event, index) => {
    const item = items[index];
    const entry = entryOf(index);
    const step = { ArrowRight: true, ArrowLeft: false }[event.key];
    if (step !== undefined && item && "below" in item && item.below.length > 0) {
      fold(idOf(item.entry), step);
    } else if (step === false && item && "inner" in item) {
      choose(items.findIndex((one) => "entry" in one && one.entry.number === item.inner.parent));
    }
    if (!entry) return;
    const mod = event.ctrlKey || event.metaKey;
    if (event.altKey && event.key === "ArrowUp") moveBy(entry, -1);
    else if (event.altKey && event.key === "ArrowDown") moveBy(entry, 1);
    else if (event.key === "Delete") void remove(entry);
    else if (mod && event.key.toLowerCase() === "d") void duplicate(entry);
    else return;
    event.preventDefault();
  };
  const size = places.at(-1) ?? 0;
  const laneWidth = 12 + Math.max(1, drawn.width) * 10;
  const related = useRelated(now, drawn.refers);
  return html`
    <div class="search">
      <${Icon} name="search" />
      <input
        ref=${input}
        aria-label="Filter resources"
        placeholder=${`Filter ${plural(outline?.length ?? 0, "resource")}`}
        value=${wanted.text}
        spellcheck=${false}
        autocomplete="off"
        onInput=${(/** @type {Event} */ event) =>
          (filter.value = {
            ...filter.peek(),
            text: /** @type {HTMLInputElement} */ (event.currentTarget).value,
          })}
        onKeyDown=${(/** @type {KeyboardEvent} */ event) => {
          if (event.key === "ArrowDown") document.getElementById("outline")?.focus();
          else if (event.key === "Escape" && filter.peek().text) {
            filter.value = { ...filter.peek(), text: "" };
          } else return;
          event.preventDefault();
        }}
      />
      <kbd aria-hidden="true">/</kbd>
      <${Button}
        small
        kind="ghost"
        icon="filter"
        label="Filter by type and state"
        aria-expanded=${filtering.value ? "true" : "false"}
        class=${wanted.type || wanted.state ? "on" : ""}
        onClick=${() => (filtering.value = !filtering.peek())}
      />
    </div>
    ${
      filtering.value &&
      html`<div class="filters">
        <select
          aria-label="Type"
          value=${wanted.type}
          onChange=${(/** @type {Event} */ event) =>
            (filter.value = {
              ...filter.peek(),
              type: /** @type {HTMLSelectElement} */ (event.currentTarget).value,
            })}
        >
          <option value="">All types</option>
          ${types.value.types.map(
            (type) =>
              html`<option key=${type.name} value=${type.name}>
                ${type.name}
              </option>`,
          )}
        </select>
        <select
          aria-label="State"
          value=${wanted.state}
          onChange=${(/** @type {Event} */ event) =>
            (filter.value = {
              ...filter.peek(),
              state: /** @type {HTMLSelectElement} */ (event.currentTarget).value,
            })}
        >
          ${STATES.map(
            (state) =>
              html`<option key=${state.value} value=${state.value}>
                ${state.label}
              </option>`,
          )}
        </select>
      </div>`
    }
    ${
      inner[0] &&
      "rendered" in inner[0] &&
      inner[0].rendered &&
      inner[0].parent === null &&
      html`<${RenderedNote} entry=${inner[0]} />`
    }
    ${
      doc.check.value.inner_left_out > 0 &&
      html`<p class="rendered muted">
        ${plural(doc.check.value.inner_left_out, "resource")} from elsewhere not listed
      </p>`
    }
    <${VirtualList}
      id="outline"
      label="Resources in run order"
      class=${doc.broken.value ? "outl stale" : "outl"}
      items=${items}
      height=${height}
      selected=${at}
      selectable=${isEntry}
      recycle
      onSelect=${choose}
      onOpen=${() => (looked ? openInner(looked) : focusForm())}
      onKey=${keys}
      empty=${html`<p class="muted pad">
        ${outline?.length ? "No resource passes the filter" : "No resources yet. Add one below."}
      </p>`}
      row=${(/** @type {Item} */ item, /** @type {number} */ index) =>
        "entry" in item
          ? html`<${Row}
            entry=${item.entry}
            below=${item.below}
            lane=${item.lane}
            laneWidth=${laneWidth}
            index=${index}
            chosen=${index === at}
            place=${places[index]}
            size=${size}
            related=${related.has(item.entry.number)}
            dragged=${dragged}
          />`
          : "inner" in item
            ? html`<${InnerRow}
              entry=${item.inner}
              index=${index}
              indent=${laneWidth + 8}
              through=${item.through}
              chosen=${index === at}
              place=${places[index]}
              size=${size}
            />`
            : html`<div
              class="block"
              role="presentation"
              title=${item.defaults}
              style=${{ paddingLeft: `${laneWidth + 18}px` }}
            >
              ${item.through.map(
                (line) =>
                  html`<i
                    key=${line.lane}
                    class=${`thru l${line.lane}`}
                    style=${{ left: `${15 + line.lane * 10}px` }}
                  ></i>`,
              )}
              <b>${item.block}</b>
              <span class="mono bidi">${item.defaults}</span>
            </div>`}
    />
  `;
}

/** @param {Item} item */
const isEntry = (item) => "entry" in item || ("inner" in item && !("note" in item.inner));

/**
 * The numbers of what a resource refers to, and of those that refer to it.
 * @param {OutlineEntry | null} entry
 * @param {number[][]} refers
 */
function useRelated(entry, refers) {
  return useMemo(() => {
    /** @type {Set<number>} */
    const found = new Set();
    if (!entry) return found;
    const own = entry.number - 1;
    for (const at of refers[own] ?? []) found.add(at + 1);
    refers.forEach((list, at) => {
      if (list.includes(own)) found.add(at + 1);
    });
    return found;
  }, [entry, refers]);
}

/**
 * The rows that pass a filter, how many resources there are up to each, and where each resource of
 * the text is.
 * @param {OpenFile | null} doc
 * @param {Prepared[]} prepared
 * @param {{text: string, type: string, state: string}} wanted
 * @param {InnerEntry[]} inner
 * @returns {{items: Item[], places: number[], byNumber: Map<number, number>}}
 */
function rows(doc, prepared, { text, type, state }, inner) {
  const words = text.toLowerCase().split(/\s+/);
  /** @type {Item[]} */
  const items = [];
  /** @type {number[]} */
  const places = [];
  /** @type {Map<number, number>} */
  const byNumber = new Map();
  const defaults = new Map(
    (doc?.check.peek()?.blocks ?? []).map((block) => [block.path.join("\n"), block.defaults]),
  );
  const below = byParent(inner);
  let block = "";
  let place = 0;
  const add = (/** @type {Item} */ item) => {
    items.push(item);
    places.push(isEntry(item) ? (place += 1) : place);
  };
  const addInner = (/** @type {InnerEntry[]} */ list, /** @type {Lane["lines"]} */ through) => {
    for (const one of list) {
      if (innerPasses(one, { text, type, state })) add({ inner: one, through });
    }
  };
  addInner(below.get(0) ?? [], []);
  for (const one of prepared) {
    const { entry, lane } = one;
    const inside = below.get(entry.number) ?? NONE;
    if (passes(one, { words, type, state })) {
      if (one.block !== block) {
        block = one.block;
        add({
          block: entry.type,
          defaults: [loopsOf(entry), inWords(defaults.get(block))].filter(Boolean).join(" · "),
          through: lane.lines.filter((line) => line.above),
        });
      }
      byNumber.set(entry.number, items.length);
      add({ entry, lane, below: inside });
    }
    if (inside.length > 0 && (text || unfolded.peek().has(idOf(entry)))) {
      addInner(
        inside,
        lane.lines.filter((line) => line.below),
      );
    }
  }
  return { items, places, byNumber };
}

/** @param {InnerEntry} entry @param {{text: string, type: string, state: string}} wanted */
function innerPasses(entry, { text, type, state }) {
  if ("note" in entry) return !text && !type && !state;
  return (
    !state &&
    (!type || entry.type === type) &&
    (!text || matches(`${entry.type}#${entry.name} ${entry.alias ?? ""}`, text))
  );
}

/** «for each {{ Data.sites }} as site». @param {OutlineEntry} entry */
const loopsOf = (entry) =>
  (entry.block.loops ?? [])
    .map((loop) => `for each ${loop.for_each}${loop.as ? ` as ${loop.as}` : ""}`)
    .join(", ");

/** «owner root · mode 0644». @param {any} defaults */
const inWords = (defaults) =>
  defaults && typeof defaults === "object"
    ? Object.entries(defaults)
        .map(
          ([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`,
        )
        .join(" · ")
    : "";

/**
 * @param {{
 *   entry: OutlineEntry, below: InnerEntry[], lane: Lane, laneWidth: number, index: number,
 *   chosen: boolean, place: number, size: number, related: boolean,
 *   dragged: {current: OutlineEntry | null},
 * }} props
 */
function Row({
  entry,
  below: inside,
  lane,
  laneWidth,
  index,
  chosen,
  place,
  size,
  related,
  dragged,
}) {
  const over = useRef(/** @type {HTMLDivElement | null} */ (null));
  const outcome = plannedOutcome(entry);
  const { kind, glyph } = (outcome && OUTCOMES[outcome]) || { kind: "", glyph: "dash" };
  /**
   * Whether the pointer is in the lower half, which is behind this resource.
   * @param {DragEvent} event
   */
  const below = (event) => {
    const box = over.current?.getBoundingClientRect();
    return box !== undefined && event.clientY > box.top + box.height / 2;
  };
  const mark = (/** @type {"before" | "behind" | null} */ where) => {
    over.current?.classList.toggle("drop", where === "before");
    over.current?.classList.toggle("drop-behind", where === "behind");
  };
  return html`<div
    ref=${over}
    class=${`res ${related ? "related" : ""}`}
    role="option"
    id=${`outline-${index}`}
    aria-selected=${chosen ? "true" : "false"}
    aria-setsize=${size}
    aria-posinset=${place}
    style=${{ gridTemplateColumns: `${laneWidth}px 24px minmax(0, 1fr) auto` }}
    draggable=${canEdit()}
    onClick=${() => {
      chosenInner.value = null;
      select(entry, { replace: false });
    }}
    onDblClick=${focusForm}
    onDragStart=${(/** @type {DragEvent} */ event) => {
      dragged.current = entry;
      event.dataTransfer?.setData("text/plain", idOf(entry));
    }}
    onDragOver=${(/** @type {DragEvent} */ event) => {
      if (!dragged.current) return;
      event.preventDefault();
      mark(below(event) ? "behind" : "before");
    }}
    onDragLeave=${() => mark(null)}
    onDragEnd=${() => (dragged.current = null)}
    onDrop=${(/** @type {DragEvent} */ event) => {
      event.preventDefault();
      mark(null);
      const { current: moving } = dragged;
      dragged.current = null;
      if (!moving || moving === entry) return;
      const target = below(event) ? (current.peek()?.outline.peek()[entry.number] ?? null) : entry;
      if (target !== moving) void moveBefore(moving, target);
    }}
  >
    <span class="sr">${idOf(entry)}, </span>
    <${LaneView} lane=${lane} width=${laneWidth} related=${related || chosen} />
    <${Tile} type=${entry.type} />
    <span class="nm">
      <span class="n" aria-hidden="true" title=${entry.name}>
        <bdi>${entry.name}</bdi>
      </span>
      <span class="s">${about(entry)}</span>
    </span>
    <span class="tail">
      ${inside.length > 0 && html`<${Below} id=${idOf(entry)} inner=${inside} />`}
      ${
        entry.findings > 0 &&
        html`<${Pill} kind="bad" icon="alert">
          ${entry.findings}
          <span class="sr"> ${entry.findings === 1 ? "problem" : "problems"}</span>
        <//>`
      }
      ${
        outcome &&
        html`<span class=${`oc ${kind}`} title=${`Last plan: ${outcome}`}>
          <${Icon} name=${glyph} />
          <span class="sr">${outcome} in the last plan</span>
        </span>`
      }
    </span>
  </div>`;
}

/** What matters most. @param {OutlineEntry} entry */
function about(entry) {
  const parts = [];
  if (entry.block.loops) parts.push("repeated");
  if (entry.alias) parts.push(`alias ${entry.alias}`);
  if (entry.ensure) parts.push(entry.ensure);
  if (entry.subscribe.length > 0) parts.push(`subscribes to ${entry.subscribe.length}`);
  if (entry.require.length > 0) parts.push(`requires ${entry.require.length}`);
  return parts.slice(0, 3).join(" · ") || (typeNamed(entry.type)?.ensure.default ?? "unknown type");
}

/** @param {{lane: Lane, width: number, related: boolean}} props */
function LaneView({ lane, width, related }) {
  const x = (/** @type {number} */ at) => 7 + at * 10;
  const own =
    lane.own < 0
      ? x(lane.lines.length > 0 ? Math.max(...lane.lines.map((line) => line.lane)) + 1 : 0)
      : x(lane.own);
  return html`<svg class="lane" width=${width} height="42" viewBox=${`0 0 ${width} 42`} aria-hidden="true">
    ${lane.lines.map(
      (line) =>
        html`<path
          key=${line.lane}
          class=${`l${line.lane}`}
          d=${`M${x(line.lane)} ${line.above ? 0 : 21}V${line.below ? 42 : 21}`}
        />`,
    )}
    <circle
      class=${lane.own < 0 ? "alone" : `l${lane.own} ${related ? "on" : ""}`}
      cx=${Math.min(own, width - 5)}
      cy="21"
      r=${related ? 5 : 4.5}
    />
  </svg>`;
}

/** The types, to add one. */
export function Adder() {
  const disabled =
    !current.value || current.value.locked.value || current.value.broken.value !== null;
  return html`<div class="adder">
    <h3>
      Add a resource <kbd aria-hidden="true">A</kbd>
    </h3>
    <div>
      ${types.value.types.map(
        (type) =>
          html`<button
            key=${type.name}
            type="button"
            title=${type.about}
            aria-disabled=${disabled ? "true" : undefined}
            onClick=${() => !disabled && void addResource(type.name)}
          >
            <${Tile} type=${type.name} />
            <span>${type.name}</span>
          </button>`,
      )}
    </div>
  </div>`;
}
