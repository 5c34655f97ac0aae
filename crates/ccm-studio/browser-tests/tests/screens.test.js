// How the pages look: each of them, and states that matter, in both themes and
// three widths, compared with kept pictures.
import assert from "node:assert/strict";
import { chmod, mkdir, rm, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { checked } from "../lib/check.js";
import { compare, difference, keep, photograph, rewrites } from "../lib/screens.js";
import { browser, closeBrowser, start } from "../lib/studio.js";

/** @typedef {import("playwright-core").Page} Page */

// Its name is part of the pictures.
const PLACE = "/tmp/ccm-shop";
const SITE = `# A shop: its directory, configuration and what follows a change.
data:
  # @require
  # @validate isInt(value)
  port: 8080
  app:
    name: shop
    workers: 4
hierarchy:
  order: ["role:{{ lookup('facts.role') }}", "site:{{ lookup('facts.site') }}"]
  merge: deep
overrides:
  role:web:
    port: 80
    app: {workers: 8}

ccm:
  resources:
    - file:
        - defaults: {owner: root, group: root, mode: "0644"}
        - ${PLACE}/app:
            ensure: directory
            mode: "0755"
        - ${PLACE}/app/shop.conf:
            alias: config
            # the service reads this once, when it starts
            content: |
              listen  = 0.0.0.0:{{ Data.port }}
              workers = {{ Data.app.workers }}
            require: ["file#${PLACE}/app"]
        - ${PLACE}/app/token:
            content: "token = {{ Data.app.name }}\\n"
            mode: "0600"
    - exec:
        - reload the shop:
            command: /bin/true
            refresh_only: true
            subscribe: ["file#config"]
        - warm the cache:
            command: /bin/true
            unless: test -e ${PLACE}/app/shop.conf
            require: ["exec#reload the shop"]
    - apply:
        - monitoring.yaml: {}
`;
const CHILD = `ccm:
  resources:
    - file:
        - ${PLACE}/app/checks:
            ensure: directory
            owner: root
            group: root
            mode: "0755"
`;
const FILES = {
  "site/shop.yaml": SITE,
  "site/monitoring.yaml": CHILD,
  "site/wrong.yaml": SITE.replace('mode: "0600"', 'mode: "0844"'),
  "site/templates/shop.conf.jet": "listen = [[ data.port ]]\n",
};
const TEMPLATE =
  "server {\n  listen  {{ Data.port }};\n  workers {{ max(Data.app.workers, 2) }};\n" +
  "  name    {{ Data.app.name | upper() }};\n}\n";

before(async () => {
  await rm(PLACE, { recursive: true, force: true });
  await mkdir(`${PLACE}/app`, { recursive: true });
  await chmod(`${PLACE}/app`, 0o755);
  await writeFile(`${PLACE}/app/shop.conf`, "listen  = 0.0.0.0:8081\nworkers = 2\n", {
    mode: 0o644,
  });
});
after(async () => {
  await closeBrowser();
  await rm(PLACE, { recursive: true, force: true });
});

/**
 * A page of a Studio in the one place whose name is known.
 * @param {Record<string, string>} files @param {string} directory
 * @param {{theme: "light" | "dark", width: number, height: number, factor?: number}} look
 * @param {(page: Page, origin: string) => Promise<void>} body
 */
async function withPage(files, directory, { theme, width, height, factor = 0.5 }, body) {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(`${PLACE}/${name}`.replace(/\/[^/]*$/, ""), { recursive: true });
    await writeFile(`${PLACE}/${name}`, text);
  }
  await mkdir(directory, { recursive: true });
  const server = await start({}, { directory });
  const context = await (
    await browser()
  ).newContext({
    viewport: { width, height },
    deviceScaleFactor: factor,
    colorScheme: theme,
    reducedMotion: "reduce",
    locale: "en-GB",
    timezoneId: "UTC",
  });
  context.setDefaultTimeout(30_000);
  try {
    const page = await context.newPage();
    await page.goto(server.url);
    await body(page, server.origin);
  } finally {
    await context.close();
    await server.stop("SIGKILL");
  }
}

/** @param {Page} page @param {string} address */
const goTo = (page, address) => page.evaluate((hash) => (location.hash = hash), address);

