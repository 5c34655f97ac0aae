// Keys alone, hostile content, narrow and zoomed windows.
import assert from "node:assert/strict";
import { request } from "node:http";
import { after } from "node:test";
import { accessible, checked, choose, studioTest, text, textBecomes } from "../lib/check.js";
import { FILES, WEB } from "../lib/fixtures.js";
import { closeBrowser } from "../lib/studio.js";

after(closeBrowser);

/** @typedef {import("playwright-core").Page} Page */

/** What has the focus, also inside of the editor. @param {Page} page */
const focused = (page) =>
  page.evaluate(() => {
    let active = document.activeElement;
    while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
    if (!active) return "";
    const label = active.getAttribute("aria-label") ?? active.textContent?.slice(0, 40);
    return `${active.tagName.toLowerCase()} ${active.id} ${label}`;
  });

studioTest(
  "a tour by keys alone, from opening to the plan",
  { "web.yaml": FILES },
  async ({ page, server }) => {
    await page.getByRole("option").first().waitFor();
    await checked(page);
    await page.keyboard.press("Tab");
    assert.match(await focused(page), /Skip to the page/);
    await page.keyboard.press("Enter");
    // To the list, down, into the form.
    await page.keyboard.press("F6");
    assert.match(await focused(page), /outline/);
    await page.keyboard.press("Home");
    // Keys are faster than the form, which then takes the focus.
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("F6");
    await page.waitForFunction(
      () => document.activeElement?.getAttribute("aria-label") === "Properties",
    );
    await page.locator("#h-form", { hasText: "test-b" }).waitFor();
    await page.locator("[data-field=alias]").waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    assert.match(await focused(page), /f-alias/);
    await page.keyboard.type("second");
    await page.keyboard.press("Tab");
    await textBecomes(
      page,
      (now) => now.includes("alias: second"),
      "left by Tab, it is taken over",
    );
    // Into the text; Esc and Tab lead out again.
    await page.keyboard.press("F6");
    assert.match(await focused(page), /Text of web.yaml/);
    await page.keyboard.press("Escape");
    await page.keyboard.press("Tab");
    assert.doesNotMatch(await focused(page), /Text of web.yaml/);
    await page.keyboard.press("Shift+F6");
    await page.keyboard.press("ControlOrMeta+s");
    await page.getByText("Saved web.yaml").first().waitFor();
    assert.ok((await server.read("web.yaml")).includes("alias: second"));
    // The palette, and back to where the focus was.
    await page.keyboard.press("F6");
    const before = await focused(page);
    await page.keyboard.press("ControlOrMeta+k");
    await page.keyboard.type("test-c");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.equal(await focused(page), before);
    await page.keyboard.press("ControlOrMeta+k");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.type("test-c");
    await page.keyboard.press("Enter");
    await page.locator("#h-form", { hasText: "test-c" }).waitFor();
    await page.locator("#outline").focus();
    await page.keyboard.press("g");
    await page.keyboard.press("h");
    await page.getByRole("heading", { name: "History", level: 1 }).waitFor();
    await page.keyboard.press("ControlOrMeta+Enter");
    await page.getByRole("heading", { name: "Plan", level: 1 }).waitFor();
    await page.goBack();
    await page.getByRole("heading", { name: "History", level: 1 }).waitFor();
  },
);

const HOSTILE = [
  "<img src=x onerror=alert(1)>",
  "\u202Egnp.exe",
  "${alert(1)}",
  "a\u0000b".replace("\u0000", ""),
  "x".repeat(900),
];

