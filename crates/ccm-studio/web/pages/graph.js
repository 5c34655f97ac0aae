// The page Graph: resources and their references, as a picture and as a list.
// The layout is the engine's.
import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { post } from "../core/api.js";
import { useAnswerAbout } from "../core/asked.js";
import { download } from "../core/actions.js";
import { register } from "../core/commands.js";
import { OUTCOMES } from "../core/runs.js";
import { place } from "../core/router.js";
import { current, outcomes, selectNamed, studio } from "../core/store.js";
import { plural } from "../core/words.js";
import { Page } from "../frame/page.js";
import { PATHS, Tile } from "../ui/icons.js";
import { Banner, Button, Empty, Loading, Pill, Segmented } from "../ui/parts.js";
import { report } from "../ui/toast.js";
import { VirtualList } from "../ui/virtual.js";

/** @typedef {Api.GraphNode} Node */
/** @typedef {Pick<Api.GraphDocument, "nodes" | "edges" | "clusters" | "width" | "height">} Layout */

/** The room around the picture. */
const AROUND = 48;
/** A picture of more than this shows the neighbourhood of what is selected. */
const mostNodes = () => studio.value?.limits.graph_nodes ?? 0;
const SCALES = [0.25, 0.4, 0.55, 0.7, 0.85, 1, 1.25, 1.5, 2];

/** @param {{type: string, name: string}} node */
const nameOf = (node) => `${node.type}#${node.name}`;

export function Graph() {
  const document = current.value;
  const [view, setView] = useState("picture");
  const [scale, setScale] = useState(1);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const asked = useAnswerAbout("graph", document?.isManifest ? document : null);
  const { answer: graph, problem } = asked;
  const zoom = (/** @type {1 | -1} */ step) =>
    setScale(
      (now) => SCALES[Math.max(0, Math.min(SCALES.length - 1, SCALES.indexOf(now) + step))] ?? 1,
    );
  const chosen = place.value.resource;
  const shown = useMemo(() => (graph ? part(graph, chosen, mostNodes()) : null), [graph, chosen]);
  const lines = useMemo(() => (shown ? curves(shown) : []), [shown]);
  const fit = () => {
    const room = box.current;
    if (!room || !shown) return;
    const ratio = Math.min(
      room.clientWidth / (shown.width + 2 * AROUND),
      room.clientHeight / (shown.height + 2 * AROUND),
    );
    setScale(SCALES.findLast((one) => one <= ratio) ?? 0.25);
  };
  const fitting = useRef(fit);
  fitting.current = fit;
  useEffect(
    () =>
      register([
        { id: "zoom-in", title: "Zoom in", keys: "+", group: "Graph", run: () => zoom(1) },
        { id: "zoom-out", title: "Zoom out", keys: "-", group: "Graph", run: () => zoom(-1) },
        {
          id: "zoom-fit",
          title: "Fit the picture",
          keys: "F",
          group: "Graph",
          run: () => fitting.current(),
        },
        { id: "zoom-one", title: "Actual size", keys: "0", group: "Graph", run: () => setScale(1) },
      ]),
    [],
  );
  if (!document?.isManifest) {
    return html`<${Page} title="Graph" about="Choose a manifest in Design">
      <${Empty} icon="graph" title="No manifest is open" />
    <//>`;
  }
  return html`<${Page}
    title="Graph"
    about=${
      graph
        ? `${plural(graph.nodes.length, "resource")}, ${plural(graph.edges.length, "reference")}. ` +
          "They run from left to right; arrows show who waits for whom, and whose change wakes whom."
        : "Resources and their references"
    }
    actions=${html`
      <${Segmented}
        label="View"
        value=${view}
        options=${[
          { value: "picture", label: "Picture" },
          { value: "list", label: "List" },
        ]}
        onChange=${setView}
      />
      ${
        view === "picture" &&
        html`
          <${Button} icon="minus" label="Zoom out" keys="-" onClick=${() => zoom(-1)} />
          <span class="muted">${Math.round(scale * 100)} %</span>
          <${Button} icon="plus" label="Zoom in" keys="+" onClick=${() => zoom(1)} />
          <${Button} title="Fit (F)" onClick=${fit}>
            Fit
          <//>
        `
      }
      <${Button} icon="dl" onClick=${() => void save("svg")}>
        SVG
      <//>
      <${Button} icon="dl" onClick=${() => void save("dot")}>
        DOT
      <//>
    `}
  >
    ${
      problem &&
      html`<${Banner} kind="bad">
        <b>The graph cannot be drawn:</b> ${problem.message}
      <//>`
    }
    ${!graph && !problem && html`<${Loading} asked=${asked} label="Drawing the graph" />`}
    ${
      graph &&
      graph.nodes.length > mostNodes() &&
      view === "picture" &&
      html`<${Banner} kind="info">
        The picture shows what is within two steps of${" "}
        <b class="bidi">${chosen || "the first resource"}</b>. The list has all${" "}
        ${graph.nodes.length.toLocaleString("en")}.
      <//>`
    }
    ${
      shown &&
      view === "picture" &&
      html`
        <div
          class="graphbox"
          ref=${box}
          tabindex="0"
          role="group"
          aria-label="Picture of the graph; arrows move it"
        >
          <svg
            role="img"
            aria-label=${`Graph of ${plural(shown.nodes.length, "resource")}. The list has the same.`}
            width=${(shown.width + 2 * AROUND) * scale}
            height=${(shown.height + 2 * AROUND) * scale}
            viewBox=${`${-AROUND} ${-AROUND} ${shown.width + 2 * AROUND} ${shown.height + 2 * AROUND}`}
          >
            ${shown.clusters.map(
              (cluster) =>
                html`<g key=${`c${cluster.id}`} class="cluster">
                  <rect
                    x=${cluster.x}
                    y=${cluster.y}
                    width=${cluster.width}
                    height=${cluster.height}
                    rx="8"
                  />
                  <text x=${cluster.x + 8} y=${cluster.y + 14}>
                    ${cluster.manifest}
                  </text>
                </g>`,
            )}
            <defs>
              ${["require", "subscribe", "apply"].map(
                (kind) =>
                  html`<marker
                    key=${kind}
                    id=${`end-${kind}`}
                    class=${kind}
                    viewBox="0 0 8 8"
                    refX="6"
                    refY="4"
                    markerWidth="8"
                    markerHeight="8"
                    markerUnits="userSpaceOnUse"
                    orient="auto"
                  >
                    <path d="M0 0.5L8 4L0 7.5z" />
                  </marker>`,
              )}
            </defs>
            ${shown.edges.map(
              (edge, index) =>
                html`
                  <path
                    key=${index}
                    class=${`edge ${edge.kind}`}
                    d=${lines[index]}
                    marker-end=${`url(#end-${edge.kind})`}
                  />
                  ${edge.kind === "apply" && html`<path class="edge core" d=${lines[index]} />`}
                `,
            )}
            ${shown.nodes.map(
              (node) =>
                html`<${Box} key=${node.id} node=${node} chosen=${nameOf(node) === chosen} />`,
            )}
          </svg>
        </div>
        <p class="legend muted">
          <span class="k require"></span>require <span class="k subscribe"></span>subscribe${" "}
          <span class="k apply"></span>child manifest
        </p>
      `
    }
    ${graph && view === "list" && html`<${List} graph=${graph} chosen=${chosen} />`}
  <//>`;
}

