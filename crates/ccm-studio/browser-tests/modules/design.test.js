// The parts of Design that need no browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Text } from "../../web/vendor/codemirror.js";
import { contextAt, meaning } from "../../web/design/context.js";
import { lanes, references } from "../../web/design/lanes.js";
import { arrange, choices } from "../../web/design/form.js";
import { fromText, moved } from "../../web/design/collections.js";
import { hasPlaceholder, toNumber } from "../../web/design/controls.js";
import { curves } from "../../web/pages/graph.js";

/** @param {Partial<OutlineEntry> & {name: string}} entry */
const entry = (entry) =>
  /** @type {any} */ ({ type: "file", require: [], subscribe: [], ...entry });

/** @param {Partial<Field> & {name: string}} field @returns {Field} */
const field = (field) => ({
  doc: "",
  aliases: [],
  shape: "text",
  phase: "parse",
  secret: false,
  required: false,
  conflicts: [],
  ...field,
});

test("resources that refer to each other share a lane, others get their own", () => {
  const outline = [
    entry({ name: "a", alias: "first" }),
    entry({ name: "alone" }),
    entry({ name: "b", require: ["file#first"] }),
    entry({ name: "c" }),
    entry({ name: "d", subscribe: ["file#c", "file#missing"] }),
    entry({ name: "e", require: ["file#b"] }),
  ];
  assert.deepEqual(references(outline), [[], [], [0], [], [3], [2]]);
  const { rows, width } = lanes(outline);
  assert.equal(width, 2);
  assert.deepEqual(
    rows.map((row) => row.own),
    [0, -1, 0, 1, 1, 0],
  );
  assert.deepEqual(rows[4]?.lines, [
    { lane: 0, above: true, below: true },
    { lane: 1, above: true, below: false },
  ]);
  assert.deepEqual(rows[0]?.lines, [{ lane: 0, above: false, below: true }]);
});

test("lanes of 5,000 resources take no time worth naming", () => {
  const outline = Array.from({ length: 5000 }, (_, index) =>
    entry({ name: `r${index}`, require: index > 10 ? [`file#r${index - 7}`] : [] }),
  );
  assert.equal(lanes(outline).rows.length, 5000);
});

const TYPES = {
  common: ["name", "ensure", "alias", "require", "control"],
  types: [
    {
      name: "file",
      about: "Files",
      ensure: { default: "present", words: ["present", "absent"] },
      providers: ["posix"],
      fields: [
        field({ name: "name" }),
        field({ name: "ensure" }),
        field({ name: "alias" }),
        field({ name: "require", shape: "list", items: { shape: "reference" } }),
        field({ name: "control", shape: "struct", fields: [field({ name: "if" })] }),
        field({ name: "content", group: "Content", conflicts: ["source"] }),
        field({ name: "source", group: "Content" }),
        field({ name: "mode", group: "Permissions", required: true }),
        field({ name: "force", shape: "boolean" }),
      ],
    },
  ],
};

/** @param {string} marked a text with `|` at the place */
function at(marked) {
  const place = marked.indexOf("|");
  return contextAt(Text.of((marked.slice(0, place) + marked.slice(place + 1)).split("\n")), place);
}

test("the place in a half-written text is known from indentation", () => {
  const top = "ccm:\n  resources:\n";
  /** @type {[string, string[], string, string][]} */
  const cases = [
    ["|", [], "key", ""],
    ["cc|", [], "key", "cc"],
    [`${top}    - fi|`, ["ccm", "resources"], "key", "fi"],
    [`${top}  - fi|`, ["ccm", "resources"], "key", "fi"],
    [
      `${top}    - file:\n        - /etc/motd:\n            con|`,
      ["ccm", "resources", "file", "/etc/motd"],
      "key",
      "con",
    ],
    [
      `${top}    - file:\n        - /etc/motd:\n            ensure: pre|`,
      ["ccm", "resources", "file", "/etc/motd"],
      "value",
      "ensure",
    ],
    [
      `${top}    - file:\n        - /etc/motd:\n            content: |\n`,
      ["ccm", "resources", "file", "/etc/motd"],
      "value",
      "content",
    ],
    [
      `${top}    - file:\n        - /etc/motd:\n            control:\n              i|`,
      ["ccm", "resources", "file", "/etc/motd", "control"],
      "key",
      "i",
    ],
    [
      `${top}  - file:\n    - /etc/motd:\n        mo|`,
      ["ccm", "resources", "file", "/etc/motd"],
      "key",
      "mo",
    ],
    [
      `${top}    - file:\n        - a:\n            require:\n              - fil|`,
      ["ccm", "resources", "file", "a", "require"],
      "key",
      "fil",
    ],
    [
      `${top}    - file:\n        - a:\n            require: ["fil|`,
      ["ccm", "resources", "file", "a"],
      "value",
      "require",
    ],
  ];
  for (const [text, path, where, key] of cases) {
    const found = at(text);
    assert.deepEqual([found.path, found.at, found.key], [path, where, key], text);
  }
});

