// Modules that need no browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Text } from "../../web/vendor/codemirror.js";
import { EventParser, encodePath } from "../../web/core/api.js";
import { compareTexts, differing, parseDiff } from "../../web/core/diff.js";
import { lineColumn, offset, span, toChanges } from "../../web/core/positions.js";
import { format, parse } from "../../web/core/router.js";
import { duration, matches, plural, rank, when } from "../../web/core/words.js";
import { search } from "../../web/ui/virtual.js";
import { flatten } from "../../web/ui/tree.js";
import { matching, paths, typedName } from "../../web/core/names.js";

test("an event stream is cut into events wherever the chunks end", () => {
  const text =
    ': hello\n\nid: 7\nevent: event\ndata: {"a":\ndata: 1}\n\nevent: files\ndata: {}\n\n';
  for (let size = 1; size <= text.length; size += 1) {
    /** @type {any[]} */
    const got = [];
    const parser = new EventParser((event) => got.push(event));
    for (let at = 0; at < text.length; at += size) parser.add(text.slice(at, at + size));
    assert.deepEqual(got, [
      { id: "7", event: "event", data: { a: 1 } },
      { id: "7", event: "files", data: {} },
    ]);
  }
});

test("paths become parts of addresses", () => {
  assert.equal(encodePath("site/a b#?.yaml"), "site/a%20b%23%3F.yaml");
});

test("addresses hold a page, names, and come back", () => {
  const place = {
    page: "design",
    file: "site/a&b.yaml",
    resource: "file#/etc/a b",
    rest: { n: "2" },
  };
  assert.deepEqual(parse(format(place)), place);
  assert.equal(format({ page: "plan" }), "#/plan");
  assert.deepEqual(parse("#/"), { page: "design", file: "", resource: "", rest: {} });
  assert.deepEqual(parse("#nonsense"), { page: "design", file: "", resource: "", rest: {} });
});

test("places of the wire become offsets, and back", () => {
  const text = Text.of(["ä𝄞x", "", "last"]);
  assert.equal(offset(text, 0, 3), 3);
  assert.equal(offset(text, 0, 99), 4);
  assert.equal(offset(text, 9, 0), text.length);
  assert.deepEqual(span(text, [0, 1, 2, 2]), { from: 1, to: 8 });
  assert.deepEqual(lineColumn(text, 6), [2, 0]);
  assert.deepEqual(toChanges(text, [{ range: [2, 0, 2, 4], text: "new" }]), [
    { from: 6, to: 10, insert: "new" },
  ]);
});

test("a unified diff becomes rows with numbers and marks", () => {
  const diff = parseDiff(
    "--- a\n+++ b\n@@ -1,3 +1,3 @@\n same\n-listen = 8080\n+listen = 80\n--- not a header\n",
  );
  assert.deepEqual([diff.from, diff.to, diff.added, diff.removed], ["a", "b", 1, 2]);
  const rows = diff.rows.map((row) => [row.kind, row.old, row.new, row.text]);
  assert.deepEqual(rows, [
    ["hunk", undefined, undefined, "@@ -1,3 +1,3 @@"],
    ["same", 1, 1, "same"],
    ["removed", 2, undefined, "listen = 8080"],
    ["added", undefined, 2, "listen = 80"],
    ["removed", 3, undefined, "-- not a header"],
  ]);
  assert.deepEqual(differing("listen = 8080", "listen = 80"), [[[9, 13]], [[9, 11]]]);
});

test("two texts are compared by lines", () => {
  const diff = compareTexts("a\nb\nc\nd\ne\n", "a\nb\nX\nd\nY\ne\n");
  assert.deepEqual(
    diff.rows.filter((row) => row.kind !== "same").map((row) => `${row.kind} ${row.text}`),
    ["removed c", "added X", "added Y"],
  );
  assert.equal(compareTexts("a\n", "a\n").rows.filter((row) => row.kind !== "same").length, 0);
});

test("words", () => {
  assert.equal(plural(1, "error"), "1 error");
  assert.equal(plural(5000, "resource"), "5,000 resources");
  assert.equal(rank(3, 5), "third of five");
  assert.equal(rank(31, 5000), "31 of 5,000");
  assert.equal(duration(2870), "3 ms");
  assert.equal(duration(90_000_000), "1 min 30 s");
  assert.match(
    when(new Date(2026, 0, 1, 14, 2), new Date(2026, 0, 1, 14, 5)),
    /^14:02, 3 minutes ago$/,
  );
  assert.ok(matches("file#/etc/motd", "etc file"));
  assert.ok(!matches("file#/etc/motd", "etc package"));
});

test("the row at a height is found", () => {
  const tops = [0, 29, 71, 113];
  assert.deepEqual(
    [-5, 0, 28, 29, 112, 500].map((at) => search(tops, at)),
    [0, 0, 0, 1, 2, 3],
  );
});

test("nested values become rows, and a filter leaves their branches", () => {
  const value = { host: { name: "web", cpus: [1, 2] }, role: "x" };
  assert.deepEqual(
    flatten(value, () => true).map((row) => row.path),
    ["host", "host.name", "host.cpus", "host.cpus[0]", "host.cpus[1]", "role"],
  );
  assert.deepEqual(
    flatten(value, () => false).map((row) => row.path),
    ["host", "role"],
  );
  assert.deepEqual(
    flatten(
      value,
      () => true,
      (path) => path.includes("name"),
    ).map((row) => row.path),
    ["host", "host.name"],
  );
});

test("names of facts and data are proposed by their paths", () => {
  const names = paths({ port: 80, app: { name: "shop", "a b": 1 }, list: [1, 2] }, "Data");
  assert.deepEqual(
    names.map((name) => name.value),
    ["Data.port", "Data.app.name", "Data.list"],
  );
  assert.equal(names[1]?.detail, '"shop"');
  assert.deepEqual(
    matching(names, "APP").map((name) => name.value),
    ["Data.app.name"],
  );
  assert.equal(matching(names, "data.p")[0]?.value, "Data.port");
});

test("a name is completed in placeholders and expressions alone", () => {
  assert.equal(typedName("port {{ Data.po"), "Data.po");
  assert.equal(typedName("port {{ upper(Fac"), "Fac");
  assert.equal(typedName("port {{ "), "");
  assert.equal(typedName("port {{ Data.port }} Da"), null);
  assert.equal(typedName("Facts.ro"), null);
  assert.equal(typedName("Facts.ro", true), "Facts.ro");
});
