// What tests of the page have in common.
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { open } from "./studio.js";

/** @typedef {import("./studio.js").Opened} Opened */
/** @typedef {import("playwright-core").Page} Page */

/**
 * The browser logs answers that refuse something, which the page has handled, and wants a user
 * beside each password.
 */
const REFUSED =
  /the server responded with a status of 4(09|12|22)|^verbose: \[DOM\] Password forms should have/;

const results = new URL("../results/", import.meta.url).pathname;

/**
 * A test with a Studio of its own. A failure leaves a screenshot and the
 * server's log; a message of the console is a failure unless it is expected.
 * @param {string} name
 * @param {Record<string, string>} files
 * @param {(opened: Opened) => Promise<void>} body
 * @param {Parameters<typeof open>[1] & {noise?: RegExp, trace?: boolean}} [options] `noise`: what
 *   may be said; `trace`: false where recording would take time
 */
export function studioTest(name, files, body, options = {}) {
  test(name, async () => {
    const opened = await open(files, options);
    const context = opened.page.context();
    const traces = options.trace !== false;
    if (traces) await context.tracing.start({ screenshots: false, snapshots: true });
    let failed = true;
    try {
      await body(opened);
      const noise = opened.noise.filter(
        (line) => !REFUSED.test(line) && !options.noise?.test(line),
      );
      assert.deepEqual(noise, [], "the console is silent, and no request leaves the origin");
      failed = false;
    } finally {
      const file = join(results, name.replace(/[^\w]+/g, "-").slice(0, 80));
      if (failed) {
        await mkdir(results, { recursive: true });
        await opened.page.screenshot({ path: `${file}.png` }).catch(() => {});
        if (traces) await context.tracing.stop({ path: `${file}.zip` }).catch(() => {});
        await writeFile(`${file}.log`, `${opened.server.log}\n${opened.noise.join("\n")}\n`);
      } else if (traces) await context.tracing.stop();
      await opened.close();
    }
  });
}

/** The text that the editor holds. @param {Page} page @returns {Promise<string>} */
export const text = (page) =>
  page.evaluate(
    async () => (await import(/** @type {any} */ ("/core/store.js"))).current.value?.text() ?? "",
  );

/** Waits until the newest text was checked. @param {Page} page */
export async function checked(page) {
  await page.waitForFunction(async () => {
    const { current } = await import(/** @type {any} */ ("/core/store.js"));
    const doc = current.value;
    return (
      doc?.check.value &&
      doc.check.value.revision === doc.revision.value &&
      doc.checking.value === 0
    );
  });
}

/**
 * Waits until the editor's text is as wanted.
 * @param {Page} page
 * @param {(text: string) => boolean} wanted
 * @param {string} what
 */
export async function textBecomes(page, wanted, what) {
  const until = Date.now() + 30_000;
  let last = "";
  while (Date.now() < until) {
    last = await text(page);
    if (wanted(last)) return last;
    await page
      .waitForFunction(
        async (before) =>
          (await import(/** @type {any} */ ("/core/store.js"))).current.value?.text() !== before,
        last,
        { timeout: Math.max(1, until - Date.now()) },
      )
      .catch(() => {});
  }
  assert.fail(`${what}; the text is\n${last}`);
}

/** Chooses a resource in the outline. @param {Page} page @param {string} id */
export async function choose(page, id) {
  await page
    .getByRole("option", { name: new RegExp(`^${id.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")}[, ]`) })
    .first()
    .click();
  await page.locator("#h-form", { hasText: id }).waitFor();
  await page.locator("#pane-form .scroll:not([inert]) fieldset").first().waitFor();
}

const axePath = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
/** @type {Promise<string> | undefined} */
let axe;

/**
 * Fails on anything that axe finds, in the theme that is shown and in the other
 * one. The page must have been opened with `bypassPolicy`, as axe is a script
 * from elsewhere.
 * @param {Page} page @param {string} where
 */
export async function accessible(page, where) {
  axe ??= readFile(axePath, "utf8");
  const has = await page.evaluate(() => "axe" in globalThis);
  if (!has) await page.evaluate(await axe);
  const shown = await page.evaluate(() => document.documentElement.dataset["theme"]);
  /** @type {("light" | "dark")[]} */
  const themes = shown === "dark" ? ["light", "dark"] : ["dark", "light"];
  // The one that was shown comes last, and stays.
  for (const theme of themes) {
    await page.emulateMedia({ colorScheme: theme });
    await page.waitForFunction(
      (wanted) => document.documentElement.dataset["theme"] === wanted,
      theme,
    );
    const found = await page.evaluate(async () => {
      const result = await /** @type {any} */ (globalThis).axe.run(document, {
        runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
        resultTypes: ["violations"],
      });
      return result.violations.map((/** @type {any} */ one) => ({
        id: one.id,
        help: one.help,
        nodes: one.nodes
          .slice(0, 4)
          .map(
            (/** @type {any} */ node) => `${node.html.slice(0, 200)} ${node.failureSummary ?? ""}`,
          ),
      }));
    });
    assert.deepEqual(found, [], `axe on ${where}, ${theme}`);
  }
}