test("a path of keys has a meaning in the table of types", () => {
  assert.equal(meaning([], TYPES).what, "top");
  assert.equal(meaning(["ccm", "resources"], TYPES).what, "types");
  assert.equal(meaning(["ccm", "resources", "file"], TYPES).what, "names");
  assert.equal(meaning(["ccm", "resources", "file", "/x"], TYPES).fields?.length, 9);
  assert.deepEqual(
    meaning(["ccm", "resources", "file", "/x", "control"], TYPES).fields?.map((one) => one.name),
    ["if"],
  );
  assert.equal(meaning(["data", "x"], TYPES).what, "none");
  assert.equal(meaning(["ccm", "resources", "file", "/x", "nothing"], TYPES).what, "none");
});

test("the form has required fields first, then the table's order, in groups", () => {
  const { groups, relations, rest } = arrange(TYPES.types[0]?.fields ?? [], TYPES.common);
  assert.deepEqual(
    groups.map((group) => [group.title, group.fields.map((one) => one.name)]),
    [
      ["Desired state", ["ensure", "alias"]],
      ["Permissions", ["mode"]],
      ["Content", ["content", "source"]],
      ["Properties", ["force"]],
    ],
  );
  assert.deepEqual(
    relations.map((one) => one.name),
    ["require"],
  );
  assert.deepEqual(
    rest.map((one) => one.name),
    ["control"],
  );
});

test("what excludes each other is a choice, unless both are there", () => {
  const fields = (TYPES.types[0]?.fields ?? []).filter((one) => one.group === "Content");
  const form = (/** @type {any} */ properties) => /** @type {any} */ ({ properties });
  assert.equal(choices(fields, form({ content: { own: "x", editable: true } })).length, 1);
  assert.equal(choices(fields, form({ content: { own: "x" }, source: { own: "y" } })).length, 2);
});

test("values keep their kind, and placeholders stay text", () => {
  assert.equal(toNumber("12"), 12);
  assert.equal(toNumber("{{ Data.n }}"), "{{ Data.n }}");
  assert.equal(fromText("0644"), "0644");
  assert.equal(fromText("1.5"), 1.5);
  assert.equal(fromText("true"), true);
  assert.ok(hasPlaceholder("a {{ b }}"));
  assert.deepEqual(moved([1, 2, 3], 0, 2), [2, 3, 1]);
});

test("lines of the graph go around boxes", () => {
  const box = (/** @type {number} */ id, /** @type {number} */ x, /** @type {number} */ y) => ({
    id,
    type: "file",
    name: String(id),
    x,
    y,
    width: 100,
    height: 40,
  });
  const edge = { from: 0, to: 2, kind: "require" };
  const straight = curves({
    nodes: [box(0, 0, 0), box(2, 400, 0)],
    edges: [edge],
    clusters: [],
    width: 500,
    height: 40,
  });
  assert.equal(straight[0], "M100 20C247.5 20 247.5 20 395 20");
  const around = curves({
    nodes: [box(0, 0, 0), box(1, 200, 0), box(2, 400, 0)],
    edges: [edge],
    clusters: [],
    width: 500,
    height: 40,
  });
  assert.notEqual(around[0], straight[0]);
  assert.deepEqual(curves({ nodes: [], edges: [edge], clusters: [], width: 0, height: 0 }), [""]);
});
