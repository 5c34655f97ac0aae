// Plan, Apply, History and undo in the browser; Data, Templates and Graph.
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { accessible, checked, studioTest, textBecomes } from "../lib/check.js";
import { large } from "../lib/fixtures.js";
import { closeBrowser } from "../lib/studio.js";

/** @typedef {import("playwright-core").Page} Page */

const place = await mkdtemp(join(tmpdir(), "ccm-studio-runs-"));
after(async () => {
  await closeBrowser();
  await rm(place, { recursive: true, force: true });
});

const MANIFEST = `data:
  # @require
  port: 8080
hierarchy:
  order: ["role:{{ lookup('facts.role') }}"]
overrides:
  role:web: {port: 80}
ccm:
  resources:
    - file:
        - defaults: {owner: root, group: root, mode: "0644"}
        - ${place}/app.conf:
            alias: config
            content: |
              port = {{ Data.port }}
        - ${place}/hidden:
            content: "<img src=x onerror=alert(1)>\\n"
            mode: "0600"
    - exec:
        - reload:
            command: echo reloading
            logoutput: true
            refresh_only: true
            subscribe: ["file#config"]
        - guarded:
            command: /bin/true
            unless: test -e /
`;

/** @param {Page} page */
async function plan(page) {
  await page.keyboard.press("ControlOrMeta+Enter");
  const dialog = page.getByRole("dialog", { name: "This plan runs commands" });
  await dialog.waitFor();
  await dialog.getByText("test -e /").waitFor();
  await dialog.getByRole("button", { name: "Run them and plan" }).click();
  await page.getByRole("heading", { name: "finished", level: 2 }).waitFor();
}

for (const theme of /** @type {const} */ (["light", "dark"])) {
  studioTest(
    `a plan, ${theme}`,
    { "web.yaml": MANIFEST },
    async ({ page }) => {
      await page.getByRole("option").first().waitFor();
      await checked(page);
      await plan(page);
      await accessible(page, "a plan");
      const row = page.getByRole("button", { name: `create file#${place}/app.conf` });
      await row.click();
      await page.getByText("port = 8080").waitFor();
      await accessible(page, "a plan with a row open");
      await page.getByRole("radio", { name: "create" }).click();
      assert.equal(await page.getByRole("listitem").count(), 2);
      // A change of the text makes it stale, and nothing was written.
      await page.evaluate(async () => {
        const { current } = await import(/** @type {any} */ ("/core/store.js"));
        current.value.dispatch({ changes: { from: 0, insert: "# another line\n" } });
      });
      await page.getByText("This plan is stale.").waitFor();
      await assert.rejects(readFile(join(place, "app.conf")));
    },
    { theme, bypassPolicy: true },
  );
}

studioTest(
  "applying is off unless it was asked for",
  { "web.yaml": MANIFEST },
  async ({ page, server }) => {
    await page.getByRole("option").first().waitFor();
    await checked(page);
    await plan(page);
    const answer = await page.evaluate(async () => {
      const { post } = await import(/** @type {any} */ ("/core/api.js"));
      return post("runs", { mode: "apply", plan: "1" }).catch(
        (/** @type {any} */ error) => `${error.status} ${error.code}`,
      );
    });
    assert.equal(answer, "403 apply_not_allowed");
    assert.equal(
      await page
        .locator("main")
        .getByRole("button", { name: "Apply" })
        .getAttribute("aria-disabled"),
      "true",
    );
    await assert.rejects(readFile(join(place, "app.conf")));
    assert.ok(!server.log.includes("Bearer"));
  },
  { noise: /403/ },
);

studioTest(
  "plan, apply, history, undo",
  { "web.yaml": MANIFEST },
  async ({ page }) => {
    await writeFile(join(place, "app.conf"), "port = 1\n");
    await page.getByRole("option").first().waitFor();
    await checked(page);
    await plan(page);
    await page.locator("main").getByRole("button", { name: "Apply" }).click();
    const dialog = page.getByRole("dialog", { name: /^Apply web.yaml/ });
    await dialog.getByText(`file#${place}/app.conf`).waitFor();
    await accessible(page, "the dialog of Apply");
    await dialog.getByRole("button", { name: "Apply" }).click();
    await page.getByRole("heading", { name: "Apply", level: 1 }).waitFor();
    await page.getByRole("heading", { name: "finished", level: 2 }).waitFor();
    assert.equal(await readFile(join(place, "app.conf"), "utf8"), "port = 8080\n");
    await accessible(page, "a run that was applied");
    await page.goto(`${new URL(page.url()).origin}/#/history?file=web.yaml`);
    await page.getByRole("link", { name: /^plan web\.yaml this Studio.* to change/ }).waitFor();
    await page
      .getByRole("link", { name: /this machine/ })
      .first()
      .click();
    await page.getByRole("button", { name: `change file#${place}/app.conf` }).click();
    await page.getByText("port = 1", { exact: true }).waitFor();
    await accessible(page, "a run of the history");
    // A command has reacted to the file, so all of it cannot be undone.
    const history = page.url();
    const undo = page.locator("main").getByRole("button", { name: "Undo", exact: true });
    const ask = page.getByRole("dialog", { name: "Undo this run?" });
    await undo.click();
    await accessible(page, "the dialog of Undo");
    await ask.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("heading", { name: "Undo", level: 1 }).waitFor();
    await page
      .getByText(/nothing was changed/)
      .first()
      .waitFor();
    await page.getByText(`exec#reload reacted to file#${place}/app.conf`).first().waitFor();
    assert.equal(await readFile(join(place, "app.conf"), "utf8"), "port = 8080\n");
    await page.goto(history);
    await undo.click();
    await ask.getByRole("checkbox", { name: /Restore the rest/ }).check();
    await ask.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("heading", { name: "Undo", level: 1 }).waitFor();
    await page.getByRole("heading", { name: /finished|failed/, level: 2 }).waitFor();
    assert.equal(await readFile(join(place, "app.conf"), "utf8"), "port = 1\n");
  },
  { args: ["--allow-apply"], bypassPolicy: true, theme: "dark" },
);

