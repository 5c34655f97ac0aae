// Proposals, copies of a resource, YAML in the form, hidden diffs, scaffolds, Stop.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { accessible, checked, choose, studioTest, textBecomes } from "../lib/check.js";
import { WEB } from "../lib/fixtures.js";
import { closeBrowser } from "../lib/studio.js";

/** @typedef {import("playwright-core").Page} Page */

const place = await mkdtemp(join(tmpdir(), "ccm-studio-features-"));
after(async () => {
  await closeBrowser();
  await rm(place, { recursive: true, force: true });
});

const FILE = "file#/tmp/ccm-studio-test/app.conf";

/** @param {Page} page */
const clipboard = (page) => page.evaluate(() => navigator.clipboard.readText());

studioTest(
  "the form proposes users, groups, facts and data",
  { "web.yaml": WEB },
  async ({ page }) => {
    await choose(page, FILE);
    const owner = page.getByRole("combobox", { name: "owner" });
    await owner.fill("nobo");
    await page.getByRole("option", { name: "nobody" }).waitFor();
    await owner.press("ArrowDown");
    await owner.press("Enter");
    await textBecomes(page, (now) => now.includes("owner: nobody"), "the user is written");
    const content = page.getByRole("textbox", { name: "content" });
    await content.fill("listen = {{ ");
    await content.pressSequentially("Data.po");
    await page.getByRole("option", { name: /Data\.port.*8080/ }).waitFor();
    await accessible(page, "proposals in a text");
    await content.press("Enter");
    assert.equal(await content.inputValue(), "listen = {{ Data.port");
    await content.pressSequentially(" }} {{ hostna");
    await page.getByRole("option", { name: /Facts\.host\.info\.hostname/ }).waitFor();
    await content.press("Escape");
    await page
      .getByRole("option", { name: /Facts\.host\.info\.hostname/ })
      .waitFor({ state: "detached" });
    assert.equal(
      await content.inputValue(),
      "listen = {{ Data.port }} {{ hostna",
      "Escape closes the proposals and nothing else",
    );
    await page.locator("details.more summary", { hasText: "control" }).click();
    const condition = page.getByRole("textbox", { name: "if", exact: true });
    await condition.pressSequentially("Data.p");
    await page.getByRole("option", { name: /Data\.port/ }).waitFor();
  },
  { bypassPolicy: true },
);