studioTest(
  "hostile names and contents are shown as text",
  {
    "web.yaml": [
      "ccm:\n  resources:\n    - exec:",
      ...HOSTILE.map((name) => [name, `/bin/echo ${name}`].map((text) => JSON.stringify(text))).map(
        ([name, command]) => `        - ${name}: {command: ${command}}`,
      ),
      `        - long: {command: "${"y".repeat(1_000_000)}"}`,
      '        - ansi: {command: "\\e[31mred"}\n',
    ].join("\n"),
    "<b>bold.yaml": FILES,
  },
  async ({ page }) => {
    await page.getByRole("link", { name: "web.yaml" }).click();
    await page.locator("#h-code", { hasText: "web.yaml" }).waitFor();
    await checked(page);
    await page.waitForFunction(
      (count) => document.querySelectorAll("#outline [role=option]").length === count,
      HOSTILE.length + 2,
    );
    for (const name of HOSTILE) {
      await page.evaluate(
        async (id) => (await import(/** @type {any} */ ("/core/store.js"))).selectNamed(id),
        `exec#${name}`,
      );
      await page.waitForFunction(
        (wanted) => document.querySelector("#h-form")?.textContent === wanted,
        `exec#${name}`,
      );
    }
    // The editor has images of its own, without a source, beside its widgets.
    assert.equal(await page.locator("img[src], img:not(.cm-widgetBuffer)").count(), 0);
    await page.getByRole("link", { name: "<b>bold.yaml" }).click();
    await page.locator("#h-code", { hasText: "<b>bold.yaml" }).waitFor();
  },
);

studioTest(
  "a foreign Host, Origin or key gets nothing",
  { "web.yaml": FILES },
  async ({ page, server }) => {
    await page.getByRole("option").first().waitFor();
    const { hostname, port } = new URL(server.origin);
    const ask = (/** @type {string} */ path, /** @type {Record<string, string>} */ headers) =>
      new Promise((resolve, reject) => {
        const asked = request({ hostname, port, path, headers }, (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        });
        asked.on("error", reject);
        asked.end();
      });
    const key = await page.evaluate(() => localStorage.getItem("ccm-studio-key"));
    const authorization = `Bearer ${key}`;
    assert.equal(await ask("/api/v1/studio", { authorization }), 200);
    assert.equal(await ask("/api/v1/studio", {}), 401);
    assert.equal(await ask("/api/v1/studio", { authorization: "Bearer wrong" }), 401);
    assert.equal(await ask("/api/v1/studio", { authorization, host: "evil.example" }), 403);
    assert.equal(
      await ask("/api/v1/studio", { authorization, origin: "http://evil.example" }),
      403,
    );
    assert.equal(
      await ask("/api/v1/studio", {
        authorization,
        origin: `http://127.0.0.1:${Number(port) + 1}`,
      }),
      403,
    );
    assert.equal(await ask("/", { host: "evil.example" }), 403);
    assert.equal((await context(page).cookies()).length, 0);
  },
);

/** @param {Page} page */
const context = (page) => page.context();

for (const [name, options] of /** @type {const} */ ([
  ["320 px wide", { width: 320, height: 720 }],
  ["zoomed to 200 %", { width: 1280, height: 1000, zoom: 2 }],
])) {
  studioTest(
    `${name}, nothing is lost`,
    { "web.yaml": WEB },
    async ({ page }) => {
      // Panes are tabs here.
      const pane = (/** @type {string} */ wanted) =>
        page.getByRole("radio", { name: wanted, exact: true }).click();
      await page.getByRole("option").first().waitFor();
      await page.getByRole("option", { name: /app.conf/ }).click();
      await pane("Form");
      await page.getByRole("textbox", { name: "alias" }).fill("narrow");
      await page.keyboard.press("Enter");
      await textBecomes(
        page,
        (now) => now.includes("alias: narrow"),
        "edited, and the reference to the old alias is a problem",
      );
      const wide = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      assert.equal(wide, 0, "nothing scrolls sideways");
      await accessible(page, `${name}: form`);
      await pane("Text");
      await page.locator(".editor .cm-content").waitFor();
      await accessible(page, `${name}: text`);
      await pane("Results");
      await page.locator(".problems li", { hasText: "config" }).waitFor();
      for (const page_ of ["Data", "Templates", "Graph", "Plan", "History"]) {
        await page.getByRole("link", { name: page_ }).waitFor();
      }
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("Saved web.yaml").first().waitFor();
    },
    { ...options, bypassPolicy: true },
  );
}

studioTest(
  "forced colours keep what is selected visible",
  { "web.yaml": WEB },
  async ({ page }) => {
    await choose(page, "file#/tmp/ccm-studio-test/app.conf");
    const outline = await page
      .locator("#outline [aria-selected=true]")
      .evaluate((row) => getComputedStyle(row).outlineStyle);
    assert.equal(outline, "solid");
    assert.ok((await text(page)).includes("alias: config"));
  },
  { forcedColors: true },
);