studioTest(
  "data for other facts, and the origin of keys",
  { "web.yaml": MANIFEST },
  async ({ page, server }) => {
    await page.getByRole("option").first().waitFor();
    await page.goto(`${server.origin}/#/data?file=web.yaml`);
    await page.getByRole("cell", { name: "8080" }).waitFor();
    await page.getByText("its placeholders are empty").waitFor();
    await page.getByRole("textbox", { name: "What if" }).fill("role=web");
    await page.keyboard.press("Enter");
    await page.getByText("matches", { exact: true }).waitFor();
    await page.getByRole("cell", { name: "80", exact: true }).waitFor();
    await page.getByRole("cell", { name: /replaces 8080 from data, line \d+/ }).waitFor();
    await accessible(page, "data with facts");
    await page.getByRole("tab", { name: /Rules/ }).click();
    await page.getByText("holds", { exact: true }).waitFor();
    await page.getByRole("tab", { name: "Facts" }).click();
    await page.getByRole("searchbox", { name: "Search facts" }).fill("hostname");
    await page
      .getByRole("option", { name: /hostname/ })
      .first()
      .waitFor();
    await accessible(page, "facts");
  },
  { bypassPolicy: true },
);

studioTest(
  "templates in three languages",
  { "web.yaml": MANIFEST },
  async ({ page, server }) => {
    await page.getByRole("option").first().waitFor();
    await page.goto(`${server.origin}/#/templates?file=web.yaml`);
    const text = page.getByRole("textbox", { name: "Template" });
    await text.fill("port {{ Data.port + 1 }}");
    await page.getByRole("group", { name: "Rendered text" }).getByText("port 8081").waitFor();
    await text.fill("port {{ Data.prot }}");
    await page.getByText("did you mean `Data.port`?").first().waitFor();
    await accessible(page, "a template with an error");
    await page.getByRole("radio", { name: "Jet" }).click();
    await text.fill("[[ data.port ]] <b>");
    await page.getByRole("group", { name: "Rendered text" }).getByText("8080 <b>").waitFor();
    await page.getByRole("radio", { name: "Go" }).click();
    await text.fill("{{ .data.port }} go");
    await page.getByRole("group", { name: "Rendered text" }).getByText("8080 go").waitFor();
  },
  { bypassPolicy: true },
);

studioTest(
  "the graph as picture and list",
  { "web.yaml": MANIFEST },
  async ({ page, server }) => {
    await page.getByRole("option").first().waitFor();
    await page.goto(`${server.origin}/#/graph?file=web.yaml`);
    await page.getByRole("img", { name: /Graph of 4 resources/ }).waitFor();
    await accessible(page, "the graph");
    await page.getByRole("radio", { name: "List" }).click();
    await page.getByRole("option", { name: /exec#reload.*subscribe/ }).waitFor();
    await accessible(page, "the graph as a list");
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "SVG" }).click(),
    ]);
    assert.equal(file.suggestedFilename(), "web.svg");
  },
  { bypassPolicy: true },
);

studioTest(
  "a plan of 5,000 resources keeps its rows few",
  { "large.yaml": large() },
  async ({ page }) => {
    await page.getByRole("option").first().waitFor();
    const begin = Date.now();
    await page.keyboard.press("ControlOrMeta+Enter");
    await page.getByRole("listitem").first().waitFor();
    const first = Date.now() - begin;
    await page.getByRole("heading", { name: "finished", level: 2 }).waitFor();
    console.log(`plan, large: first row after ${first} ms, done after ${Date.now() - begin} ms`);
    const elements = await page.evaluate(() => document.querySelectorAll("*").length);
    assert.ok(elements < 5000, `${elements} elements`);
    await textBecomes(page, (now) => now.length > 500_000, "the text stays");
  },
);