studioTest("the text proposes the same", { "web.yaml": WEB }, async ({ page }) => {
  await page.getByRole("option").first().waitFor();
  await checked(page);
  const type = async (/** @type {string} */ behind, /** @type {string} */ text) => {
    await page.evaluate(
      async ([after]) => {
        const { current } = await import(/** @type {any} */ ("/core/store.js"));
        const doc = current.value;
        const at = doc.text().indexOf(after) + /** @type {string} */ (after).length;
        doc.dispatch({ selection: { anchor: at } });
        doc.view.focus();
      },
      [behind],
    );
    await page.keyboard.type(text);
  };
  await type("listen = {{ Data.port }}", " {{ Data.p");
  await page.locator(".cm-tooltip-autocomplete li", { hasText: "Data.port" }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.type("ort }}");
  await type('mode: "0640"', "\nowner: nobo");
  await page.locator(".cm-tooltip-autocomplete li", { hasText: "nobody" }).waitFor();
});

studioTest(
  "a resource is copied as YAML, command and request",
  { "web.yaml": WEB.replace('"0640"', '"0644"') },
  async ({ page }) => {
    await choose(page, FILE);
    await checked(page);
    await page.getByRole("button", { name: "Copy as YAML, command or request" }).click();
    const dialog = page.getByRole("dialog", { name: `Copy ${FILE}` });
    await dialog.waitFor();
    await accessible(page, "a resource in all its forms");
    await dialog.getByRole("button", { name: "Copy as Command" }).click();
    await page.waitForFunction(async () =>
      (await navigator.clipboard.readText()).startsWith(
        "ccm ensure file /tmp/ccm-studio-test/app.conf present ",
      ),
    );
    assert.match(await clipboard(page), /--content 'listen = 8080\n'.*--mode 0644/s);
    await dialog.getByRole("button", { name: "Copy as API request" }).click();
    await page.waitForFunction(async () => (await navigator.clipboard.readText()).startsWith("{"));
    const request = JSON.parse(await clipboard(page));
    assert.deepEqual(
      [request.protocol, request.type, request.properties.alias],
      ["io.choria.ccm.v1.resource.ensure.request", "file", "config"],
    );
    await dialog.getByRole("button", { name: "Close" }).click();
    // The palette has them too.
    await page.keyboard.press("ControlOrMeta+k");
    await page.keyboard.type("copy resource yaml");
    await page.keyboard.press("Enter");
    await page.waitForFunction(async () =>
      (await navigator.clipboard.readText()).startsWith(
        "/tmp/ccm-studio-test/app.conf:\n    alias: config\n",
      ),
    );
  },
  { bypassPolicy: true, theme: "dark" },
);

studioTest(
  "a property is edited as YAML in its place",
  {
    "web.yaml": WEB.replace(
      "            refresh_only: true\n",
      "            refresh_only: true\n            environment:\n" +
        "              # kept\n              - A=1\n              - B=2\n",
    ),
  },
  async ({ page }) => {
    await choose(page, "exec#warm the cache");
    await page
      .locator("[data-field=health_checks]")
      .or(page.locator("details.more", { hasText: "health_checks" }))
      .first()
      .waitFor();
    await page.locator("details.more summary", { hasText: "health_checks" }).click();
    const field = page.locator("[data-field=health_checks]");
    await field.getByRole("button", { name: "Edit as YAML" }).click();
    const box = page.getByRole("textbox", { name: "health_checks as YAML" });
    await box.fill("- command: [/bin/true\n");
    await field.getByRole("button", { name: "Take over" }).click();
    await field.locator(".err", { hasText: /^Line \d+: / }).waitFor();
    await accessible(page, "a value that is not YAML");
    await box.fill("- command: /bin/true\n  tries: 2\n");
    await box.press("ControlOrMeta+Enter");
    await textBecomes(
      page,
      (now) => now.includes("health_checks:") && now.includes("tries: 2") && now.includes("# kept"),
      "the checks are written",
    );
    await box.waitFor({ state: "detached" });
    // What is written is what is edited again.
    await field.getByRole("button", { name: "Edit as YAML" }).click();
    assert.equal(
      await page.getByRole("textbox", { name: "health_checks as YAML" }).inputValue(),
      "- command: /bin/true\n  tries: 2\n",
    );
    await page.getByRole("textbox", { name: "health_checks as YAML" }).press("Escape");
    await page.keyboard.press("ControlOrMeta+z");
    await textBecomes(page, (now) => !now.includes("health_checks"), "one step of undo");
  },
  { bypassPolicy: true },
);

studioTest(
  "an anchor says how many places change with it",
  {
    "web.yaml": `ccm:
  resources:
    - file:
        - /tmp/ccm-anchor-a: {mode: &mode "0600", owner: root, group: root, content: a}
        - /tmp/ccm-anchor-b: {mode: *mode, owner: root, group: root, content: b}
`,
  },
  async ({ page }) => {
    await choose(page, "file#/tmp/ccm-anchor-a");
    await page.locator("[data-field=mode]").getByText("changes 1 other place too").waitFor();
    const mode = page.getByRole("textbox", { name: "mode" });
    await mode.fill("0640");
    await mode.press("Enter");
    await textBecomes(
      page,
      (now) => now.includes('&mode "0640"') && now.includes("*mode"),
      "the anchor stays",
    );
    await choose(page, "file#/tmp/ccm-anchor-b");
    await page.locator("[data-field=mode]").getByText("it is an alias").waitFor();
  },
);

studioTest(
  "the outline shows and filters what the last plan said",
  {
    "web.yaml": `ccm:
  resources:
    - file:
        - defaults: {owner: root, group: root, mode: "0644"}
        - ${place}/new: {content: "one\\n"}
        - ${place}: {ensure: directory, mode: "0700"}
`,
  },
  async ({ page }) => {
    await page.getByRole("option").first().waitFor();
    await checked(page);
    await page.keyboard.press("ControlOrMeta+Enter");
    await page.getByRole("heading", { name: "finished", level: 2 }).waitFor();
    await page.evaluate(() => (location.hash = "#/design?file=web.yaml"));
    await page.getByRole("option", { name: /new.*create in the last plan/ }).waitFor();
    await page.getByRole("option", { name: /stable in the last plan/ }).waitFor();
    await page.getByRole("button", { name: "Filter by type and state" }).click();
    await page.getByRole("combobox", { name: "State" }).selectOption("create");
    await page
      .getByRole("option", { name: /stable in the last plan/ })
      .waitFor({ state: "detached" });
    assert.equal(await page.locator("#outline").getByRole("option").count(), 1);
  },
);

studioTest(
  "the diff of a hidden file is folded until it is asked for",
  {
    "web.yaml": `ccm:
  resources:
    - file:
        - defaults: {owner: root, group: root, mode: "0600"}
        - ${place}/first: {content: "one\\ntwo\\nthree\\n"}
        - ${place}/second: {content: "other words\\n"}
`,
  },
  async ({ page }) => {
    await page.getByRole("option").first().waitFor();
    await checked(page);
    await page.keyboard.press("ControlOrMeta+Enter");
    await page.getByRole("heading", { name: "finished", level: 2 }).waitFor();
    for (const name of ["first", "second"]) {
      await page.getByRole("button", { name: `create file#${place}/${name}` }).click();
    }
    await page.getByText("hidden, 3 lines").waitFor();
    await page.getByText("hidden, 1 line", { exact: true }).waitFor();
    await accessible(page, "hidden diffs");
    await page.getByRole("button", { name: `Show the difference of file#${place}/first` }).click();
    await page.locator(".dl", { hasText: "three" }).waitFor();
    await page.getByText("hidden, 1 line", { exact: true }).waitFor();
    assert.equal(await page.getByText("other words").count(), 0);
    await page.getByRole("button", { name: `Show the difference of file#${place}/second` }).click();
    await page.locator(".dl", { hasText: "other words" }).waitFor();
  },
  { bypassPolicy: true, theme: "dark" },
);

studioTest(
  "templates come from files, and scaffolds list what they would make",
  {
    "web.yaml": WEB,
    "templates/app.jet": "listen = [[ data.port ]]\n",
    "scaffold/a.jet": '[[ write("b.conf", "port " + render("_partials/p.jet", data)) ]]made\n',
    "scaffold/_partials/p.jet": "[[ .port ]]",
  },
  async ({ page, server }) => {
    await page.getByRole("option").first().waitFor();
    await page.goto(`${server.origin}/#/templates?file=web.yaml`);
    await page.getByRole("radio", { name: "Jet" }).click();
    await page
      .getByRole("radiogroup", { name: "Template from" })
      .getByRole("radio", { name: "a file" })
      .click();
    await page.getByRole("combobox", { name: "Template file" }).selectOption("templates/app.jet");
    const result = page.getByRole("group", { name: "Rendered text" });
    await result.getByText("listen = 8080").waitFor();
    await page.getByRole("combobox", { name: "Template file" }).selectOption("scaffold/a.jet");
    await result.getByText("made").waitFor();
    await page.getByRole("heading", { name: "It would make 1 file" }).waitFor();
    await page.getByRole("button", { name: /^b\.conf/ }).click();
    await page.getByRole("group", { name: "Content of b.conf" }).getByText("port 8080").waitFor();
    await accessible(page, "what a template writes");
    await page.getByRole("radio", { name: "a scaffold" }).click();
    await page.getByRole("combobox", { name: "Directory of templates" }).fill("scaffold");
    await page.getByRole("heading", { name: "It would make 2 files" }).waitFor();
    await page.getByRole("button", { name: /^a\.jet/ }).waitFor();
    await accessible(page, "what a scaffold makes");
    await assert.rejects(server.read("scaffold/b.conf"), "nothing is written");
  },
  { bypassPolicy: true, theme: "dark" },
);

studioTest(
  "listing the files can be stopped, and a file opens without the list",
  { "web.yaml": WEB },
  async ({ page, server }) => {
    await choose(page, FILE);
    await page.route("**/api/v1/files", () => {});
    await page.goto(`${server.origin}/?slow#/design`);
    const loading = page.getByRole("status", { name: "Loading the files" });
    await loading.getByText("Loading the files …").waitFor();
    await accessible(page, "a list of files that takes long");
    await loading.getByRole("button", { name: "Stop" }).click();
    const again = page.getByRole("button", { name: "Try again" });
    await again.waitFor();
    await page.evaluate(() => (location.hash = "#/design?file=web.yaml"));
    await choose(page, FILE);
    await page.evaluate(() => (location.hash = "#/design"));
    await page.unroute("**/api/v1/files");
    await again.click();
    await page.getByRole("link", { name: /^web\.yaml/ }).waitFor();
    await choose(page, FILE);
  },
  { bypassPolicy: true },
);

studioTest(
  "what takes longer than two seconds can be stopped",
  { "web.yaml": WEB },
  async ({ page }) => {
    await page.getByRole("option").first().waitFor();
    await checked(page);
    for (const [name, label] of /** @type {const} */ ([
      ["data", "Resolving the data"],
      ["graph", "Drawing the graph"],
    ])) {
      const slow = `**/api/v1/${name}`;
      await page.route(slow, () => {});
      await page.evaluate((id) => (location.hash = `#/${id}?file=web.yaml`), name);
      const loading = page.getByRole("status", { name: label });
      await loading.getByText(`${label} …`).waitFor();
      if (name === "data") await accessible(page, "a slow answer");
      await loading.getByRole("button", { name: "Stop" }).click();
      await page.getByText("Stopped").waitFor();
      await page.unroute(slow);
      await page.getByRole("button", { name: "Try again" }).click();
      await (
        name === "data"
          ? page.getByRole("cell", { name: "8080" })
          : page.getByRole("img", { name: /^Graph of/ })
      ).waitFor();
    }
  },
  { bypassPolicy: true },
);