/**
 * Lines from the right of one box to the left of another, around the boxes between them.
 * @param {Layout} graph
 * @returns {string[]}
 */
export function curves(graph) {
  const byId = new Map(graph.nodes.map((node) => [node.id, node]));
  return graph.edges.map((edge) => {
    const [from, to] = [byId.get(edge.from), byId.get(edge.to)];
    if (!from || !to) return "";
    const [x1, y1, x2, y2] = [
      from.x + from.width,
      from.y + from.height / 2,
      to.x - 5,
      to.y + to.height / 2,
    ];
    const bend = Math.max(18, Math.abs(x2 - x1) / 2);
    const between = graph.nodes.filter(
      (node) => node !== from && node !== to && node.x < x2 && node.x + node.width > x1,
    );
    const free = (/** @type {number} */ up) =>
      !between.some((node) =>
        [0.2, 0.35, 0.5, 0.65, 0.8].some((at) => {
          const near = 1 - at;
          const x =
            near ** 3 * x1 +
            3 * near ** 2 * at * (x1 + bend) +
            3 * near * at ** 2 * (x2 - bend) +
            at ** 3 * x2;
          const y =
            near ** 3 * y1 +
            3 * near ** 2 * at * (y1 - up) +
            3 * near * at ** 2 * (y2 - up) +
            at ** 3 * y2;
          return (
            x > node.x - 4 &&
            x < node.x + node.width + 4 &&
            y > node.y - 4 &&
            y < node.y + node.height + 4
          );
        }),
      );
    // Whichever way leads around, the least first.
    const up = [0, 50, -50, 100, -100, 160, -160].find(free) ?? 0;
    return `M${x1} ${y1}C${x1 + bend} ${y1 - up} ${x2 - bend} ${y2 - up} ${x2} ${y2}`;
  });
}

/** @param {{node: Node, chosen: boolean}} props */
function Box({ node, chosen }) {
  const outcome = outcomes.value.get(nameOf(node));
  const about = outcome ? OUTCOMES[outcome] : undefined;
  const room = Math.max(6, Math.floor((node.width - 24) / 7));
  const name = node.name.length > room ? `…${node.name.slice(-(room - 1))}` : node.name;
  return html`<g
    class=${`node ${chosen ? "sel" : ""} ${about?.kind ?? ""}`}
    transform=${`translate(${node.x} ${node.y})`}
    onClick=${() => selectNamed(nameOf(node))}
    onDblClick=${() => selectNamed(nameOf(node), { page: "design" })}
  >
    <title>
      ${nameOf(node)}
      ${about ? `, ${about.word}` : ""}
      ${node.note ? `: ${node.note}` : ""}
    </title>
    <rect width=${node.width} height=${node.height} rx="7" />
    <g class=${`ic t-${node.type}`} transform="translate(9 6) scale(.5)">
      <path d=${PATHS[node.type] ?? PATHS["file"]} />
    </g>
    <text x="25" y="16" class="t">
      ${node.type}
      ${about ? ` · ${about.word}` : ""}
    </text>
    <text x="10" y=${Math.max(30, node.height - 9)} class="n">
      ${name}
    </text>
    ${
      about &&
      html`<g class="oc-glyph" transform=${`translate(${node.width - 20} 5) scale(.55)`}>
        <path d=${PATHS[about.glyph] ?? ""} />
      </g>`
    }
  </g>`;
}

