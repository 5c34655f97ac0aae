// Drives the page of a `ccm studio` that runs on a machine of the system tests:
// `node apply.js LINK`. It plans, applies, says `applied`, waits for a line,
// looks at the history, undoes and says `undone`, so that whoever started it
// can look at the machine in between.
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { browser, closeBrowser } from "../lib/studio.js";

/** Packages are installed meanwhile. */
const PATIENCE = 120_000;
const [link = ""] = process.argv.slice(2);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const context = await (
  await browser()
).newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: "reduce" });
context.setDefaultTimeout(PATIENCE);
const page = await context.newPage();
/** @type {string[]} */
const noise = [];
page.on("console", (message) => noise.push(`${message.type()}: ${message.text()}`));
page.on("pageerror", (error) => noise.push(`error: ${error.stack ?? error.message}`));

/** Waits until the run that is shown has ended well. @param {string} title */
async function finished(title) {
  await page.getByRole("heading", { name: title, level: 1 }).waitFor();
  await page
    .getByRole("heading", { name: /^(finished|failed|stopped|not possible|stale)/, level: 2 })
    .waitFor();
  const failed = await page.getByRole("button", { name: /^failed / }).allTextContents();
  assert.deepEqual(failed, [], `${title}: ${await page.locator("main").innerText()}`);
  await page.getByRole("heading", { name: "finished", level: 2 }).waitFor();
}

try {
  await page.goto(link);
  await page.getByRole("option").first().waitFor();
  await page.keyboard.press("ControlOrMeta+Enter");
  await finished("Plan");
  for (const row of [
    "create package#ccm-app",
    "create file#/etc/ccm-studio.conf",
    "provisional service#ccm-app",
  ]) {
    await page.getByRole("button", { name: row }).waitFor();
  }
  await page.locator("main").getByRole("button", { name: "Apply" }).click();
  const dialog = page.getByRole("dialog", { name: /^Apply site.yaml/ });
  await dialog.getByText("package#ccm-app").waitFor();
  await dialog.getByRole("button", { name: "Apply" }).click();
  await finished("Apply");
  console.log("applied");
  await lines.next();
  await page.evaluate(() => (location.hash = "#/history?file=site.yaml"));
  await page
    .getByRole("link", { name: /this machine/ })
    .first()
    .click();
  for (const row of ["package#ccm-app", "file#/etc/ccm-studio.conf", "service#ccm-app"]) {
    await page.getByRole("button", { name: new RegExp(`${row}$`) }).waitFor();
  }
  await page.locator("main").getByRole("button", { name: "Undo", exact: true }).click();
  await page
    .getByRole("dialog", { name: "Undo this run?" })
    .getByRole("button", { name: "Undo" })
    .click();
  await finished("Undo");
  assert.deepEqual(noise, [], "the console is silent");
  console.log("undone");
} catch (error) {
  const shown = await page
    .locator("main")
    .innerText({ timeout: 1000 })
    .catch(() => "nothing");
  console.error(`${error instanceof Error ? error.stack : error}\nThe page shows:\n${shown}`);
  process.exitCode = 1;
} finally {
  await closeBrowser();
  process.stdin.destroy();
}
