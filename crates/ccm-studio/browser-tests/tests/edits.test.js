// The cases of edits that the form can express, through the form.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test, after } from "node:test";
import { checked, choose, studioTest, textBecomes } from "../lib/check.js";
import { closeBrowser } from "../lib/studio.js";

/** @typedef {import("playwright-core").Page} Page */
/**
 * @typedef {{
 *   op: string, path: (string | number)[], value?: unknown, key?: string, to?: number,
 *   before?: string, after?: string,
 * }} Operation
 */
/**
 * @typedef {{id: string, note: string, before: string, after?: string, operation: Operation}} Case
 */

after(closeBrowser);

const vectors =
  process.env["CCM_CONFORMANCE"] ?? new URL("../../../../conformance", import.meta.url).pathname;
/** @type {Case[]} */
const cases = readFileSync(`${vectors}/yaml-edit.jsonl`, "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line));

/**
 * What a case is in the form: the resource, and what a person does to it. None
 * for what the form has no control for, and for texts that pages never have.
 * @param {Case} one
 * @returns {{resource: string, act: (page: Page) => Promise<void>} | null}
 */
function inForm({ before, after: wanted, operation }) {
  const { op, path } = operation;
  if (
    wanted === undefined ||
    /\r|^\ufeff/.test(before) ||
    path[0] !== "ccm" ||
    path[1] !== "resources"
  ) {
    return null;
  }
  const [, , , type, item, name, property, ...rest] = path;
  if (typeof item !== "number") return null;
  if (
    op === "set" &&
    typeof property === "string" &&
    rest.length === 0 &&
    typeof operation.value === "string" &&
    !operation.before &&
    !operation.after
  ) {
    const { value } = operation;
    return {
      resource: `${type}#${name}`,
      act: async (page) => {
        const input = page.locator(`#f-${property}`);
        await input.fill(value);
        await input.blur();
      },
    };
  }
  const button = (/** @type {string} */ label) => (/** @type {Page} */ page) =>
    page.locator("#pane-form").getByRole("button", { name: label }).click();
  const named = resourceAt(before, item);
  if (op === "remove" && path.length === 5 && named) {
    return { resource: `${type}#${named}`, act: button("Delete resource") };
  }
  if (op === "move" && path.length === 5 && named && operation.to === item - 1) {
    return { resource: `${type}#${named}`, act: button("Move up") };
  }
  if (op === "rename" && path.length === 6) {
    return {
      resource: `${type}#${name}`,
      act: async (page) => {
        await button("Rename")(page);
        const dialog = page.getByRole("dialog");
        await dialog.getByRole("textbox").fill(operation.key ?? "");
        await dialog.getByRole("button", { name: "Rename" }).click();
      },
    };
  }
  return null;
}

/** The name of an item of the first block. @param {string} text @param {number} index */
function resourceAt(text, index) {
  const items = text.match(/^ {8}- (.*):/gm) ?? [];
  return items[index]?.replace(/^ *- (.*):$/, "$1");
}

const expressed = cases.flatMap((one) => {
  const found = inForm(one);
  return found ? [{ ...one, ...found }] : [];
});

test("the form can express cases of edits", () =>
  assert.ok(expressed.length >= 9, `${expressed.length} of ${cases.length}`));

for (const { id, note, before, after: wanted, resource, act } of expressed) {
  studioTest(`${id}: ${note}`, { "m.yaml": before }, async ({ page }) => {
    await page.getByRole("option").first().waitFor();
    await checked(page);
    await choose(page, resource);
    await act(page);
    await textBecomes(page, (now) => now === wanted, note);
  });
}