/**
 * All of a small graph; of a large one the neighbourhood of what is chosen.
 * @param {Layout} graph
 * @param {string} chosen
 * @param {number} most
 * @returns {Layout}
 */
export function part(graph, chosen, most) {
  if (graph.nodes.length <= most) return graph;
  const start = graph.nodes.find((node) => nameOf(node) === chosen) ?? graph.nodes[0];
  if (!start) return graph;
  let near = new Set([start.id]);
  for (let step = 0; step < 2; step += 1) {
    const next = new Set(near);
    for (const edge of graph.edges) {
      if (near.has(edge.from)) next.add(edge.to);
      if (near.has(edge.to)) next.add(edge.from);
      if (next.size > most) break;
    }
    near = next;
  }
  const nodes = graph.nodes.filter((node) => near.has(node.id)).slice(0, most);
  const ids = new Set(nodes.map((node) => node.id));
  const edges = graph.edges.filter((edge) => ids.has(edge.from) && ids.has(edge.to));
  // Columns far apart move together; rows are packed anew.
  const columns = [...new Set(nodes.map((node) => node.x))].sort((a, b) => a - b);
  const wide = Math.max(...nodes.map((node) => node.width)) + 60;
  /** @type {Map<number, number>} */
  const filled = new Map();
  const placed = nodes.map((node) => {
    const column = columns.indexOf(node.x);
    const row = filled.get(column) ?? 0;
    filled.set(column, row + 1);
    return { ...node, x: column * wide, y: row * (node.height + 16) };
  });
  return {
    nodes: placed,
    edges,
    clusters: [],
    width: columns.length * wide,
    height: Math.max(...placed.map((node) => node.y + node.height)),
  };
}

/** @param {{graph: Layout, chosen: string}} props */
function List({ graph, chosen }) {
  const items = useMemo(() => {
    const byId = new Map(graph.nodes.map((node) => [node.id, node]));
    /** @type {Map<number, string[]>} */
    const uses = new Map();
    for (const edge of graph.edges) {
      const from = byId.get(edge.from);
      if (from) uses.set(edge.to, [...(uses.get(edge.to) ?? []), `${edge.kind} ${nameOf(from)}`]);
    }
    return graph.nodes.map((node) => ({ node, uses: uses.get(node.id) ?? [] }));
  }, [graph]);
  const at = items.findIndex((item) => nameOf(item.node) === chosen);
  const show = (/** @type {number} */ index, /** @type {{page?: string}} */ options = {}) => {
    const node = items[index]?.node;
    if (node) selectNamed(nameOf(node), options);
  };
  return html`<div class="card graphlist">
    <${VirtualList}
      id="graph-list"
      label="Resources and their references"
      items=${items}
      height=${() => 42}
      selected=${at}
      onSelect=${(/** @type {number} */ index) => show(index)}
      onOpen=${(/** @type {number} */ index) => show(index, { page: "design" })}
      row=${(/** @type {{node: Node, uses: string[]}} */ item, /** @type {number} */ index) => {
        const outcome = outcomes.value.get(nameOf(item.node));
        const about = outcome ? OUTCOMES[outcome] : undefined;
        return html`<div
          class="grow2"
          role="option"
          id=${`graph-list-${index}`}
          aria-selected=${index === at ? "true" : "false"}
          aria-setsize=${items.length}
          aria-posinset=${index + 1}
          onClick=${() => selectNamed(nameOf(item.node))}
        >
          <${Tile} type=${item.node.type} />
          <div class="tx2">
            <span class="mono bidi">${nameOf(item.node)}</span>
            <span class="muted bidi">${item.uses.join(", ") || "refers to nothing"}</span>
          </div>
          ${
            about &&
            html`<${Pill} kind=${about.kind} icon=${about.glyph}>
              ${about.word}
            <//>`
          }
        </div>`;
      }}
    />
  </div>`;
}

/** @param {"svg" | "dot"} format */
async function save(format) {
  const document = current.peek();
  if (!document) return;
  try {
    const answer = await post("graph", {
      path: document.path.peek(),
      text: document.text(),
      format,
    });
    // In another format than JSON it is a text.
    const found = /** @type {Record<string, string>} */ (/** @type {unknown} */ (answer));
    download(
      `${document.path.peek().replace(/\.\w+$/, "")}.${format}`,
      found[format] ?? "",
      format === "svg" ? "image/svg+xml" : "text/vnd.graphviz",
    );
  } catch (error) {
    report(error, "export the graph");
  }
}