/** Each page as it is photographed. @type {Record<string, (page: Page) => Promise<void>>} */
const PAGES = {
  async design(page) {
    await goTo(page, `#/design?file=wrong.yaml&resource=file%23${PLACE}/app/token`);
    await page.waitForFunction(async () =>
      (await import(/** @type {any} */ ("/core/store.js"))).selected.value?.name.endsWith("token"),
    );
    await checked(page);
    await page.waitForFunction(() => innerWidth < 760 || document.querySelector("fieldset .err"));
  },
  async data(page) {
    await goTo(page, "#/data?file=shop.yaml");
    await page.evaluate(
      async () =>
        ((await import(/** @type {any} */ ("/core/store.js"))).facts.value = {
          source: "none",
          set: ["role=web"],
        }),
    );
    await page.getByText("matches", { exact: true }).waitFor();
    await page.getByRole("cell", { name: "80", exact: true }).waitFor();
  },
  async templates(page) {
    await goTo(page, "#/templates?file=shop.yaml");
    await page.getByRole("textbox", { name: "Template" }).fill(TEMPLATE);
    await page.getByRole("group", { name: "Rendered text" }).getByText("workers 8;").waitFor();
  },
  async graph(page) {
    await goTo(page, "#/graph?file=shop.yaml");
    await page.getByRole("img", { name: /^Graph of 7/ }).waitFor();
  },
  async plan(page) {
    await page.evaluate(
      async () => ((await import(/** @type {any} */ ("/core/store.js"))).facts.value = undefined),
    );
    await goTo(page, "#/plan?file=shop.yaml");
    await page.waitForFunction(
      async () =>
        (await import(/** @type {any} */ ("/core/store.js"))).current.value?.path.value ===
        "shop.yaml",
    );
    await checked(page);
    await page.keyboard.press("ControlOrMeta+Enter");
    await page.getByRole("button", { name: "Run them and plan" }).click();
    await page.getByRole("heading", { name: "finished", level: 2 }).waitFor();
    await page.getByRole("button", { name: `change file#${PLACE}/app/shop.conf` }).click();
    await page.getByRole("button", { name: `create file#${PLACE}/app/token` }).click();
    await page.getByText("hidden, 1 line").waitFor();
  },
  async history(page) {
    await goTo(page, "#/history?file=shop.yaml");
    await page.getByRole("link", { name: /plan shop.yaml/ }).click();
    await page.getByRole("button", { name: `change file#${PLACE}/app/shop.conf` }).click();
    await page.locator(".dl").first().waitFor();
  },
};

const WIDTHS = [
  [1440, 900],
  [1024, 768],
  [390, 844],
];

for (const theme of /** @type {const} */ (["light", "dark"])) {
  for (const [width = 0, height = 0] of WIDTHS) {
    test(`pages, ${theme}, ${width} wide`, () =>
      withPage(FILES, `${PLACE}/site`, { theme, width, height }, async (page) => {
        await page.getByRole("option").first().waitFor();
        for (const [name, prepare] of Object.entries(PAGES)) {
          await prepare(page);
          await compare(page, `${name}-${theme}-${width}`);
        }
      }));
  }

  test(`states, ${theme}`, () =>
    withPage(FILES, `${PLACE}/site`, { theme, width: 1440, height: 900 }, async (page) => {
      await page.getByRole("option").first().waitFor();
      await goTo(page, "#/design?file=shop.yaml");
      await page.waitForFunction(
        async () =>
          (await import(/** @type {any} */ ("/core/store.js"))).current.value?.path.value ===
          "shop.yaml",
      );
      await checked(page);
      await page.locator(".below").click();
      await page.getByRole("option", { name: /checks, read-only/ }).click();
      await compare(page, `state-child-${theme}`);
      await page.keyboard.press("ControlOrMeta+Enter");
      await page.getByRole("dialog").getByText("test -e").waitFor();
      await compare(page, `state-guards-${theme}`);
      await page.keyboard.press("Escape");
      await page.keyboard.press("ControlOrMeta+k");
      await page.getByRole("dialog", { name: "Search" }).waitFor();
      await compare(page, `state-search-${theme}`);
      await page.keyboard.press("Escape");
      await page.locator(".editor .cm-content").focus();
      await page.keyboard.press("ControlOrMeta+Home");
      await page.keyboard.type("x: [");
      await page.locator(".stale").first().waitFor();
      await page.locator(".editor .cm-finding").first().waitFor();
      await compare(page, `state-broken-${theme}`);
    }));

  test(`an empty directory, ${theme}`, () =>
    withPage({}, `${PLACE}/empty`, { theme, width: 1440, height: 900 }, async (page) => {
      await page.getByRole("heading", { name: "No manifests here yet" }).waitFor();
      await compare(page, `state-empty-${theme}`);
    }));
}

test("a comparison sees what moved", () =>
  withPage({}, `${PLACE}/empty`, { theme: "light", width: 800, height: 600 }, async (page) => {
    await page.getByRole("heading", { name: "No manifests here yet" }).waitFor();
    const one = await photograph(page);
    assert.equal(await difference(one, await photograph(page), 16), 0);
    await page.evaluate(() => document.querySelector(".wbox")?.setAttribute("class", ""));
    assert.ok((await difference(one, await photograph(page), 16)) > 0.01);
  }));

// The pictures of the documentation are made of the same pages.
const DOCS = new URL("../../../../docs/images/studio/", import.meta.url).pathname;

test("pictures of the documentation", { skip: !rewrites }, async () => {
  for (const theme of /** @type {const} */ (["light", "dark"])) {
    await withPage(
      FILES,
      `${PLACE}/site`,
      { theme, width: 1360, height: 840, factor: 1 },
      async (page) => {
        await page.getByRole("option").first().waitFor();
        for (const [name, prepare] of Object.entries(PAGES)) {
          if (theme === "dark" && name !== "design") continue;
          await prepare(page);
          await keep(page, `${DOCS}${name}-${theme}.png`);
        }
      },
    );
  }
});
